"""The shipped engine in simulated time, every plan held against the laws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine import plan
from scheduling.engine.model import (
    GpuClass,
    Members,
    Node,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Workload,
)
from scheduling.simulation.run.jobs import Submission
from workshop.scenario import Kind, Organisation, Rhythm, RunTime, Size, Source, generate
from workshop.simulator.options import SimulatorOptions
from workshop.simulator.replay import EngineRun, replay_engine
from workshop.simulator.simulator import Observer, simulate

from .conftest import ORIGIN, make_trace
from .fakes import small_cluster

CHECKED = SimulatorOptions(checked=True)


def organisation_and_cluster(load: float) -> tuple[Organisation, Snapshot]:
    kind = Kind(
        "mixed",
        ("run",),
        (("normal", 3.0), ("high", 1.0)),
        RunTime(1800, 1.0, 60, 20_000),
        (Size(1, 1, 4), Size(1, 4, 2), Size(1, 8, 1), Size(2, 8, 1)),
        ("big", "small"),
        Rhythm.OFFICE,
    )
    demand = {"a": {"big": 3.0, "small": 1.0}, "b": {"big": 1.0, "small": 1.0}}
    sources = tuple(Source(q, ("u", "v"), d, ((kind, 1.0),)) for q, d in demand.items())
    return Organisation(sources, {"big": 32, "small": 32}, load), small_cluster()


def named_by_arrival(work: Iterable[Submission]) -> list[Submission]:
    """Frames break ties by arrival, snapshots by name."""
    return [
        replace(s, workload=replace(s.workload, name=f"{number:05}-{s.workload.name}"))
        for number, s in enumerate(work)
    ]


def lives(outcome) -> list:
    return [(j.name, [(r.start_s, r.end_s) for r in j.runs], j.evictions) for j in outcome.jobs]


@pytest.mark.parametrize("leave_s", [0, 30])
@pytest.mark.parametrize(("cycle_s", "max_moves"), [(0, 0), (60, 0), (0, 4)])
def test_busy_day_breaks_no_law_and_leaves_nobody_behind(
    cycle_s: int, leave_s: int, max_moves: int
) -> None:
    organisation, cluster = organisation_and_cluster(load=1.1)
    cluster = replace(cluster, policy=replace(cluster.policy, max_moves=max_moves))
    work = generate(organisation, ORIGIN, 0.6, seed=3)

    outcome = simulate(cluster, work, options=replace(CHECKED, cycle_s=cycle_s, leave_s=leave_s))

    assert outcome.unfinished == []
    assert len(outcome.jobs) == len(work) > 50
    for job in outcome.jobs:
        assert sum(r.end_s - r.start_s - r.restart_s for r in job.runs) >= job.submission.duration_s


@pytest.mark.parametrize(("leave_s", "max_moves"), [(0, 0), (30, 0), (30, 4)])
def test_frame_in_place_and_fresh_snapshots_live_the_same_life(
    leave_s: int, max_moves: int
) -> None:
    organisation, cluster = organisation_and_cluster(load=1.1)
    cluster = replace(cluster, policy=replace(cluster.policy, max_moves=max_moves))
    work = named_by_arrival(generate(organisation, ORIGIN, 0.5, seed=4))
    options = replace(CHECKED, leave_s=leave_s)

    in_place = simulate(cluster, work, options=SimulatorOptions(leave_s=leave_s))
    spelled_out = simulate(cluster, work, options=options, observer=Observer())
    afresh = simulate(cluster, work, options=options, plan=plan)

    assert lives(in_place) == lives(afresh)
    assert lives(spelled_out) == lives(afresh)


def test_replaying_twice_gives_the_same_history() -> None:
    organisation, cluster = organisation_and_cluster(load=1.0)
    work = generate(organisation, ORIGIN, 0.5, seed=5)

    assert lives(simulate(cluster, work)) == lives(simulate(cluster, work))


def test_queue_below_nominal_takes_back_what_it_lent() -> None:
    cluster = Snapshot(
        now=ORIGIN,
        gpu_classes=(GpuClass("gpu"),),
        nodes=(Node("n0", "gpu", 8000),),
        queues=tuple(Queue(q, quotas={"gpu": Quota(4000)}) for q in "ab"),
        priority_classes=(PriorityClass("train"),),
    )

    def work(name: str, queue: str, submit_s: int, gpus: int) -> Submission:
        at = ORIGIN + timedelta(seconds=submit_s)
        members = Members(1, 1)
        pending = Workload(
            name, queue, "train", at, gpus * 1000, members=members, gpu_classes=("gpu",)
        )
        return Submission(pending, 3600, checkpoint_s=600)

    loans = [work(f"loan-{i}", "a", 0, 4) for i in range(2)]
    outcome = simulate(cluster, [*loans, work("owner", "b", 1000, 4)], options=CHECKED)

    owner = outcome.jobs[2]
    assert owner.first_start_s == 1000
    assert sum(job.evictions for job in outcome.jobs) == 1
    victim = next(job for job in outcome.jobs if job.evictions)
    assert victim.name.startswith("loan")
    assert victim.lost_gpu_s == 4 * (400 + 30)


def test_trace_through_the_engine_pooled_and_static() -> None:
    trace = make_trace((0, 100, 8, "a"), (0, 100, 8, "a"), (10, 50, 16, "b"))
    trace = replace(trace, queue_nodes={"a": 1, "b": 2})
    run = EngineRun(CHECKED)

    pooled, static = replay_engine(trace, 3, run), replay_engine(trace, None, run)

    assert static.start_s.tolist() == [0, 100, 10]
    assert pooled.start_s.tolist()[:2] == [0, 0]
    assert static.capacity_gpus == pooled.capacity_gpus == 24
