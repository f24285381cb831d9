"""For whom somebody left is known to the next cycle, whatever becomes of the worker in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.engine import model as m
from scheduling.models import Cluster, Decision, Eviction, EvictionRule, LapseCause, State
from scheduling.services.cycle import run as cycle
from scheduling.services.cycle.project import claims as projected
from scheduling.services.snapshot import build
from scheduling.services.words.rules import label_of
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.kube import JOBS, World

GRACE_S = 3600


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> list[m.Snapshot]:
    """What each cycle planned."""
    seen: list[m.Snapshot] = []
    decide = cycle._decide

    def listen(one: Any, snapshot: m.Snapshot, watch: Any) -> Any:
        seen.append(snapshot)
        return decide(one, snapshot, watch)

    monkeypatch.setattr(cycle, "_decide", listen)
    return seen


@pytest.fixture
def owed(world: World) -> World:
    """Research runs on all 16 GPUs, one job a node, and products asks for the 8 that it lent."""
    Cluster.objects.update(preemption_delay_s=0, fair_share_delay_s=0)
    for name in ("first", "second"):
        world.job(name, gpus=8, grace_s=GRACE_S)
    world.cycles_until(lambda: world.row("second").state == State.RUNNING)
    world.job("owner", gpus=8, queue="products")
    return world


def named(snapshot: m.Snapshot, name: str) -> m.Workload:
    return next(work for work in snapshot.workloads if work.name.endswith(f"/{name}"))


def victim_of(world: World) -> str:
    return str(Decision.objects.get(action="evict").workload.name)


def kill(world: World) -> None:
    """Nothing that was in the worker's memory is left."""
    workers.close_all()


def die_before(monkeypatch: pytest.MonkeyPatch, step: str) -> Callable[[], None]:
    """The worker dies as it comes to ``step`` of a cycle; returns what ends that."""
    was = getattr(cycle, step)

    def die(*_: Any, **__: Any) -> Any:
        raise SystemExit(9)

    monkeypatch.setattr(cycle, step, die)
    return lambda: monkeypatch.setattr(cycle, step, was)


def test_whom_somebody_leaves_for_claims_the_seats_in_the_next_snapshot(
    owed: World, snapshots: list[m.Snapshot]
) -> None:
    owed.cycle()
    owed.cycle()
    claimant, victim = named(snapshots[-1], "owner"), named(snapshots[-1], victim_of(owed))
    assert (claimant.awaits_victims, claimant.gpu_class) == (True, "h100")
    assert claimant.placement == victim.placement
    assert (victim.leaving, victim.evictions) == (True, 1)
    assert (victim.last_evicted, victim.last_evicted_for) == (snapshots[-2].now, claimant.name)


def test_eviction_in_the_ledger_has_the_rule_of_the_engine_that_let_it_go(owed: World) -> None:
    owed.cycle()
    owed.cycle()
    made = Eviction.objects.get()
    assert (made.rule, made.allowed_by) == (EvictionRule.RECLAIM, m.Rule.ABOVE_FAIR_SHARE)
    assert label_of(made.rule, made.allowed_by) == "above fair share"
    assert "research held 16 h100, 8 above its fair share of 8" in made.sentence


def test_claim_outlives_the_worker_that_made_it(owed: World, snapshots: list[m.Snapshot]) -> None:
    owed.cycle()
    owed.cycle()
    kill(owed)
    owed.cycle()
    before, after = (named(s, "owner") for s in snapshots[-2:])
    assert after.awaits_victims
    assert before.placement == after.placement


def test_eviction_that_was_committed_before_the_worker_died_is_carried_out_by_the_next(
    owed: World, snapshots: list[m.Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    owed.catch_up()
    lives = die_before(monkeypatch, "_enforce")
    with pytest.raises(SystemExit):
        owed.cycle()
    lives()
    kill(owed)
    victim = victim_of(owed)
    assert not owed.read(victim)["spec"]["suspend"]

    owed.cycle()
    assert owed.read(victim)["spec"]["suspend"]
    assert Decision.objects.filter(action="evict").count() == 1
    work = named(snapshots[-1], victim)
    assert (work.leaving, work.evictions, work.last_evicted) == (True, 1, snapshots[-2].now)
    assert named(snapshots[-1], "owner").awaits_victims


def test_eviction_that_the_cluster_does_not_take_in_time_lapses_with_its_claim(
    owed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    owed.catch_up()
    lives = die_before(monkeypatch, "_enforce")
    with pytest.raises(SystemExit):
        owed.cycle()
    lives()
    kill(owed)
    monkeypatch.setattr(projected, "UNDONE", timedelta(0))
    owed.cycle()
    (line,) = Decision.objects.filter(action="lapse")
    assert (line.workload.name, line.numbers["rule"]) == ("owner", "overdue")


def test_claim_is_kept_once_its_workload_starts_and_nobody_left_in_vain(
    world: World, snapshots: list[m.Snapshot]
) -> None:
    Cluster.objects.update(preemption_delay_s=0, fair_share_delay_s=0)
    for name in ("first", "second"):
        world.job(name, gpus=8, grace_s=0)
    world.cycles_until(lambda: world.row("second").state == State.RUNNING)
    world.job("owner", gpus=8, queue="products")
    world.cycles_until(lambda: world.row("owner").state == State.RUNNING)
    row = world.row("owner")
    assert (row.claim, row.taken_gpus) == (None, 0)
    assert Eviction.objects.get().in_vain == ""


def test_claim_of_work_that_is_deleted_lapses_and_its_eviction_says_why(owed: World) -> None:
    owed.cycle()
    owed.cycle()
    assert owed.row("owner").claim is not None
    owed.kube.delete(f"{JOBS}/owner")
    owed.cycle()
    assert owed.row("owner").claim is None
    assert Eviction.objects.get().in_vain == LapseCause.GONE
    line = Decision.objects.get(action="lapse")
    assert (line.workload.name, line.reason) == ("owner", "claim_lapsed")
    assert line.numbers == {"rule": "gone", "victims": 1}


def test_claim_of_work_that_ended_unseen_lapses_in_the_next_worker(owed: World) -> None:
    owed.cycle()
    owed.cycle()
    row = owed.row("owner")
    row.state, row.outcome = State.FINISHED, "cancelled"
    row.save()
    owed.kube.delete(f"{JOBS}/owner")
    kill(owed)
    owed.cycle()
    assert owed.row("owner").claim is None
    assert Eviction.objects.get().in_vain == LapseCause.GONE


def test_claim_on_a_node_that_is_gone_lapses_with_that_cause(
    owed: World, snapshots: list[m.Snapshot]
) -> None:
    owed.cycle()
    owed.cycle()
    (node,) = named(snapshots[-1], "owner").placement
    owed.kube.delete(f"/api/v1/nodes/{node}")
    owed.cycle()
    assert not named(snapshots[-1], "owner").placement
    assert Decision.objects.get(action="lapse").numbers["rule"] == "seats_gone"
    assert Eviction.objects.get().in_vain == LapseCause.SEATS_GONE


def test_evictions_are_counted_for_a_day(owed: World, snapshots: list[m.Snapshot]) -> None:
    owed.cycle()
    owed.cycle()
    row = owed.row(victim_of(owed))
    row.recent_evictions = ["2020-01-01T00:00:00+00:00"]
    row.save()
    kill(owed)
    owed.cycle()
    victim = named(snapshots[-1], row.name)
    assert (victim.evictions, victim.last_evicted) == (0, row.last_evicted_at)


def test_claims_cost_no_query_of_their_own_once_they_are_written(owed: World) -> None:
    owed.cycle()
    owed.cycle()
    owed.cycle()
    with CaptureQueriesContext(connection) as asked:
        owed.cycle()
    assert owed.row("owner").claim is not None
    assert [q["sql"] for q in asked if '"claim"' in q["sql"]] == []


def test_cycle_that_forgets_a_claim_says_so(
    owed: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    owed.cycle()
    for part in ("_remembered", "_claimed"):
        monkeypatch.setattr(build, part, lambda *_, **__: {})
    owed.cycle()
    assert "default/owner: claim None, expected {'gpu_class': 'h100'" in caplog.text


def test_policy_says_how_long_a_claim_is_held_past_its_time(
    owed: World, snapshots: list[m.Snapshot]
) -> None:
    Cluster.objects.update(claim_hold_s=77)
    owed.cycle()
    assert snapshots[-1].policy.claim_hold_s == 77
