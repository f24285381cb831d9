"""The laws of the engine, as properties over random organisations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scheduling.engine import (
    Action,
    GpuClass,
    Members,
    Node,
    Phase,
    Plan,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Snapshot,
    Workload,
    decode,
    divide,
    encode,
    plan,
    plan_frame,
)
from tests.scheduling.engine import oracle
from tests.scheduling.engine.evolve import (
    acts,
    acts_and_promises,
    apply,
    check_plan,
    claims_what_was_lent,
    held,
    let_leave,
    plan_again,
    without_prompt_starts,
)
from tests.scheduling.engine.odd_worlds import bounded, crowded, of_roles
from tests.scheduling.engine.segmented import segmented
from tests.scheduling.engine.worlds import CLASSES, NOW, lent, organisations, scattered, worlds
from workshop.simulator.carry_out import carry_out
from workshop.simulator.laws.room import check

pytestmark = pytest.mark.long


@given(worlds())
def test_limits_nodes_gangs_and_reasons_hold_in_any_plan(world: Snapshot) -> None:
    """Laws 1, 3 and 10; and every law that simulations check."""
    made = plan(world)
    check_plan(world, made)
    check(world, made)


@given(bounded())
def test_nobody_is_sent_to_a_node_that_it_may_not_use(world: Snapshot) -> None:
    """And all other laws hold; a second plan on what the first made finds nothing to do."""
    made = plan(world)
    check_plan(world, made)
    check(world, made)
    after, again = plan_again(world, made)
    check(after, again)
    assert acts(again) == []


@given(crowded())
def test_nobody_is_sent_to_a_node_that_lacks_what_it_takes_beside_gpus(world: Snapshot) -> None:
    """And all other laws hold; a second plan on what the first made finds nothing to do."""
    made = plan(world)
    check_plan(world, made)
    check(world, made)
    after, again = plan_again(world, made)
    check(after, again)
    assert acts(again) == []


@given(of_roles())
def test_gangs_of_unlike_members_keep_every_law(world: Snapshot) -> None:
    """And a second plan on what the first made finds nothing to do."""
    made = plan(world)
    check_plan(world, made)
    check(world, made)
    after, again = plan_again(world, made)
    check(after, again)
    assert acts(again) == []


@given(segmented())
def test_every_gang_that_is_seated_keeps_its_segments(world: Snapshot) -> None:
    """And all other laws hold; a second plan on what the first made finds nothing to do."""
    made = plan(world)
    check_plan(world, made)
    check(world, made)
    after, again = plan_again(world, made)
    check(after, again)
    assert acts(again) == []


@given(organisations())
def test_division_equals_filling_by_definition(snapshot: Snapshot) -> None:
    sure = replace(
        snapshot,
        nodes=tuple(Node(f"big{kind}", kind, 16000) for kind in CLASSES),
        workloads=tuple(
            replace(w, priority_class="low", topology=type(w.topology)(), cpus=0)
            for w in snapshot.workloads
            if _can_fit(snapshot, w)
        ),
    )
    shares = divide(sure)
    for kind in CLASSES:
        exact = oracle.divide(sure, kind)
        for queue, share in exact.items():
            assert shares[queue][kind].fair_share == pytest.approx(float(share), abs=0.01)


def _can_fit(snapshot: Snapshot, work: Workload) -> bool:
    """Whether no limit above it is below what it needs; what never fits is not demand."""
    by_name = {q.name: q for q in snapshot.queues}
    need, name = work.gpus * work.members.min, work.queue
    while name:
        quota = by_name[name].quotas.get(work.gpu_classes[0], Quota())
        cap = quota.nominal if quota.weight == 0 else None
        if cap is None and quota.borrowing_limit is not None:
            cap = quota.nominal + quota.borrowing_limit
        if cap is not None and cap < need:
            return False
        name = by_name[name].parent or ""
    return True


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 14)), min_size=1, max_size=4),
    st.integers(0, 1),
)
def test_queue_with_enough_demand_reaches_its_nominal(
    sizes: list[tuple[int, int]], first: int
) -> None:
    """Law 2, for work of one GPU that can be preempted: lent nominal always comes back."""
    nominal = [n for n, _ in sizes]
    assume(sum(nominal) > 0)
    queues = tuple(Queue(f"q{i}", quotas={"h100": Quota(1000 * n)}) for i, n in enumerate(nominal))
    capacity = sum(nominal) + first
    start = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=(Node("n", "h100", 1000 * capacity),),
        queues=queues,
        priority_classes=(PriorityClass("train"),),
    )
    greedy = tuple(_single(f"g{i}", "q0", 0) for i in range(capacity))
    world = replace(start, workloads=greedy)
    world = let_leave(apply(world, plan(world)))
    late = tuple(
        _single(f"w{i}-{k}", f"q{i}", 100 + k)
        for i, (_, ask) in enumerate(sizes)
        for k in range(ask)
    )
    world = replace(world, workloads=(*world.workloads, *late))
    for _ in range(4):
        world = let_leave(apply(world, plan(world)))
    for i, (owed, ask) in enumerate(sizes):
        wanted = ask + (capacity if i == 0 else 0)
        if wanted >= owed:
            assert held(world)[f"q{i}", "h100"] >= 1000 * owed


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=5
    ),
    st.integers(0, 2),
)
def test_gang_inside_nominal_starts_whoever_of_lower_priority_and_of_others_is_in_its_way(
    sizes: list[tuple[int, int, int]], spare: int
) -> None:
    """Law 2, for gangs as large as the nominal: what their own queue runs below their priority leaves,
    and what others hold above their shares.
    """
    capacity = sum(nominal for _, nominal, _ in sizes) + spare
    queues = [
        Queue(f"d{i}", quotas={"h100": Quota(1000 * sum(n for d, n, _ in sizes if d == i))})
        for i in range(2)
    ]
    queues += [
        Queue(f"q{i}", parent=f"d{d}", quotas={"h100": Quota(1000 * n)})
        for i, (d, n, _) in enumerate(sizes)
    ]
    low = [
        _single(f"s{i}-{k}", f"q{i}", 0) for i, (*_, ran) in enumerate(sizes) for k in range(ran)
    ]
    world = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=(Node("n", "h100", 1000 * capacity),),
        queues=tuple(queues),
        priority_classes=(PriorityClass("train", 10), PriorityClass("urgent", 90)),
        workloads=tuple(
            replace(w, phase=Phase.RUNNING, gpu_class="h100", started=NOW, placement={"n": 1})
            for w in low[:capacity]
        ),
    )
    gangs = tuple(
        replace(_single(f"w{i}", f"q{i}", 100), priority_class="urgent", gpus=1000 * n)
        for i, (_, n, _) in enumerate(sizes)
        if n > 0
    )
    world = replace(world, workloads=(*world.workloads, *gangs))
    for _ in range(3):
        world = let_leave(apply(world, plan(world)))
    waits = {w.name for w in world.workloads if w.phase is not Phase.RUNNING}
    assert waits.isdisjoint(w.name for w in gangs)


def _single(name: str, queue: str, at: int) -> Workload:
    return Workload(name, queue, "train", NOW + timedelta(seconds=at - 9999), gpu_classes=("h100",))


@given(worlds())
def test_planning_again_on_what_the_plan_produces_does_nothing(world: Snapshot) -> None:
    """Law 4, first half: at once, and with the victims gone nobody is evicted in return. Where the queues
    are entitled to something else then, because the victims ask no more, that is another state. A claim that
    fits on what nobody claims is kept at once (law 5).
    """
    after, again = plan_again(world, plan(world))
    assert without_prompt_starts(after, acts(again)) == []
    then = plan(let_leave(after, requeue=False))
    evicted = [d.workload for d in then.decisions if d.action is Action.EVICT]
    assert evicted == [] or _entitled(then) != _entitled(again)


@given(lent())
def test_no_gpu_idles_for_ever_beside_who_may_have_it(world: Snapshot) -> None:
    """For work of one GPU that may be preempted, where no limit says otherwise: once plans change nothing
    more, it waits beside an idle GPU only for the turn of another, or for what is kept for one.
    """
    world = replace(world, workloads=tuple(_alone(w) for w in world.workloads))
    for _ in range(MOST_PLANS):
        before, world = world, let_leave(apply(world, plan(world)))
        if world == before:
            break
    has = held(world)
    tops = [q.name for q in world.queues if q.parent is None]
    idle = sum(node.gpus for node in world.nodes) - sum(has[top, "h100"] for top in tops)
    single = {w.name for w in world.workloads if w.gpus * w.members.min == 1000}
    waits = [d for d in plan(world).decisions if d.action is Action.WAIT]
    left = [d for d in waits if d.workload in single and d.reason not in FOR_ANOTHER]
    assert idle == 0 or left == []


MOST_PLANS = 12
FOR_ANOTHER = (Reason.WAITS_FOR_TURN, Reason.RESERVED_FOR_OTHER)


def _alone(work: Workload) -> Workload:
    """It runs as it is, or asks for one GPU."""
    if work.phase is Phase.RUNNING:
        return work
    return replace(work, gpus=1000, members=Members(), elastic=False, priority_class="normal")


def _entitled(made: Plan) -> dict[tuple[str, str], float]:
    shares = made.fair_share.items()
    return {(q, kind): s.fair_share for q, kinds in shares for kind, s in kinds.items()}


@given(lent())
def test_each_reclaim_strictly_reduces_what_leaves_hold_above_fair_share(world: Snapshot) -> None:
    """Law 4, second half: every victim's leaf is above its share when it goes, or above its nominal where
    the leaf it goes for is inside its own; and that leaf stays inside its share, or comes closer to it though
    a part of a gang sticks out. Decisions stand in the order in which they fell.
    """
    made = plan(world)
    work = {w.name: w for w in world.workloads}
    holds = held(world, with_leaving=False)
    for decision in acts_and_promises(made):
        mine, kind = work[decision.workload], decision.gpu_class or ""
        key = (mine.queue, kind)
        fair = made.fair_share[mine.queue][kind].fair_share
        gpus = mine.gpus * decision.members
        if decision.action is Action.SHRINK:
            gpus -= mine.gpus * sum(mine.placement.values())
        if decision.reason is Reason.RECLAIMED and holds[key] <= fair:
            winner = work[decision.for_workload or ""]
            need = winner.gpus * winner.members.min
            covers = _nominal(world, winner.queue, kind)
            assert holds[winner.queue, kind] + need <= covers, decision
            assert holds[key] > _nominal(world, *key), decision
        holds[key] += -gpus if decision.action is Action.EVICT else gpus
        served = {d.for_workload for d in made.decisions if d.reason is Reason.RECLAIMED}
        if decision.workload in served and decision.action is Action.RESERVE:
            assert holds[key] - fair <= max(0.01, fair - (holds[key] - gpus)), decision


def _nominal(world: Snapshot, queue: str, kind: str) -> int:
    return next(q.quotas.get(kind, Quota()).nominal for q in world.queues if q.name == queue)


@given(scattered())
def test_who_moves_is_seated_again_and_the_gang_it_moves_for_starts(world: Snapshot) -> None:
    made = plan(world)
    moves = [d for d in made.decisions if d.action is Action.MOVE]
    work = {w.name: w for w in world.workloads}
    for move in moves:
        assert sum(move.placement.values()) == sum(work[move.workload].placement.values())
        former = _seats(work[move.workload].placement, work[move.workload].devices)
        assert not former & _seats(move.placement, move.devices)
        assert move.lost_gpu_s > 0 or work[move.workload].started == world.now
    after = plan(let_leave(apply(world, made), requeue=False))
    started = {d.workload for d in after.decisions if d.action is Action.ADMIT}
    assert {d.for_workload for d in moves} <= started
    assert len(moves) <= world.policy.max_moves * len(started)


def _seats(
    placement: Mapping[str, int], devices: Mapping[str, tuple[int, ...]]
) -> set[tuple[str, int | None]]:
    """Nodes, and of shares of GPUs the GPUs."""
    shared = {(node, gpu) for node, gpus in devices.items() for gpu in gpus}
    return shared or {(node, None) for node in placement}


def _queues_up(world: Snapshot, name: str) -> list[str]:
    by_name = {q.name: q for q in world.queues}
    work = next(w for w in world.workloads if w.name == name)
    found, queue = [], work.queue
    while queue:
        found.append(queue)
        queue = by_name[queue].parent or ""
    return found


@given(worlds())
def test_what_cannot_be_preempted_starts_only_inside_nominal(world: Snapshot) -> None:
    """Law 5."""
    before = _fixed(world)
    after = _fixed(apply(world, plan(world)))
    for queue in world.queues:
        for kind in CLASSES:
            if after[queue.name, kind] > before[queue.name, kind]:
                assert after[queue.name, kind] <= queue.quotas.get(kind, Quota()).nominal


def _fixed(world: Snapshot) -> dict[tuple[str, str], int]:
    only = replace(
        world, workloads=tuple(w for w in world.workloads if w.priority_class == "fixed")
    )
    return held(only)


@given(worlds())
def test_evictions_respect_time_budget_and_cap(world: Snapshot) -> None:
    """Laws 6 and 7."""
    made = plan(world)
    work = {w.name: w for w in world.workloads}
    rank = {p.name: p for p in world.priority_classes}
    spent: dict[str, int] = {}
    for_whom: dict[str, int] = {}
    for decision in made.decisions:
        if decision.action is not Action.EVICT or decision.for_workload is None:
            continue
        victim, winner = work[decision.workload], work[decision.for_workload]
        kind = rank[victim.priority_class]
        assert kind.preemptible
        assert victim.started is not None
        shield = _min_run_time_s(world, victim.name, winner.name)
        shield = kind.min_run_time_s if shield is None else shield
        assert victim.started + timedelta(seconds=shield) <= world.now
        assert winner.submitted + timedelta(seconds=world.policy.preemption_delay_s) <= world.now
        core = min(decision.members, victim.members.min) if victim.elastic else decision.members
        gpus = victim.gpus * core
        for_whom[winner.name] = for_whom.get(winner.name, 0) + gpus
        for queue in _queues_up(world, victim.name):
            spent[queue] = spent.get(queue, 0) + gpus
    for queue in world.queues:
        if queue.eviction_budget_gpus is not None:
            assert spent.get(queue.name, 0) <= queue.eviction_budget_gpus
    if world.policy.eviction_cap is not None:
        for name, gpus in for_whom.items():
            asked = work[name].gpus * work[name].members.min
            assert gpus <= world.policy.eviction_cap * asked


def _min_run_time_s(world: Snapshot, victim: str, winner: str) -> int | None:
    """What the victim's queue below the common ancestor states, or the nearest above that does."""
    mine, other = _queues_up(world, victim), _queues_up(world, winner)
    apart = max((i for i, queue in enumerate(mine) if queue not in other), default=0)
    by_name = {q.name: q for q in world.queues}
    stated = (by_name[queue].min_run_time_s for queue in mine[apart:])
    return next((seconds for seconds in stated if seconds is not None), None)


@given(worlds(), st.integers(0, 10**6))
def test_order_of_rows_changes_nothing(world: Snapshot, seed: int) -> None:
    """Law 8, byte for byte."""
    dice = Random(seed)
    mixed = replace(
        world,
        **{
            part: tuple(dice.sample(rows, len(rows)))
            for part in ("gpu_classes", "nodes", "queues", "priority_classes", "workloads")
            if (rows := getattr(world, part))
        },
    )
    assert repr(plan(mixed)) == repr(plan(world))


@given(organisations(), st.data())
def test_raising_a_quota_never_lowers_the_own_share(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    """Law 9."""
    queue = data.draw(st.sampled_from(snapshot.queues))
    kind = data.draw(st.sampled_from(CLASSES))
    quota = queue.quotas.get(kind, Quota())
    field = data.draw(st.sampled_from(["nominal", "weight", "borrowing_limit"]))
    more = {
        "nominal": lambda: quota.nominal + 1000 * data.draw(st.integers(1, 6)),
        "weight": lambda: quota.weight + data.draw(st.sampled_from([0.5, 1.0, 4.0])),
        "borrowing_limit": lambda: (
            None
            if quota.borrowing_limit is None
            else quota.borrowing_limit + 1000 * data.draw(st.integers(1, 6))
        ),
    }[field]()
    raised = replace(queue, quotas={**queue.quotas, kind: replace(quota, **{field: more})})
    after = replace(
        snapshot, queues=tuple(raised if q.name == queue.name else q for q in snapshot.queues)
    )
    was, now = divide(snapshot)[queue.name][kind], divide(after)[queue.name][kind]
    assert now.fair_share >= was.fair_share - 0.01


@given(worlds())
def test_frame_kept_up_in_place_plans_like_a_fresh_one(world: Snapshot) -> None:
    frame = encode(world)
    made = plan_frame(frame)
    assert decode(frame, made) == plan(world)

    first = plan(world)
    before = [d.workload for d in acts(first)]
    carry_out(frame, made, instantly=False)
    frame.tree.budget[:] = encode(apply(world, first)).tree.budget
    again = plan_frame(frame)
    if not claims_what_was_lent(first, plan(apply(world, first))):
        assert not again.admitted(), before
        assert not again.evicted(), before


def test_empty_snapshot_gives_an_empty_plan() -> None:
    made: Plan = plan(Snapshot(now=NOW))
    assert made.decisions == ()
