"""A recorded trace through the shipped engine: queues of a pool instead of separate clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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

from .jobs import CHECKPOINT_S, RESTART_S, Job, Submission
from .partition import nominal_gpus, static_nodes
from .planners import PlanFunction
from .result import Replay
from .rivals import check_size
from .simulator import Options, simulate
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


def submissions(
    trace: Trace, checkpoint_s: int | None = CHECKPOINT_S, restart_s: int = RESTART_S
) -> Iterator[Submission]:
    """The trace's jobs in order; their durations stay the simulator's secret."""
    for job in trace:
        yield Submission(workload_of(trace, job), job.duration_s, checkpoint_s, restart_s)


def workload_of(trace: Trace, job: TraceJob) -> Workload:
    members = gang(job.gpus, trace.gpus_per_node)
    return Workload(
        name=job.name,
        queue=job.queue,
        user=job.user,
        priority_class=PRIORITY_CLASS,
        submitted=trace.origin + timedelta(seconds=job.submit_s),
        gpus=job.gpus // members * MILLI,
        members=Members(members, members),
        gpu_classes=(GPU_CLASS,),
    )


def gang(gpus: int, per_node: int) -> int:
    """Members of a job: the fewest equal parts that each fit on one node."""
    return next(n for n in range(-(-gpus // per_node), gpus + 1) if gpus % n == 0)


@dataclass(frozen=True, slots=True)
class EngineRun:
    """How the engine is run: every ``checkpoint_s`` of work survives an eviction (None: nothing does), each
    resumption costs ``restart_s``. ``plan`` None is the shipped engine on a frame."""

    options: Options = EVERY_EVENT
    checkpoint_s: int | None = CHECKPOINT_S
    restart_s: int = RESTART_S
    plan: PlanFunction | None = None

    def jobs(self, trace: Trace, nodes: int) -> list[Job]:
        """Raises TooLargeError."""
        check_size(trace, nodes)
        work = submissions(trace, self.checkpoint_s, self.restart_s)
        return simulate(pool(trace, nodes), work, plan=self.plan, options=self.options).jobs


SHIPPED = EngineRun()


def replay_engine(trace: Trace, nodes: int | None, run: EngineRun = SHIPPED) -> Replay:
    """``nodes`` pooled nodes, or None: each queue alone on its static part. Raises TooLargeError."""
    if nodes is None:
        return replay_parts(trace, run)
    return as_replay(trace, run.jobs(trace, nodes), nodes * trace.gpus_per_node)


def replay_parts(trace: Trace, run: EngineRun) -> Replay:
    nodes = static_nodes(trace)
    jobs: dict[int, Job] = {}
    for number, queue in enumerate(trace.queues):
        mine = np.flatnonzero(trace.queue == number)
        part = replace(
            trace.take(mine),
            queues=(queue,),
            queue=np.zeros(len(mine), dtype=np.int64),
            queue_nodes={queue: nodes[queue]},
        )
        jobs |= zip(mine.tolist(), run.jobs(part, nodes[queue]), strict=True)
    in_order = [jobs[position] for position in range(len(trace))]
    return as_replay(trace, in_order, sum(nodes.values()) * trace.gpus_per_node)


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
