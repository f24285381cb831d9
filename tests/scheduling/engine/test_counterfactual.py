"""What would start a waiting workload: one input relaxed, the same cycle planned again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import Action, Members, Plan, Reason, Snapshot, Topology, Workload, plan
from scheduling.engine.document.reader import parse
from scheduling.engine.whatif import replan as replanning
from scheduling.engine.whatif.change import Change, Reach, Relaxation
from scheduling.engine.whatif.relaxations import relaxations
from tests.scheduling.engine.worlds import worlds

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


def _snapshot(**parts: Any) -> Snapshot:
    return parse(
        {
            "now": NOW,
            "gpu_classes": [{"name": "h100"}, {"name": "a100", "exchange_rate": 0.5}],
            "nodes": [{"name": "n1", "gpu_class": "h100", "gpus": 8}],
            "queues": [
                {"name": "team", "quotas": {"h100": {"nominal": 8}, "a100": {"nominal": 8}}}
            ],
            "priority_classes": [{"name": "train", "value": 50}, {"name": "urgent", "value": 90}],
            **parts,
        }
    )


def _runs(name: str, gpus: int, queue: str = "team", node: str = "n1") -> dict[str, Any]:
    return {
        "name": name,
        "queue": queue,
        "priority_class": "train",
        "gpus": gpus,
        "gpu_classes": ["h100"],
        "submitted": "2026-01-05T08:00:00Z",
        "state": "running",
        "started": "2026-01-05T08:00:00Z",
        "placement": {node: 1},
    }


def _waits(gpus: int, **more: Any) -> dict[str, Any]:
    return {
        "name": "w",
        "queue": "team",
        "priority_class": "train",
        "gpus": gpus,
        "gpu_classes": ["h100"],
        "submitted": "2026-01-05T09:30:00Z",
        **more,
    }


def _changes(found: list[Relaxation]) -> dict[Change, str | int]:
    return {r.change: r.value for r in found}


def test_most_gpus_that_are_free_start_it() -> None:
    found = relaxations(_snapshot(workloads=[_runs("old", 5), _waits(8)]), "w")

    assert _changes(found)[Change.FEWER_GPUS] == 3000
    assert found[0].sentence == (
        "With 3 instead of 8 GPUs per member, CPUs and memory in proportion, it would start on h100."
    )


def test_largest_smaller_gang_starts() -> None:
    waiting = _waits(2, members={"min": 4})

    found = relaxations(_snapshot(workloads=[_runs("old", 3), waiting]), "w")

    assert _changes(found)[Change.FEWER_MEMBERS] == 2


def test_class_that_it_does_not_list_starts_it() -> None:
    nodes = [
        {"name": "n1", "gpu_class": "h100", "gpus": 8},
        {"name": "n2", "gpu_class": "a100", "gpus": 8},
    ]

    found = relaxations(_snapshot(nodes=nodes, workloads=[_runs("old", 8), _waits(4)]), "w")

    assert (found[0].change, found[0].value) == (Change.GPU_CLASS, "a100")


def test_most_cpus_that_are_free_start_it() -> None:
    nodes = [{"name": "n1", "gpu_class": "h100", "gpus": 8, "cpus": 32}]
    old = {**_runs("old", 1), "cpus": 12}

    found = relaxations(_snapshot(nodes=nodes, workloads=[old, _waits(2, cpus=21.5)]), "w")

    assert (found[0].change, found[0].value) == (Change.FEWER_CPUS, 20)
    assert found[0].sentence == ("With 20 instead of 21.5 CPUs per member it would start on h100.")


def test_memory_that_no_node_has_is_cut_to_what_the_largest_has() -> None:
    nodes = [{"name": "n1", "gpu_class": "h100", "gpus": 8, "memory_gib": 64}]

    found = relaxations(_snapshot(nodes=nodes, workloads=[_waits(2, memory_gib=100)]), "w")

    assert _changes(found)[Change.LESS_MEMORY] == 64


def test_what_cannot_be_preempted_starts_above_nominal_in_a_class_that_can() -> None:
    classes = [
        {"name": "serve", "value": 70, "preemptible": False},
        {"name": "train", "value": 50},
        {"name": "urgent", "value": 95},
    ]
    queues = [{"name": "team", "quotas": {"h100": {"nominal": 2}}}]
    waiting = _waits(4, priority_class="serve")

    found = relaxations(
        _snapshot(priority_classes=classes, queues=queues, workloads=[waiting]), "w"
    )

    kind = next(r for r in found if r.change is Change.PRIORITY)
    assert kind.sentence == (
        "With priority class train, which may be preempted, it would start on h100."
    )


def test_required_domain_preferred_instead_starts_it() -> None:
    nodes = [
        {"name": f"n{i}", "gpu_class": "h100", "gpus": 8, "topology": {"rack": f"r{i}"}}
        for i in (1, 2)
    ]
    waiting = _waits(4, members={"min": 2}, topology={"required": "rack"})
    running = [_runs("a", 4), _runs("b", 4, node="n2")]
    queues = [{"name": "team", "quotas": {"h100": {"nominal": 16}}}]

    found = relaxations(_snapshot(nodes=nodes, queues=queues, workloads=[*running, waiting]), "w")

    assert found[0].change is Change.TOPOLOGY


def test_higher_priority_says_what_others_give_up() -> None:
    found = relaxations(_snapshot(workloads=[_runs("old", 8), _waits(8)]), "w")

    raised = next(r for r in found if r.change is Change.PRIORITY)
    assert (raised.value, raised.evicts) == ("urgent", 8000)
    assert "once 8 GPUs of others have left" in raised.sentence


def test_other_queue_of_the_person_starts_it() -> None:
    queues = [
        {"name": "other", "quotas": {"h100": {"nominal": 4}}},
        {"name": "team", "quotas": {"h100": {"nominal": 4, "borrowing_limit": 0}}},
    ]
    snapshot = _snapshot(queues=queues, workloads=[_runs("old", 4), _waits(4)])

    mine = relaxations(snapshot, "w", Reach(["other", "team"]))
    nothing = relaxations(snapshot, "w", Reach(["team"]))

    assert _changes(mine)[Change.QUEUE] == "other"
    assert Change.QUEUE not in _changes(nothing)


def test_limit_in_the_way_is_raised_by_just_enough() -> None:
    queues = [{"name": "team", "quotas": {"h100": {"nominal": 4, "borrowing_limit": 1}}}]

    found = relaxations(_snapshot(queues=queues, workloads=[_runs("old", 4), _waits(3)]), "w")

    limit = next(r for r in found if r.change is Change.LIMIT)
    assert (limit.value, limit.queue) == (7000, "team")


def _limited(waiting: dict[str, Any], *running: dict[str, Any], **limits: Any) -> list[Relaxation]:
    """What would start ``waiting`` in a queue with these ``limits``."""
    team = {"name": "team", "quotas": {"h100": {"nominal": 8}}, **limits}
    return relaxations(_snapshot(queues=[team], workloads=[*running, waiting]), "w")


def test_user_at_the_job_limit_starts_one_more_with_a_limit_of_one_more() -> None:
    found = _limited(_waits(1), _runs("old", 1), max_running_per_user=1)

    assert [(r.change, r.value, r.queue) for r in found] == [(Change.USER_WORKLOADS, 2, "team")]
    assert found[0].sentence == (
        "With a limit of 2 workloads at once for each user of team it would start on h100."
    )


def test_user_at_the_gpu_limit_gets_just_enough_more() -> None:
    found = _limited(_waits(2), _runs("old", 3), max_gpus_per_user=4)

    assert _changes(found) == {Change.FEWER_GPUS: 1000, Change.USER_GPUS: 5000}
    assert (
        found[-1].sentence == "With a limit of 5 GPUs for each user of team it would start on h100."
    )


def test_queue_at_the_job_limit_runs_one_more() -> None:
    found = _limited(_waits(1), _runs("old", 1), max_running=1)

    assert [r.sentence for r in found] == [
        "With a limit of 2 workloads at once for team it would start on h100."
    ]


def test_job_limit_one_higher_goes_to_whoever_is_first_in_line() -> None:
    first = _waits(1, name="first", submitted="2026-01-05T09:00:00Z")

    assert _limited(_waits(1), _runs("old", 1), first, max_running=1) == []


def test_spent_hours_are_topped_up_to_the_next_whole_hour() -> None:
    spent = {"h100": {"nominal": 8, "budget_gpu_hours": 1000, "used_gpu_hours": 1200.5}}

    found = _limited(_waits(1), quotas=spent)

    assert [(r.change, r.value) for r in found] == [(Change.GPU_HOURS, 1201)]
    assert found[0].sentence == (
        "With a budget of 1,201 GPU-hours of h100 for team it would start on h100."
    )


def test_higher_limit_helps_nobody_whom_another_limit_stops() -> None:
    spent = {"h100": {"nominal": 8, "budget_gpu_hours": 1, "used_gpu_hours": 1}}

    found = _limited(_waits(1), _runs("old", 1), max_running=1, quotas=spent)

    assert found == []


def test_share_of_a_gpu_is_offered_where_others_of_the_class_share() -> None:
    half = {**_runs("half", 0.5), "devices": {"n1": [7]}}

    found = relaxations(_snapshot(workloads=[_runs("old", 7), half, _waits(1)]), "w")

    assert found[0].value == 500
    assert found[0].sentence == (
        "With 0.5 instead of 1 GPU per member, CPUs and memory in proportion, it would start on h100."
    )


def test_no_share_is_offered_where_nobody_of_the_class_shares() -> None:
    nodes = [{"name": "n1", "gpu_class": "h100", "gpus": 1.5}]

    found = relaxations(_snapshot(nodes=nodes, workloads=[_runs("old", 1), _waits(1)]), "w")

    assert Change.FEWER_GPUS not in _changes(found)


def test_smaller_share_starts_beside_the_one_that_runs() -> None:
    nodes = [{"name": "n1", "gpu_class": "h100", "gpus": 1}]
    half = {**_runs("half", 0.7), "devices": {"n1": [0]}}

    found = relaxations(_snapshot(nodes=nodes, workloads=[half, _waits(0.5)]), "w")

    assert _changes(found)[Change.FEWER_GPUS] == 300


def test_what_starts_anyway_needs_no_change() -> None:
    assert relaxations(_snapshot(workloads=[_waits(8)]), "w") == []


def test_unknown_workload_is_an_error() -> None:
    with pytest.raises(KeyError):
        relaxations(_snapshot(), "nobody")


def _relaxed(snapshot: Snapshot, found: Relaxation, name: str) -> Snapshot:
    """The snapshot with the change made by hand."""
    work = next(w for w in snapshot.workloads if w.name == name)
    value: Any = found.value
    changed: Workload = {
        Change.TOPOLOGY: lambda: replace(work, topology=Topology(preferred=work.topology.required)),
        Change.SEGMENTS: lambda: replace(work, topology=replace(work.topology, segment=None)),
        Change.GPU_CLASS: lambda: replace(work, gpu_classes=(value,)),
        Change.FEWER_MEMBERS: lambda: replace(work, members=Members(value, value)),
        Change.FEWER_GPUS: lambda: replace(
            work,
            gpus=value,
            cpus=work.cpus * value // work.gpus,
            memory_mib=work.memory_mib * value // work.gpus,
        ),
        Change.FEWER_CPUS: lambda: replace(work, cpus=value * 1000),
        Change.LESS_MEMORY: lambda: replace(work, memory_mib=value * 1024),
        Change.QUEUE: lambda: replace(work, queue=value),
        Change.PRIORITY: lambda: replace(work, priority_class=value),
    }.get(found.change, lambda: work)()
    queues = snapshot.queues
    if found.queue:
        queues = tuple(_with_limit(q, found) if q.name == found.queue else q for q in queues)
    works = tuple(changed if w.name == name else w for w in snapshot.workloads)
    return replace(snapshot, workloads=works, queues=queues)


def _with_limit(queue: Any, found: Relaxation) -> Any:
    fields = {
        Change.USER_WORKLOADS: "max_running_per_user",
        Change.USER_GPUS: "max_gpus_per_user",
        Change.QUEUE_WORKLOADS: "max_running",
    }
    if found.change in fields:
        return replace(queue, **{fields[found.change]: found.value})
    quota = queue.quotas[found.gpu_class]
    if found.change is Change.LIMIT:
        raised = replace(quota, borrowing_limit=int(found.value) - quota.nominal)
    else:
        raised = replace(quota, budget_gpu_hours=float(found.value))
    return replace(queue, quotas={**queue.quotas, found.gpu_class: raised})


@st.composite
def _limited_worlds(draw: st.DrawFn) -> Snapshot:
    """Worlds in which limits beside quota hold work back."""
    world, few = draw(worlds()), st.sampled_from([None, None, 1, 2])
    queues = tuple(
        replace(
            q,
            max_running=draw(few),
            max_running_per_user=draw(few),
            max_gpus_per_user=draw(st.sampled_from([None, None, 2000])),
            quotas={
                kind: replace(quota, budget_gpu_hours=draw(st.sampled_from([None, None, 0.0])))
                for kind, quota in q.quotas.items()
            },
        )
        for q in world.queues
    )
    return replace(world, queues=queues)


def _starts(made: Plan, name: str) -> bool:
    line = next(d for d in made.decisions if d.workload == name)
    return line.action is Action.ADMIT or line.reason is Reason.AWAITS_VICTIMS


def test_who_stepped_back_for_a_higher_priority_is_asked_again_as_well() -> None:
    """While low is asked first, two members find no room beside it, and high gets what it gives back."""
    world = _snapshot(
        nodes=[{"name": f"n{i}", "gpu_class": "h100", "gpus": 8} for i in range(4)],
        queues=[{"name": name, "quotas": {"h100": {"nominal": 16}}} for name in ("a", "b")],
        workloads=[
            *(
                _runs(f"{queue}{node}", gpus, queue, f"n{node}")
                for queue, node, gpus in [
                    ("a", 0, 5), ("b", 0, 3), ("a", 2, 3), ("b", 2, 2), ("a", 3, 2), ("b", 3, 6)
                ]
            ),
            _waits(4, queue="a", members={"min": 3, "max": 3}),
            _waits(4, name="low", queue="b"),
            _waits(8, name="high", queue="b", priority_class="urgent"),
        ],
    )  # fmt: skip
    fewer = next(r for r in relaxations(world, "w") if r.change is Change.FEWER_MEMBERS)
    assert fewer.value == 1


def _check_changes(world: Snapshot) -> None:
    """Each change that would start the first who waits does start it when it is really made."""
    for line in plan(world).decisions:
        if line.action not in (Action.WAIT, Action.RESERVE):
            continue
        for found in relaxations(world, line.workload):
            assert _starts(plan(_relaxed(world, found, line.workload)), line.workload), found
        break


@given(st.one_of(worlds(), _limited_worlds()))
def test_each_change_starts_the_workload_when_it_is_really_made(world: Snapshot) -> None:
    """Law 12."""
    _check_changes(world)


@given(worlds())
def test_few_who_are_asked_again_stand_for_many(world: Snapshot) -> None:
    with patch.object(replanning, "MOST_ASKED", 0):
        _check_changes(world)
