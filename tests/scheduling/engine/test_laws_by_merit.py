"""Laws that hold as well where subtrees give out by merit, over random worlds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import (
    Action,
    GpuClass,
    Members,
    Node,
    Phase,
    PriorityClass,
    Quota,
    Reason,
    Snapshot,
    Workload,
    plan,
)
from scheduling.engine.model import Policy, Queue, Sharing
from tests.scheduling.engine.evolve import apply, check_plan, let_leave
from tests.scheduling.engine.worlds import NOW, worlds
from workshop.simulator.laws.room import check

pytestmark = pytest.mark.long

STATED = st.sampled_from([None, None, Sharing.PROMISE, Sharing.THROUGHPUT])
EXPECTED_S = st.sampled_from([None, 60.0, 3600.0, 200_000.0])
HOURS_AGO = st.sampled_from([None, 0.2, 1.0, 30.0])


@st.composite
def by_merit(draw: st.DrawFn) -> Snapshot:
    """A world some of whose subtrees share by promise or throughput."""
    world = draw(worlds())
    sharing = draw(st.sampled_from(list(Sharing)))
    return replace(
        world,
        queues=tuple(_shared(draw, queue) for queue in world.queues),
        workloads=tuple(_standing(draw, world, work) for work in world.workloads),
        policy=replace(world.policy, sharing=sharing, evictions_left=draw(_left())),
    )


def _left() -> st.SearchStrategy[float | None]:
    return st.sampled_from([None, None, 0.0, 1.0])


def _shared(draw: st.DrawFn, queue: Queue) -> Queue:
    return replace(
        queue, sharing=draw(STATED), played_along=draw(st.booleans()), evictions_left=draw(_left())
    )


def _standing(draw: st.DrawFn, world: Snapshot, work: Workload) -> Workload:
    hours = draw(HOURS_AGO)
    began = None if hours is None else world.now - timedelta(hours=hours)
    saved_s = draw(st.sampled_from([0.0, 0.0, 600.0]))
    return replace(work, rank_s=draw(EXPECTED_S), virtual_start=began, saved_s=saved_s)


@given(by_merit())
def test_limits_nodes_gangs_and_reasons_hold_by_merit_too(world: Snapshot) -> None:
    made = plan(world)

    check_plan(world, made)
    check(world, made)


@given(by_merit())
def test_who_gives_way_was_evicted_less_often_than_allowed_and_is_past_its_min_run_time(
    world: Snapshot,
) -> None:
    often = replace(world.policy, max_evictions=1)
    works = tuple(
        replace(w, evictions=i % 2) if w.phase is Phase.RUNNING else w
        for i, w in enumerate(world.workloads)
    )
    world = replace(world, policy=often, workloads=works)
    by_name = {work.name: work for work in world.workloads}

    gone = [by_name[d.workload] for d in plan(world).decisions if d.reason is Reason.GIVES_WAY]

    assert all(work.evictions == 0 for work in gone)
    for work in gone:
        least_s = next(
            (q.min_run_time_s for q in world.queues if q.name == work.queue and q.min_run_time_s), 0
        )
        assert work.started is not None
        assert work.started + timedelta(seconds=least_s) <= world.now


@given(by_merit())
def test_evictions_by_merit_end(world: Snapshot) -> None:
    """Carried out again and again, plans come to rest: nobody evicts back and forth."""
    for _ in range(12):
        made = plan(world)
        check_plan(world, made)
        if not any(d.action is Action.EVICT for d in made.decisions):
            return
        world = let_leave(apply(world, made))
    assert world.policy == Policy(), "plans evict without an end"


@given(by_merit(), st.randoms())
def test_order_of_the_snapshot_changes_nothing_by_merit(world: Snapshot, dice: object) -> None:
    works = list(world.workloads)
    dice.shuffle(works)  # type: ignore[attr-defined]

    again = plan(replace(world, workloads=tuple(works)))

    assert plan(world).decisions == again.decisions


@st.composite
def long_gangs(draw: st.DrawFn) -> Snapshot:
    """Gangs that all fit the cluster with nobody else there wait for it, alone, in a tree of merit."""
    nodes, gpus = draw(st.integers(1, 12)), draw(st.integers(1, 16))
    works = []
    for number in range(draw(st.integers(1, 4))):
        each = draw(st.integers(1, gpus))
        members = draw(st.integers(1, nodes * (gpus // each)))
        works.append(
            Workload(
                name=f"w{number}", queue="team", priority_class="train", submitted=NOW - timedelta(days=2),
                gpus=1000 * each, members=Members(members, members), gpu_classes=("h100",),
                rank_s=draw(st.sampled_from([None, 60.0, 200_000.0])),
            )
        )  # fmt: skip
    top = Queue("top", sharing=draw(st.sampled_from([Sharing.PROMISE, Sharing.THROUGHPUT])))
    nominal = Quota(1000 * draw(st.integers(0, nodes * gpus)))
    team = Queue("team", "top", quotas={"h100": nominal}, played_along=draw(st.booleans()))
    rule = draw(st.sampled_from(list(Sharing)))
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(Node(f"n{n:02}", "h100", 1000 * gpus) for n in range(nodes)),
        priority_classes=(PriorityClass("train", 1),),
        queues=(top, team),
        workloads=tuple(works),
        policy=Policy(sharing=rule),
    )


@given(long_gangs())
def test_whoever_fits_the_empty_cluster_starts_some_day(world: Snapshot) -> None:
    """Whatever starts is over before the next plan: each plan must start somebody."""
    while world.workloads:
        begun = {d.workload for d in plan(world).decisions if d.action is Action.ADMIT}

        assert begun, "a gang that could run alone waits for ever"
        left = tuple(work for work in world.workloads if work.name not in begun)
        world = replace(world, workloads=left)
