"""A recorded trace through the shipped engine: queues of a pool instead of separate clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, timedelta

import numpy as np

from scheduling.engine.model import (
    MILLI,
    GpuClass,
    Members,
    Node,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Workload,
)

from .jobs import Job, Submission
from .partition import nominal_gpus, static_nodes
from .planners import PlanFunction
from .result import Replay
from .rivals import check_size
from .simulator import Observer, Options, simulate
from .traces import Trace, TraceJob

DEFAULT_POLICY, EVERY_EVENT = Policy(), Options()
GPU_CLASS = "gpu"
PRIORITY_CLASS = "trace"


def pool(trace: Trace, nodes: int, policy: Policy = DEFAULT_POLICY) -> Snapshot:
    """``nodes`` equal nodes; each queue of the trace has its share of the static partition as nominal quota
    and weight, lending and borrowing free. Time begins at the trace's origin."""
    nominal = nominal_gpus(trace, nodes)
    weight = static_nodes(trace)
    return Snapshot(
        now=trace.origin.astimezone(UTC),
        gpu_classes=(GpuClass(GPU_CLASS),),
        nodes=tuple(
            Node(f"node-{number:04}", GPU_CLASS, trace.gpus_per_node * MILLI)
            for number in range(nodes)
        ),
        queues=tuple(
            Queue(name, quotas={GPU_CLASS: Quota(nominal[name], weight=float(weight[name]))})
            for name in trace.queues
        ),
        priority_classes=(PriorityClass(PRIORITY_CLASS),),
        policy=policy,
    )


def submissions(trace: Trace) -> Iterator[Submission]:
    """The trace's jobs in order; their durations stay the simulator's secret."""
    return (submission(trace, job) for job in trace)


def submission(trace: Trace, job: TraceJob) -> Submission:
    members = gang(job.gpus, trace.gpus_per_node)
    workload = Workload(
        name=job.name,
        queue=job.queue,
        user=job.user,
        priority_class=PRIORITY_CLASS,
        submitted=trace.origin + timedelta(seconds=job.submit_s),
        gpus=job.gpus // members * MILLI,
        members=Members(members, members),
        gpu_classes=(GPU_CLASS,),
    )
    return Submission(workload, job.duration_s)


def gang(gpus: int, per_node: int) -> int:
    """Members of a job: the fewest equal parts that each fit on one node."""
    return next(n for n in range(-(-gpus // per_node), gpus + 1) if gpus % n == 0)


def replay_engine(
    trace: Trace,
    nodes: int | None,
    options: Options = EVERY_EVENT,
    plan: PlanFunction | None = None,
    observer: Observer | None = None,
) -> Replay:
    """``nodes`` pooled nodes, or None: each queue alone on its static part. Raises TooLargeError."""
    if nodes is None:
        return replay_parts(trace, options, plan)
    check_size(trace, nodes)
    outcome = simulate(
        pool(trace, nodes), submissions(trace), plan=plan, options=options, observer=observer
    )
    return as_replay(trace, outcome.jobs, nodes * trace.gpus_per_node)


def replay_parts(trace: Trace, options: Options, plan: PlanFunction | None) -> Replay:
    nodes = static_nodes(trace)
    jobs: list[Job | None] = [None] * len(trace)
    for number, queue in enumerate(trace.queues):
        mine = np.flatnonzero(trace.queue == number)
        part = replace(trace.take(mine), queues=(queue,), queue=np.zeros(len(mine), dtype=np.int64))
        part = replace(part, queue_nodes={queue: nodes[queue]})
        check_size(part, nodes[queue])
        outcome = simulate(pool(part, nodes[queue]), submissions(part), plan=plan, options=options)
        for position, job in zip(mine, outcome.jobs, strict=True):
            jobs[position] = job
    return as_replay(trace, [job for job in jobs if job], sum(nodes.values()) * trace.gpus_per_node)


def as_replay(trace: Trace, jobs: list[Job], capacity_gpus: int) -> Replay:
    """Raises ValueError when a job never ended: figures without it would flatter."""
    stuck = [job.name for job in jobs if job.end_s is None]
    if stuck:
        raise ValueError(f"{len(stuck)} jobs never ended, the first is {stuck[0]}")
    return Replay.of(
        trace,
        start_s=np.array([job.first_start_s for job in jobs], dtype=np.int64),
        end_s=np.array([job.end_s for job in jobs], dtype=np.int64),
        capacity_gpus=capacity_gpus,
        evictions=np.array([job.evictions for job in jobs], dtype=np.int64),
        lost_gpu_s=np.array([job.lost_gpu_s for job in jobs], dtype=np.float64),
    )
