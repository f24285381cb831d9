"""Learned prices of evictions: weights over named features, among those who may leave by merit."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import (
    Action,
    GpuClass,
    Members,
    Node,
    Phase,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Snapshot,
    Workload,
    plan,
)
from scheduling.engine.document import dump, parse
from scheduling.engine.features import MOST_WEIGHT, VICTIM_FEATURES, VICTIM_NAMES, vector
from scheduling.engine.model import Sharing, SnapshotError
from scheduling.simulation.laws.room import check
from tests.scheduling.engine.evolve import apply, check_plan, let_leave
from tests.scheduling.engine.test_laws_by_merit import by_merit

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
WEIGHTS = st.fixed_dictionaries({name: st.floats(-5, 5) for name in VICTIM_NAMES})


def two(weights: dict[str, float], *, sharing: str = "throughput", **second: Any) -> Snapshot:
    """``first`` and ``second`` run alike on four GPUs each, and ``short`` waits for four."""
    run = {
        "priority_class": "train", "gpus": 4, "submitted": NOW - timedelta(hours=9), "state": "running",
        "started": NOW - timedelta(hours=3), "checkpointed": NOW - timedelta(minutes=1), "rank_s": 72_000,
        "gpu_class": "h100",
    }  # fmt: skip
    return parse(
        {
            "now": NOW,
            "policy": {"sharing": sharing, "victim_weights": weights},
            "gpu_classes": [{"name": "h100"}],
            "priority_classes": [{"name": "train"}],
            "nodes": [{"name": n, "gpu_class": "h100", "gpus": 4} for n in ("n1", "n2")],
            "queues": [
                {"name": q, "played_along": True, "quotas": {"h100": {"nominal": nominal}}}
                for q, nominal in (("a", 1), ("b", 5), ("c", 2))
            ],
            "workloads": [
                {**run, "name": "first", "queue": "a", "placement": {"n1": 1}},
                {**run, "name": "second", "queue": "a", "placement": {"n2": 1}} | second,
                {
                    "name": "short", "queue": "c", "priority_class": "train", "gpus": 4, "rank_s": 60,
                    "submitted": NOW - timedelta(hours=1), "virtual_start": NOW - timedelta(minutes=50),
                },
            ],
        }
    )  # fmt: skip


def gone(world: Snapshot) -> list[str]:
    return [d.workload for d in plan(world).decisions if d.reason is Reason.GIVES_WAY]


LATER = {"checkpointed": NOW - timedelta(seconds=30)}
EARLIER = {"checkpointed": NOW - timedelta(seconds=100)}
HALVES = {"gpus": 2, "members": {"min": 2, "max": 2}, "placement": {"n2": 2}}


@pytest.mark.parametrize(
    ("weights", "second", "leaves"),
    [
        ({}, {}, "first"),
        ({}, LATER, "second"),
        ({"at_risk": -1.0}, LATER, "second"),
        ({"at_risk": 3.0}, LATER, "first"),
        ({"at_risk": 3.0}, EARLIER, "second"),
        ({"expected_rest": 1.0}, {"rank_s": 100_000}, "second"),
        ({"expected_rest": 1.0}, {"rank_s": 50_000}, "first"),
        ({"above_share": -2.0}, {"queue": "b"}, "second"),
        ({"above_share": 2.0}, {"queue": "b"}, "first"),
        ({"ran": -1.0}, {"started": NOW - timedelta(hours=1)}, "second"),
        ({"ran": 1.0}, {"started": NOW - timedelta(hours=1)}, "first"),
        ({"evicted": -1.0}, {"evictions": 1}, "first"),
        ({"evicted": 1.0}, {"evictions": 1}, "second"),
    ],
)
def test_a_weight_decides_which_of_two_that_may_leave_does(
    weights: dict[str, float], second: dict[str, Any], leaves: str
) -> None:
    assert gone(two(weights, **second)) == [leaves]


@pytest.mark.parametrize(("weight", "leaves"), [(0.0, "large"), (-1.0, "small")])
def test_a_weight_of_size_decides_between_a_large_and_a_small_one(
    weight: float, leaves: str
) -> None:
    """The large one frees more beyond need; of two that are enough that one is cheaper by the rule."""
    world = two({"size": weight})
    first, second, short = world.workloads
    nodes = (replace(world.nodes[0], gpus=8000), world.nodes[1])
    large, small = replace(first, name="large", gpus=8000), replace(second, name="small")
    queues = tuple(
        replace(q, quotas={"h100": replace(q.quotas["h100"], nominal=4000)}) for q in world.queues
    )

    assert gone(replace(world, nodes=nodes, queues=queues, workloads=(large, small, short))) == [
        leaves
    ]


def test_the_promise_weighs_who_leaves_as_well() -> None:
    ahead = {"sharing": "promise", "started": NOW - timedelta(hours=1)}

    assert gone(two({"ran": 1.0}, **ahead)) == ["first"]
    assert gone(two({"ran": -1.0}, **ahead)) == ["second"]


@pytest.mark.parametrize(
    "shielded",
    [
        {"evictions": 3},
        {"checkpointed": NOW - timedelta(minutes=10)},
        {"rank_s": 120},
    ],
)
def test_no_weight_takes_whom_the_rules_leave_alone(shielded: dict[str, Any]) -> None:
    drawn_to = dict.fromkeys(VICTIM_NAMES, 0.0) | {"evicted": 100.0, "at_risk": 100.0}
    drawn_to["expected_rest"] = -100.0

    assert gone(two(drawn_to, **shielded)) == ["first"]


def test_no_weight_makes_an_eviction_so_dear_that_nobody_leaves() -> None:
    most = dict.fromkeys(VICTIM_NAMES, -MOST_WEIGHT)

    assert len(gone(two(most, evictions=2))) == 1


def test_victim_weights_change_nothing_where_shares_are_by_weight() -> None:
    weighed, plain = (two(w, sharing="fair_share") for w in ({"ran": -1.0}, {}))

    assert plan(weighed) == plan(plain)


def test_an_unknown_feature_of_victims_is_refused_with_those_there_are() -> None:
    with pytest.raises(SnapshotError) as refused:
        two({"waited": 1.0})

    assert "victim_weights.waited" in str(refused.value)
    assert "at_risk" in str(refused.value)


def test_a_weight_of_victims_past_its_bound_is_refused() -> None:
    with pytest.raises(SnapshotError):
        two({"size": 101.0})


def test_weights_of_victims_stand_in_the_file_beside_those_of_the_order() -> None:
    world = two({"size": -0.5})
    both = replace(world, policy=replace(world.policy, order_weights={"size": -1.0}))

    found = parse(dump(both)).policy
    assert (found.order_weights, found.victim_weights) == ({"size": -1.0}, {"size": -0.5})


def test_every_feature_of_victims_has_a_name_of_its_own_a_unit_and_a_sentence() -> None:
    assert len(set(VICTIM_NAMES)) == len(VICTIM_FEATURES)
    assert all(f.unit and f.sentence.endswith(".") for f in VICTIM_FEATURES)


def test_no_weights_of_victims_are_no_vector() -> None:
    assert vector({}, VICTIM_NAMES) == []
    assert asdict(two({}).policy)["victim_weights"] == {}


@st.composite
def crowded(draw: st.DrawFn) -> Snapshot:
    """Nodes full of work that has told of checkpoints, and short work that waits for some of it to leave."""
    gpus, works = draw(st.integers(3, 6)), []
    nodes = tuple(Node(f"n{n}", "h100", 1000 * gpus) for n in range(draw(st.integers(2, 4))))
    for node in nodes:
        free = gpus
        while free > 0:
            works.append(_running(draw, f"r{len(works)}", node.name, draw(st.integers(1, free))))
            free -= works[-1].gpus // 1000
    for number in range(draw(st.integers(1, 3))):
        most = gpus * len(nodes)
        works.append(_waiting(draw, f"w{number}", draw(st.integers(1, gpus)), most))
    queues = tuple(
        Queue(
            name, quotas={"h100": Quota(1000 * draw(st.integers(0, 6)))}, played_along=True,
            min_run_time_s=draw(st.sampled_from([None] * 4 + [3600])),
            eviction_budget_gpus=draw(st.sampled_from([None] * 4 + [2000])),
        )
        for name in "ab"
    )  # fmt: skip
    sharing = draw(st.sampled_from([Sharing.PROMISE, Sharing.THROUGHPUT]))
    cap = draw(st.sampled_from([None] * 4 + [1.5]))
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=nodes,
        priority_classes=(PriorityClass("train", 1), PriorityClass("fixed", 1, False)),
        queues=queues,
        workloads=tuple(works),
        policy=Policy(sharing=sharing, eviction_cap=cap),
    )


def _running(draw: st.DrawFn, name: str, node: str, gpus: int) -> Workload:
    started = NOW - timedelta(minutes=draw(st.sampled_from([20, 90, 90, 400])))
    told = NOW - timedelta(seconds=draw(st.sampled_from([0, 30, 60, 110, 280, 900])))
    hours_ago = draw(st.sampled_from([None, None, 6]))
    return Workload(
        name=name,
        queue=draw(st.sampled_from("ab")),
        priority_class=draw(st.sampled_from(["train"] * 6 + ["fixed"])),
        submitted=started,
        gpus=1000 * gpus,
        gpu_classes=("h100",),
        phase=Phase.RUNNING,
        started=started,
        gpu_class="h100",
        placement={node: 1},
        checkpointed=told,
        rank_s=draw(st.sampled_from([600.0, 72_000.0, 200_000.0, 400_000.0])),
        evictions=draw(st.sampled_from([0, 0, 1, 3])),
        virtual_start=None if hours_ago is None else NOW - timedelta(hours=hours_ago),
    )


def _waiting(draw: st.DrawFn, name: str, gpus: int, most: int) -> Workload:
    members = draw(st.sampled_from([1, 1, most // gpus]))
    began = draw(st.sampled_from([None, *[NOW - timedelta(minutes=50)] * 3]))
    return Workload(
        name=name,
        queue=draw(st.sampled_from("ab")),
        priority_class="train",
        submitted=NOW - timedelta(minutes=draw(st.sampled_from([5, 60, 60]))),
        gpus=1000 * gpus,
        members=Members(members, members),
        gpu_classes=("h100",),
        rank_s=draw(st.sampled_from([60.0, 60.0, 1200.0])),
        virtual_start=began,
    )


WORLDS = st.one_of(crowded(), by_merit())


def weighed(world: Snapshot, weights: dict[str, float], **policy: Any) -> Snapshot:
    return replace(world, policy=replace(world.policy, victim_weights=weights, **policy))


@pytest.mark.long
@given(WORLDS)
def test_weights_of_zero_plan_what_no_weights_plan(world: Snapshot) -> None:
    assert plan(weighed(world, dict.fromkeys(VICTIM_NAMES, 0.0))) == plan(world)


@pytest.mark.long
@given(WORLDS, WEIGHTS)
def test_any_weights_of_victims_keep_the_laws(world: Snapshot, weights: dict[str, float]) -> None:
    world = weighed(world, weights)
    made = plan(world)

    check_plan(world, made)
    check(world, made)


@pytest.mark.long
@given(WORLDS, WEIGHTS)
def test_any_weights_of_victims_take_only_whom_the_rules_allow(
    world: Snapshot, weights: dict[str, float]
) -> None:
    world = weighed(world, weights, max_evictions=2)
    by_name = {work.name: work for work in world.workloads}
    ranks = {rank.name: rank for rank in world.priority_classes}

    for line in plan(world).decisions:
        if line.reason is not Reason.GIVES_WAY:
            continue
        work, other = by_name[line.workload], by_name[str(line.for_workload)]
        assert work.evictions < 2
        assert ranks[work.priority_class].preemptible
        assert ranks[work.priority_class].value <= ranks[other.priority_class].value
        assert may_leave(world, work, other)


def may_leave(world: Snapshot, work: Workload, other: Workload) -> bool:
    """Past the min run time of its queue, fresh or silent; two hours ahead of its own quota where its subtree
    promises, or ten times as long.
    """
    now, started, rule = world.now, work.started or world.now, rule_of(world, work.queue)
    least_s = next((q.min_run_time_s for q in world.queues if q.name == work.queue), None) or 0
    lost_s = (now - max(started, work.checkpointed or started)).total_seconds()
    ahead = work.virtual_start is None or lead_s(world, work) > 7200
    ahead = ahead and rule is Sharing.PROMISE
    longer = 10 * expected(other, rule) < expected(work, rule) < float("inf")
    fresh = lost_s > 7200 or lost_s <= (300 if ahead else 120)
    return now >= started + timedelta(seconds=least_s) and fresh and (ahead or longer)


def rule_of(world: Snapshot, name: str) -> Sharing:
    """Below a queue that shares by merit everybody does, as it does."""
    queue = next(q for q in world.queues if q.name == name)
    above = rule_of(world, queue.parent) if queue.parent else world.policy.sharing
    return queue.sharing or above if above is Sharing.FAIR_SHARE else above


def expected(work: Workload, rule: Sharing) -> float:
    if work.rank_s is None:
        return float("inf")
    gpus = work.gpus * work.members.max / 1000
    return work.rank_s * (gpus if rule is Sharing.PROMISE else gpus**0.25)


def lead_s(world: Snapshot, work: Workload) -> float:
    began, started = work.virtual_start or world.now, work.started or world.now
    held = (work.checkpointed or started) - started
    return work.saved_s + max(0.0, held.total_seconds()) + (began - world.now).total_seconds()


@pytest.mark.long
@given(WORLDS, WEIGHTS)
def test_evictions_by_any_weights_end(world: Snapshot, weights: dict[str, float]) -> None:
    """Carried out again and again, plans come to rest: nobody evicts back and forth."""
    world = weighed(world, weights)
    for _ in range(12):
        made = plan(world)
        check_plan(world, made)
        if not any(d.action is Action.EVICT for d in made.decisions):
            return
        world = let_leave(apply(world, made))
    pytest.fail("plans evict without an end")


@pytest.mark.long
@given(WORLDS, WEIGHTS, st.randoms())
def test_order_of_the_snapshot_changes_nothing_by_any_weights(
    world: Snapshot, weights: dict[str, float], dice: Any
) -> None:
    world = weighed(world, weights)
    works = list(world.workloads)
    dice.shuffle(works)

    again = plan(replace(world, workloads=tuple(works)))

    assert plan(world).decisions == again.decisions


@pytest.mark.long
@given(WORLDS, WEIGHTS, st.sampled_from(list(Sharing)))
def test_planning_again_by_any_weights_does_nothing_more(
    world: Snapshot, weights: dict[str, float], sharing: Sharing
) -> None:
    """Of what the plan itself decides: nobody else gives way once it is carried out."""
    world = weighed(world, weights, sharing=sharing)
    made = plan(world)
    after = plan(apply(world, made))

    left = {d.workload for d in made.decisions if d.reason is Reason.GIVES_WAY}
    assert not left & {d.workload for d in after.decisions if d.action is Action.EVICT}
