"""A recorded trace through the shipped engine: queues of a pool instead of separate clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, timedelta

import numpy as np

from scheduling.engine import Frame, encode
from scheduling.engine.model import (
    MILLI,
    GpuClass,
    Members,
    Node,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Sharing,
    Snapshot,
    Workload,
)
from scheduling.engine.state.input import Work
from scheduling.engine.state.session import empty_work
from scheduling.engine.state.units import GPUS, PENDING
from scheduling.simulation.loop.life import Jobs, new_jobs
from scheduling.simulation.loop.lives import Life, live_through
from scheduling.simulation.loop.outlook import Outlook, outlook_on
from scheduling.simulation.run.jobs import CHECKPOINT_S, RESTART_S, Submission
from scheduling.simulation.traces import Trace, TraceJob, gang
from workshop.simulator.jobs import Job
from workshop.simulator.options import EVERY_EVENT, SimulatorOptions
from workshop.simulator.partition import nominal_gpus, static_nodes
from workshop.simulator.planners import PlanFunction
from workshop.simulator.result import Replay
from workshop.simulator.simulator import simulate

DEFAULT_POLICY = Policy()
GPU_CLASS = "gpu"
PRIORITY_CLASS = "trace"


class TooLargeError(ValueError):
    """A job that no amount of waiting would start: it asks for more than its nodes have."""


def check_size(trace: Trace, nodes: int) -> None:
    """Raises TooLargeError when a job is larger than the whole."""
    capacity = nodes * trace.gpus_per_node
    if len(trace) and trace.gpus.max() > capacity:
        job = trace[int(trace.gpus.argmax())]
        raise TooLargeError(
            f"{job.name} of queue {job.queue} asks for {job.gpus} GPUs, its {nodes} nodes have "
            f"{capacity}: replay it on more nodes"
        )


def pool(trace: Trace, nodes: int, policy: Policy = DEFAULT_POLICY) -> Snapshot:
    """``nodes`` equal nodes; each queue of the trace has its share of the static partition as nominal quota
    and weight, lending and borrowing free. Time begins at the trace's origin."""
    nominal = nominal_gpus(trace, nodes)
    weight = static_nodes(trace)
    return Snapshot(
        now=trace.origin.astimezone(UTC),
        gpu_classes=(GpuClass(GPU_CLASS),),
        nodes=tuple(
            Node(name, GPU_CLASS, trace.gpus_per_node * MILLI) for name in node_names(nodes)
        ),
        queues=tuple(
            Queue(name, quotas={GPU_CLASS: Quota(nominal[name], weight=float(weight[name]))})
            for name in trace.queues
        ),
        priority_classes=(PriorityClass(PRIORITY_CLASS),),
        policy=policy,
    )


def node_names(nodes: int) -> list[str]:
    """Of the pool, in order."""
    return [f"node-{number:04}" for number in range(nodes)]


def submissions(
    trace: Trace,
    checkpoint_s: int | None = CHECKPOINT_S,
    restart_s: int = RESTART_S,
    nodes: int | None = None,
) -> Iterator[Submission]:
    """The trace's jobs in order, on a pool of ``nodes`` where that is known; their durations stay the
    simulator's secret.
    """
    for job in trace:
        yield Submission(workload_of(trace, job, nodes), job.duration_s, checkpoint_s, restart_s)


def workload_of(trace: Trace, job: TraceJob, nodes: int | None = None) -> Workload:
    """On a pool of ``nodes``, where that is known."""
    members = gang(job.gpus, trace.gpus_per_node, nodes)
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


@dataclass(frozen=True, slots=True)
class EngineRun:
    """How the engine is run: every ``checkpoint_s`` of work survives an eviction (None: nothing does), each
    resumption costs ``restart_s``. ``plan`` None is the shipped engine on a frame."""

    options: SimulatorOptions = EVERY_EVENT
    checkpoint_s: int | None = CHECKPOINT_S
    restart_s: int = RESTART_S
    plan: PlanFunction | None = None
    policy: Policy = DEFAULT_POLICY

    @property
    def spelled_out(self) -> bool:
        """Whether each plan is needed as an object, which the compiled loop does not make."""
        return self.options.checked or self.plan is not None or bool(self.options.outages)

    def replay(self, trace: Trace, nodes: int) -> Replay:
        """Raises TooLargeError; ValueError if a job never ends."""
        check_size(trace, nodes)
        cluster = pool(trace, nodes, self.policy)
        capacity_gpus = nodes * trace.gpus_per_node
        if not self.spelled_out:
            return lived_replay(trace, self.live(trace, nodes), capacity_gpus)
        work = submissions(trace, self.checkpoint_s, self.restart_s, nodes)
        jobs = simulate(cluster, work, plan=self.plan, options=self.options).jobs
        return as_replay(trace, jobs, capacity_gpus)

    def live(self, trace: Trace, nodes: int) -> Life:
        """The whole trace in the compiled loop, with the ledger of what the engine did."""
        frame = encode(pool(trace, nodes, self.policy))
        cast = cast_of(trace, frame)
        cast.restart[:] = self.restart_s
        checkpoint_s = np.full(len(trace), self.checkpoint_s or 0, np.int64)
        restart_s = np.full(len(trace), self.restart_s, np.int64)
        jobs = new_jobs(trace.submit_s, trace.duration_s, checkpoint_s, restart_s, cast.most)
        return live_through(
            frame, cast, jobs, self.options, self._outlook(trace, frame, cast, jobs)
        )

    def _outlook(self, trace: Trace, frame: Frame, cast: Work, jobs: Jobs) -> Outlook | None:
        """Where the policy looks at it: own partitions are the static ones that the pool is made of."""
        by_rank = self.policy.order == "rank"
        if self.policy.sharing is Sharing.FAIR_SHARE and not by_rank:
            return None
        own, nodes = np.zeros(frame.quotas.nominal.shape, np.int64), static_nodes(trace)
        for name in trace.queues:
            gpus = nodes[name] * trace.gpus_per_node * MILLI
            own[:, frame.queue_names.index(name)] = gpus
        return outlook_on(frame, cast, jobs, own, by_rank)


SHIPPED = EngineRun()


def cast_of(trace: Trace, frame: Frame) -> Work:
    """The trace's jobs as a table of workloads for ``frame``, which is a ``pool``."""
    cast, nodes = empty_work(len(trace), 1), frame.nodes.gpu_class.size
    number = np.array([frame.queue_names.index(name) for name in trace.queues], np.int64)
    cast.queue[:] = number[trace.queue]
    both = trace.queue * len(trace.users) + trace.user
    pairs, which = np.unique(both, return_inverse=True)
    users = [(number[p // len(trace.users)], trace.users[p % len(trace.users)]) for p in pairs]
    cast.user[:] = np.array([frame.pair(int(q), user) for q, user in users], np.int64)[which]
    sizes, which = np.unique(trace.gpus, return_inverse=True)
    parts = [gang(int(gpus), trace.gpus_per_node, nodes) for gpus in sizes]
    members = np.array(parts, np.int64)[which]
    cast.least[:] = cast.most[:] = members
    cast.need[GPUS] = trace.gpus // members * MILLI
    cast.wish[0], cast.priority[:], cast.phase[:] = 0, 0, PENDING
    cast.submitted[:] = frame.now + trace.submit_s
    cast.tie[:] = np.arange(len(trace))
    return cast


def replay_engine(trace: Trace, nodes: int | None, run: EngineRun = SHIPPED) -> Replay:
    """``nodes`` pooled nodes, or None: each queue alone on its static part. Raises TooLargeError."""
    return replay_parts(trace, run) if nodes is None else run.replay(trace, nodes)


def replay_parts(trace: Trace, run: EngineRun) -> Replay:
    nodes = static_nodes(trace)
    table = np.zeros((4, len(trace)))
    for number, queue in enumerate(trace.queues):
        mine = np.flatnonzero(trace.queue == number)
        if not len(mine):
            continue
        part = replace(
            trace.take(mine),
            queues=(queue,),
            queue=np.zeros(len(mine), dtype=np.int64),
            queue_nodes={queue: nodes[queue]},
        )
        alone = run.replay(part, nodes[queue])
        table[:, mine] = alone.start_s, alone.end_s, alone.evictions, alone.lost_gpu_s
    start_s, end_s, evictions, lost_gpu_s = table
    return Replay.of(
        trace,
        start_s=start_s.astype(np.int64),
        end_s=end_s.astype(np.int64),
        capacity_gpus=sum(nodes.values()) * trace.gpus_per_node,
        evictions=evictions.astype(np.int64),
        lost_gpu_s=lost_gpu_s,
    )


def lived_replay(trace: Trace, life: Life, capacity_gpus: int) -> Replay:
    """Raises ValueError when a job never ended: figures without it would flatter."""
    jobs = life.jobs
    stuck = np.flatnonzero(jobs.end < 0)
    if stuck.size:
        raise ValueError(f"{stuck.size} jobs never ended, the first is {trace[int(stuck[0])].name}")
    return Replay.of(
        trace,
        start_s=jobs.first,
        end_s=jobs.end,
        capacity_gpus=capacity_gpus,
        evictions=jobs.evictions,
        lost_gpu_s=np.maximum(0.0, jobs.gpu_s / MILLI - trace.gpus * trace.duration_s),
    )


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
