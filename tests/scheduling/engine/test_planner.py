"""A planner that remembers earlier snapshots says what a plan from scratch says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import (
    GpuClass,
    Members,
    NodeSet,
    Outline,
    Plan,
    Planner,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    SnapshotError,
    Workload,
    encode,
    plan,
)
from scheduling.engine.model import PredictedRunTime
from scheduling.engine.snapshot.workload_columns import Roster
from tests.scheduling.engine.evolve import apply, let_leave, wait
from tests.scheduling.engine.worlds import NOW, leaves, workloads, worlds


def carried_out(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    return let_leave(apply(wait(snapshot, 100), plan(snapshot)), requeue=draw(st.booleans()))


def some_gone(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    kept = tuple(w for w in snapshot.workloads if draw(st.booleans()))
    return replace(snapshot, workloads=kept)


def some_more(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    """Their names lie between those of the others, and some ask for more classes."""
    known = {w.name for w in snapshot.workloads}
    classes = tuple(c.name for c in snapshot.gpu_classes)
    more = [
        replace(w, user=draw(st.sampled_from(["ann", "new"])), gpu_classes=classes, elastic=False)
        for w in draw(workloads(draw(st.sampled_from("avx")), leaves(snapshot.queues), 4))
        if w.name not in known
    ]
    rigid = [replace(w, members=Members(w.members.min, w.members.min)) for w in more]
    return replace(snapshot, workloads=(*rigid, *snapshot.workloads))


def some_edited(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    works = tuple(
        replace(w, held=not w.held) if draw(st.booleans()) else w for w in snapshot.workloads
    )
    return replace(snapshot, workloads=works)


def one_queue_more(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    """First in the order of names, so that others get other numbers."""
    kind = snapshot.gpu_classes[0].name
    queue = Queue("a0", quotas={kind: Quota(4000)})
    return replace(snapshot, queues=(*(q for q in snapshot.queues if q.name != "a0"), queue))


def some_bound(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    """To the nodes of a set that is new, or other than it was; sets that nobody names any more are gone."""
    names = sorted({node.name for node in snapshot.nodes})
    fresh = NodeSet(draw(st.sampled_from("bdf")), frozenset(draw(st.sets(st.sampled_from(names)))))
    works = tuple(
        replace(w, node_set=draw(st.sampled_from([None, fresh.name]))) if draw(st.booleans()) else w
        for w in snapshot.workloads
    )
    used = {work.node_set for work in works}
    sets = (fresh, *(s for s in snapshot.node_sets if s.name != fresh.name))
    kept = tuple(s for s in sets if s.name in used)
    return replace(snapshot, workloads=works, node_sets=kept)


def some_predicted(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    works = tuple(
        replace(w, predicted=PredictedRunTime(600, draw(st.sampled_from([600, 3600]))))
        if draw(st.booleans())
        else w
        for w in snapshot.workloads
    )
    return replace(snapshot, workloads=works)


def other_quantile(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    quantile = draw(st.sampled_from([0.5, 0.8, 0.9]))
    return replace(snapshot, policy=replace(snapshot.policy, backfill_quantile=quantile))


def other_world(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    return draw(worlds())


Change = Callable[[st.DrawFn, Snapshot], Snapshot]
CHANGES: tuple[Change, ...] = (
    carried_out, some_gone, some_more, some_edited, some_bound, some_predicted, other_quantile,
    one_queue_more, other_world,
)  # fmt: skip


@st.composite
def courses(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots of one cluster, most values of which are the very objects of the snapshot before."""
    course = [draw(worlds())]
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5)):
        course.append(change(draw, course[-1]))
    return course


def assert_says(outline: Outline, whole: Plan) -> None:
    """The acts in their order, the same words for everybody, and the columns of the waits beside them."""
    waits = outline.waits.spell(range(len(outline.waits)))
    names = {d.workload for d in waits}
    assert outline.fair_share == whole.fair_share
    assert list(outline.acts) == [d for d in whole.decisions if d.workload not in names]
    by_name = {d.workload: d for d in whole.decisions}
    assert waits == [by_name[name] for name in outline.waits.names]
    assert list(outline.waits.reasons) == [d.reason for d in waits]
    assert list(outline.waits.positions) == [d.position or 0 for d in waits]


@given(courses())
def test_planner_says_after_any_snapshots_what_a_plan_from_scratch_says(
    course: list[Snapshot],
) -> None:
    planner = Planner()
    for snapshot in course:
        assert_says(planner.plan(snapshot), plan(snapshot))


@given(courses())
def test_frame_of_a_roster_is_array_by_array_the_frame_from_scratch(course: list[Snapshot]) -> None:
    roster = Roster()
    for snapshot in course:
        kept, fresh = encode(snapshot, roster), encode(snapshot)
        for part in ("work", "holds", "pool", "users"):
            pairs = zip(getattr(kept, part), getattr(fresh, part), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs), part
        assert (kept.slot_names, kept.pairs) == (fresh.slot_names, fresh.pairs)


def test_roster_tells_ends_at_the_quantile_of_the_newest_snapshot() -> None:
    snapshot = cluster(work("w", predicted=PredictedRunTime(600, 3600)))
    roster = Roster()
    told = [
        encode(replace(snapshot, policy=Policy(backfill_quantile=q)), roster).work.ends_within[0]
        for q in (0.9, 0.5, 0.9)
    ]

    assert told == [3600, pytest.approx(600), 3600]


def test_roster_keeps_no_room_for_wishes_of_who_is_gone() -> None:
    both = (GpuClass("a100"), GpuClass("h100"))
    picky, other = work("w", gpu_classes=("h100",)), work("x")
    roster = Roster()
    encode(replace(cluster(picky, other), gpu_classes=both), roster)
    frame = encode(replace(cluster(picky), gpu_classes=both), roster)

    assert frame.work.wish.shape[0] == 1


def cluster(*workloads: Workload) -> Snapshot:
    return Snapshot(
        NOW,
        gpu_classes=(GpuClass("h100"),),
        queues=(Queue("q"),),
        priority_classes=(PriorityClass("train"),),
        workloads=workloads,
    )


def work(name: str, **more: Any) -> Workload:
    return Workload(name, "q", "train", NOW, **more)


def test_waits_asked_for_alone_say_what_they_say_together() -> None:
    waits = Planner().plan(cluster(*(work(f"w{i}") for i in range(5)))).waits

    assert waits.spell([3, 1]) == [waits.spell(range(5))[i] for i in (3, 1)]


def test_planner_plans_on_after_a_snapshot_that_contradicts_itself() -> None:
    planner, good = Planner(), work("w")
    planner.plan(cluster(good))
    with pytest.raises(SnapshotError):
        planner.plan(cluster(good, work("x", members=Members(3, 2))))

    assert_says(planner.plan(cluster(good)), plan(cluster(good)))


def test_set_that_is_gone_while_known_work_names_it_is_a_contradiction() -> None:
    planner = Planner()
    bound = replace(cluster(work("v"), work("w", node_set="s")), node_sets=(NodeSet("s"),))
    planner.plan(bound)
    with pytest.raises(SnapshotError) as caught:
        planner.plan(replace(bound, node_sets=()))

    assert [fault[0] for fault in caught.value.faults] == ["workloads[1].node_set"]


def test_contradiction_in_what_is_new_names_its_place_among_all() -> None:
    planner, good = Planner(), work("w")
    planner.plan(cluster(good))
    with pytest.raises(SnapshotError) as caught:
        planner.plan(cluster(good, work("x"), work("w")))

    assert [fault[0] for fault in caught.value.faults] == ["workloads[2].name"]
