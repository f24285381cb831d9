"""The twelve laws of the live loop, each on a cluster through the whole cycle: ``test_law_NUMBER_…``.

Some are held against every plan of a life that is drawn (`tests/scheduling/lives.py`), which is lived once in
a process; the others against a situation of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from scheduling.cluster.adapters import key_of
from scheduling.cluster.vocabulary import labels
from scheduling.engine import Action, Phase, Plan, Reason, Snapshot, Workload
from scheduling.models import Cluster, Decision, Eviction, LapseCause, PriorityClass, Quota, State
from scheduling.services.cycle import run as cycle
from scheduling.simulation.run.carrying import differences
from tests.scheduling.engine.evolve import check_nodes, held, led_to
from tests.scheduling.killing import restart
from tests.scheduling.kube import JOBS, World
from tests.scheduling.lives import PODS, STEPS, begun

SEED, CAP = 0, 2.0
GRACE_S = 3600
MAKES_ROOM = (Action.EVICT, Action.SHRINK, Action.MOVE)

Lived = tuple[Snapshot, Plan]


@dataclass(frozen=True)
class Past:
    """What each cycle of a life committed, and the causes that the ledger has of evictions in vain."""

    plans: Sequence[Lived]
    in_vain: Sequence[str]

    @property
    def claimed(self) -> Iterator[tuple[Snapshot, Plan, Workload]]:
        """Every claim that the snapshot of a cycle states."""
        for world, plan in self.plans:
            for work in world.workloads:
                if work.awaits_victims:
                    yield world, plan, work


_past: list[Past] = []


@pytest.fixture
def past(request: pytest.FixtureRequest) -> Past:
    if not _past:
        world: World = request.getfixturevalue("world")
        Cluster.objects.update(eviction_cap=CAP)
        with begun(world, SEED) as life:
            for _ in range(2 * STEPS):
                life.step()
        vain = Eviction.objects.exclude(in_vain="").values_list("in_vain", flat=True)
        _past.append(Past(life.lived, list(vain)))
    return _past[0]


def line_of(plan: Plan, name: str) -> Any:
    """What a plan says of a workload, its lapse aside."""
    lines = (d for d in plan.decisions if d.workload == name and d.action is not Action.LAPSE)
    return next(lines, None)


def starts(plan: Plan, name: str) -> bool:
    line = line_of(plan, name)
    return line is not None and line.action is Action.ADMIT


def lapses(plan: Plan, name: str) -> list[str]:
    return [d.rule for d in plan.decisions if (d.workload, d.action) == (name, Action.LAPSE)]


def room_for(world: Snapshot, plan: Plan, claimant: Workload) -> Counter[str]:
    """GPUs that are free now on each node, for ``claimant``: less what claims start on by this plan, and what
    other claims keep beyond what still leaves there."""
    free = Counter({node.name: node.gpus - node.foreign_gpus for node in world.nodes})
    leaving, kept = Counter[str](), Counter[str]()
    for work in world.workloads:
        if work.phase is Phase.RUNNING:
            free -= Counter({n: work.gpus * m for n, m in work.placement.items()})
            if work.leaving:
                leaving += Counter({n: work.gpus * m for n, m in work.placement.items()})
        elif work.awaits_victims and starts(plan, work.name):
            seats = line_of(plan, work.name).placement
            free -= Counter({n: work.gpus * m for n, m in seats.items()})
        elif work.awaits_victims and work.name != claimant.name:
            kept += Counter({n: work.gpus * m for n, m in work.placement.items()})
    return free - (kept - leaving)


def seats(claimant: Workload, room: Counter[str]) -> bool:
    return sum(gpus // claimant.gpus for gpus in room.values()) >= claimant.members.min


def test_law_1_told_snapshot_states_what_the_plan_before_it_left(past: Past) -> None:
    for (before, plan), (seen, _) in zip(past.plans, past.plans[1:], strict=False):
        assert differences(before, plan, seen) == []
    assert sum(1 for _ in past.claimed) > 5


def test_law_2_kept_claim_starts_or_is_kept_or_lapses_with_its_cause(past: Past) -> None:
    for _, plan, work in past.claimed:
        line = line_of(plan, work.name)
        keeps = line is not None and line.reason is Reason.AWAITS_VICTIMS
        assert starts(plan, work.name) or keeps or lapses(plan, work.name)
    assert LapseCause.GIVEN_UP not in past.in_vain


def test_law_3_room_of_a_claim_is_its_own(past: Past) -> None:
    for world, plan in past.plans:
        check_nodes(led_to(world, plan))


def test_law_4_nobody_more_leaves_for_who_has_a_claim(past: Past) -> None:
    for _, plan, work in past.claimed:
        served = {d.for_workload for d in plan.decisions if d.action in MAKES_ROOM}
        assert work.name not in served
        assert work.taken_gpus <= CAP * work.gpus * work.members.min


def test_law_5_prompt_claim_waits_only_while_its_members_cannot_be_seated(past: Past) -> None:
    for world, plan, work in past.claimed:
        if not starts(plan, work.name) and not lapses(plan, work.name):
            assert not seats(work, room_for(world, plan, work)), work.name


def test_law_6_no_victim_starts_where_who_it_left_for_could(past: Past) -> None:
    for world, plan, work in past.claimed:
        if starts(plan, work.name):
            continue
        room = room_for(world, plan, work)
        for name in work.victims:
            if starts(plan, name):
                assert not seats(work, room), (name, work.name)


def test_law_11_nominal_stands_and_every_eviction_says_its_rule(past: Past) -> None:
    evictions = 0
    for world, plan in past.plans:
        works = {work.name: work for work in world.workloads}
        nominal = {q.name: q.quotas["h100"].nominal for q in world.queues if q.quotas}
        had, has = held(world, with_leaving=False), held(led_to(world, plan))
        for one in plan.decisions:
            if one.action is Action.EVICT and one.for_workload:
                evictions += 1
                assert one.rule
                left, served = works[one.workload].queue, works[one.for_workload].queue
                if left != served:
                    least = min(nominal[left], had[left, "h100"])
                    assert has[left, "h100"] >= least, one
    assert evictions > 5


@pytest.fixture
def prompt(world: World) -> World:
    """Nothing delays an eviction."""
    Cluster.objects.update(preemption_delay_s=0, fair_share_delay_s=0)
    PriorityClass.objects.create(name="low", value=10)
    return world


def ask(world: World, name: str, notes: Mapping[str, str] | None = None, **more: Any) -> None:
    manifest = world.manifest(name, **more)
    manifest["metadata"].setdefault("annotations", {}).update(notes or {})
    world.kube.create(JOBS, manifest)


def run(world: World, *names: str, **more: Any) -> None:
    """Jobs that are running when this returns, one after another."""
    for name in names:
        ask(world, name, grace_s=GRACE_S, **more)
        world.cycles_until(partial(_runs, world, name))


def _runs(world: World, name: str) -> bool:
    return world.row(name).state == State.RUNNING


def evicted(world: World) -> set[str]:
    names = Decision.objects.filter(action="evict", workload__cluster=world.cluster)
    return set(names.values_list("workload__name", flat=True))


def let_go(world: World, name: str) -> None:
    """The pods of a Job are gone."""
    for pod in world.kube.get(PODS)["items"]:
        if pod["metadata"]["name"].startswith(f"{name}-"):
            world.kube.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


@pytest.fixture
def owed(prompt: World) -> World:
    """Research runs on all 16 GPUs, and products asks for the 8 that it lent."""
    run(prompt, "first", "second", gpus=8)
    prompt.job("owner", gpus=8, queue="products")
    return prompt


def test_law_7_spared_victim_whose_eviction_was_not_written_stays_when_the_claim_lapses(
    owed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    owed.catch_up()
    with monkeypatch.context() as dying:
        dying.setattr(cycle, "_enforce", _die)
        with pytest.raises(SystemExit):
            owed.cycle()
    (victim,) = evicted(owed)
    owed.kube.delete(f"{JOBS}/owner")
    restart(owed)
    for _ in range(3):
        owed.cycle()
    assert not owed.read(victim)["spec"]["suspend"]
    assert owed.row(victim).state == State.RUNNING
    assert owed.row("owner").claim is None
    assert Decision.objects.get(action="lapse").numbers["rule"] == LapseCause.GONE


def _die(*_: Any, **__: Any) -> Any:
    raise SystemExit(9)


def test_law_7_spared_victim_whose_pods_still_run_starts_again_on_its_own_seats(
    owed: World,
) -> None:
    owed.cycle()
    (victim,) = evicted(owed)
    seat = dict(owed.row(victim).placement)
    owed.cycle()
    owed.kube.delete(f"{JOBS}/owner")
    owed.cycle()
    assert Eviction.objects.get().in_vain == LapseCause.GONE
    let_go(owed, victim)
    owed.cycles_until(lambda: owed.row(victim).state == State.RUNNING)
    assert owed.row(victim).placement == seat


@pytest.fixture
def called_off(owed: World) -> World:
    """A victim still leaves for ``owner``, which is cancelled."""
    owed.cycle()
    owed.cycle()
    owed.kube.delete(f"{JOBS}/owner")
    return owed


@pytest.mark.parametrize("dies", [False, True])
def test_law_7_spared_victim_whose_pods_still_run_goes_before_later_work_of_its_queue(
    called_off: World, *, dies: bool
) -> None:
    (victim,) = evicted(called_off)
    seat = dict(called_off.row(victim).placement)
    called_off.job("later", gpus=8)
    called_off.cycle()
    if dies:
        restart(called_off)
    called_off.cycle()
    assert called_off.row("later").claim is None
    let_go(called_off, victim)
    called_off.cycles_until(lambda: called_off.row(victim).state == State.RUNNING)
    assert called_off.row(victim).placement == seat
    assert called_off.row(victim).claim is None
    assert called_off.row("later").state == State.PENDING


def test_law_7_spared_victim_whose_pods_still_run_leaves_for_whoever_may_take_its_seats(
    called_off: World,
) -> None:
    (victim,) = evicted(called_off)
    called_off.cycle()
    called_off.job("next", gpus=8, queue="products")
    called_off.cycle()
    called_off.cycle()
    assert evicted(called_off) == {victim}
    made = Eviction.objects.get()
    assert (made.for_workload, made.in_vain) == (called_off.row("next"), "")
    second = Decision.objects.filter(workload=made.workload, action="evict").latest("id")
    assert (made.cycle, made.sealed) == (second.cycle, second.sealed)
    assert made.numbers["victim_held_before"] == second.numbers["victim_held_before"]
    let_go(called_off, victim)
    called_off.cycles_until(lambda: called_off.row("next").state == State.RUNNING)
    assert called_off.row(victim).state == State.REQUEUED
    assert evicted(called_off) == {victim}


@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)])
def test_law_8_settled_nobody_more_leaves_while_victims_do_one_by_one_and_all_they_left_for_run(
    prompt: World, order: Callable[[set[str]], list[str]]
) -> None:
    run(prompt, "a", "b", "c", "d", gpus=4)
    for name in ("one", "two"):
        prompt.job(name, gpus=4, queue="products")
    prompt.cycle()
    first = evicted(prompt)
    assert len(first) == 2
    for name in order(first):
        let_go(prompt, name)
        prompt.cycle()
        prompt.cycle()
        assert evicted(prompt) == first
    prompt.cycles_until(lambda: {prompt.row(n).state for n in ("one", "two")} == {State.RUNNING})
    assert evicted(prompt) == first
    assert not Eviction.objects.exclude(in_vain="")


def test_law_9_lower_priority_leaves_first_wherever_it_sits(prompt: World) -> None:
    """One of higher priority beside two of lower on the other node."""
    run(prompt, "low-1", "low-2", gpus=4, priority_class="low")
    run(prompt, "train", gpus=8)
    prompt.job("owner", gpus=8, queue="products")
    prompt.cycle()
    assert evicted(prompt) == {"low-1", "low-2"}


def test_law_10_enough_who_was_evicted_often_enough_leaves_no_more_for_a_share(
    prompt: World,
) -> None:
    """Products owns nothing, and is entitled to a part of what research owns nothing of."""
    Quota.objects.filter(queue__name="products").update(nominal_gpus=0)
    run(prompt, "a", "b", "c", "d", gpus=4)
    often = prompt.cluster.max_evictions
    assert often
    for name in ("b", "c", "d"):
        row = prompt.row(name)
        row.last_evicted_at = prompt.cluster.now()
        row.recent_evictions = [row.last_evicted_at.isoformat()] * often
        row.save()
    restart(prompt)
    prompt.job("mine", gpus=4, queue="products")
    prompt.cycle()
    assert evicted(prompt) == {"a"}


def test_law_10_enough_nobody_takes_from_whom_it_left_for_within_the_cooldown(
    prompt: World,
) -> None:
    Quota.objects.filter(queue__name="research").update(nominal_gpus=0)
    Quota.objects.filter(queue__name="products").update(nominal_gpus=16_000)
    run(prompt, "own", gpus=8, queue="products")
    run(prompt, "winner", gpus=8)
    ask(prompt, "owner", {labels.HOLD: labels.ON_HOLD}, gpus=8, queue="products")
    prompt.cycle()
    _left_for(prompt, "owner", "winner", timedelta())
    prompt.edit("owner", {"metadata": {"annotations": {labels.HOLD: None}}})
    prompt.cycles_until(lambda: not prompt.row("owner").held)
    assert evicted(prompt) == set()
    _left_for(prompt, "owner", "winner", timedelta(seconds=prompt.cluster.cooldown_s))
    prompt.cycle()
    assert evicted(prompt) == {"winner"}


def _left_for(world: World, name: str, winner: str, ago: timedelta) -> None:
    """The ledger says that ``name`` was evicted for ``winner`` so long ago; a worker starts anew."""
    row, other = world.row(name), world.row(winner)
    row.last_evicted_at = world.cluster.now() - ago
    row.last_evicted_for = key_of(other.kind, other.namespace, other.name)
    row.save()
    restart(world)


def test_law_12_reservation_lasts_while_it_is_first_and_is_kept_by_a_start(prompt: World) -> None:
    Quota.objects.filter(queue__name="products").update(nominal_gpus=0)
    Quota.objects.filter(queue__name="research").update(nominal_gpus=16_000)
    long = {labels.PREDICTED_SECONDS: "3600,7200"}
    run(prompt, "half-1", "half-2", gpus=5, notes=long)
    prompt.job("wide", gpus=6)
    prompt.cycle()
    assert prompt.row("wide").reason == Reason.RESERVED
    # Kubernetes counts in whole seconds: of two of one second the name goes first.
    for name, queue in (("x-own", "research"), ("y-other", "products")):
        prompt.job(name, gpus=6, queue=queue)
        ask(prompt, f"{name}-long", long, gpus=3, queue=queue)
        prompt.cycle()
        assert prompt.row("wide").reason == Reason.RESERVED
    (lent,) = prompt.row("y-other-long").placement
    done = next(n for n in ("half-1", "half-2") if lent not in prompt.row(n).placement)
    (node,) = prompt.row(done).placement
    prompt.kube.delete(f"{JOBS}/{done}")
    let_go(prompt, done)
    prompt.cycles_until(lambda: prompt.row("wide").state == State.RUNNING)
    assert list(prompt.row("wide").placement) == [node]
