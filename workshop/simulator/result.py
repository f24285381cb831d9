"""What a replay gives: one row per job, and the figures computed from the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from scheduling.simulation.traces import Trace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

ROWS = ("submit_s", "start_s", "end_s", "duration_s", "gpus", "queue", "evictions", "lost_gpu_s")
"""Columns of a replay, one value a job."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Jobs in the order of the trace; seconds after its origin, whole GPUs.

    ``start_s`` is the first start. ``lost_gpu_s`` is work thrown away by evictions, restarts included.
    """

    submit_s: Ints
    start_s: Ints
    end_s: Ints
    duration_s: Ints
    gpus: Ints
    queue: Ints
    queues: tuple[str, ...]
    evictions: Ints
    lost_gpu_s: Floats
    capacity_gpus: int

    @classmethod
    def of(
        cls,
        trace: Trace,
        *,
        start_s: Ints,
        end_s: Ints,
        capacity_gpus: int,
        evictions: Ints | None = None,
        lost_gpu_s: Floats | None = None,
    ) -> Replay:
        jobs = len(trace)
        return cls(
            submit_s=trace.submit_s,
            start_s=start_s,
            end_s=end_s,
            duration_s=trace.duration_s,
            gpus=trace.gpus,
            queue=trace.queue,
            queues=trace.queues,
            evictions=np.zeros(jobs, dtype=np.int64) if evictions is None else evictions,
            lost_gpu_s=np.zeros(jobs) if lost_gpu_s is None else lost_gpu_s,
            capacity_gpus=capacity_gpus,
        )

    def take(self, chosen: Flags) -> Replay:
        """Only the jobs ``chosen``."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in ROWS})

    @property
    def jct_s(self) -> Ints:
        """Job completion time: from submission to the end."""
        return self.end_s - self.submit_s

    @property
    def wait_s(self) -> Ints:
        """All time that was not useful run time: the queue, and what evictions cost."""
        return self.jct_s - self.duration_s


@dataclass(frozen=True, slots=True)
class Fairness:
    """``jain`` is Jain's index of 1 / mean slowdown by queue (mean JCT over mean run time).

    ``worst_queue_ratio`` is the largest ratio, over queues, of mean JCT to that in the queue's own static
    partition; ``unfair_pct`` counts jobs that end later than there by more than 5 % and 60 s. Both are None
    without such a baseline.
    """

    jain: float
    worst_queue: str | None = None
    worst_queue_ratio: float | None = None
    unfair_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures of a replay. Utilization: GPU-seconds of useful run time over capacity x makespan."""

    jobs: int
    avg_wait_s: float
    p50_wait_s: float
    p90_wait_s: float
    p99_wait_s: float
    avg_jct_s: float
    utilization: float
    evictions: int
    evictions_per_job: float
    max_evictions_of_a_job: int
    lost_gpu_hours: float
    lost_gpu_hours_pct: float
    makespan_s: int
    fairness: Fairness


def metrics(replay: Replay, baseline: Replay | None = None) -> Metrics:
    """``baseline``: the same jobs, each queue alone on its static partition. Raises ValueError when empty."""
    if not len(replay.submit_s):
        raise ValueError("no job was replayed: widen the window")
    p50, p90, p99 = np.percentile(replay.wait_s, [50, 90, 99])
    makespan_s = int(replay.end_s.max() - replay.submit_s.min())
    work_gpu_s = float(replay.gpus @ replay.duration_s)
    lost_gpu_s = float(replay.lost_gpu_s.sum())
    return Metrics(
        jobs=len(replay.submit_s),
        avg_wait_s=float(replay.wait_s.mean()),
        p50_wait_s=float(p50),
        p90_wait_s=float(p90),
        p99_wait_s=float(p99),
        avg_jct_s=float(replay.jct_s.mean()),
        utilization=work_gpu_s / (replay.capacity_gpus * makespan_s),
        evictions=int(replay.evictions.sum()),
        evictions_per_job=float(replay.evictions.mean()),
        max_evictions_of_a_job=int(replay.evictions.max()),
        lost_gpu_hours=lost_gpu_s / 3600,
        lost_gpu_hours_pct=100 * lost_gpu_s / work_gpu_s,
        makespan_s=makespan_s,
        fairness=fairness(replay, baseline),
    )


def fairness(replay: Replay, baseline: Replay | None) -> Fairness:
    jain = jain_index(by_queue(replay, replay.duration_s) / by_queue(replay, replay.jct_s))
    if baseline is None:
        return Fairness(jain)
    ratio = by_queue(replay, replay.jct_s) / by_queue(replay, baseline.jct_s)
    worst = int(ratio.argmax())
    late_s = replay.end_s - baseline.end_s
    unfair = (late_s > 0.05 * baseline.jct_s) & (late_s > 60)
    present = [replay.queues[q] for q in np.unique(replay.queue)]
    return Fairness(jain, present[worst], float(ratio[worst]), 100 * float(unfair.mean()))


def by_queue(replay: Replay, values: Ints | Floats) -> Floats:
    """Mean of ``values`` by queue, of queues that have a job."""
    count = np.bincount(replay.queue)
    total = np.bincount(replay.queue, weights=values)
    return total[count > 0] / count[count > 0]


def jain_index(values: Floats) -> float:
    """(sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything. Jain et al., 1984."""
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))
