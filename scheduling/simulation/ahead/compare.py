"""The same jobs lived twice, on a cluster as it is and on one that is changed, by the shipped engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.structs import Flags, Floats, Ints
from scheduling.engine.model import MILLI, Queue, Snapshot
from scheduling.simulation.ahead.draws import drawn
from scheduling.simulation.loop.lives import Life, live_submissions
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import Options

LATE_S, LATE_SHARE = 60.0, 0.05
"""Later than alone is who ends later by more than both: seconds, and a share of its completion time there."""


@dataclass(frozen=True, slots=True)
class WindowOutcome:
    """Of the jobs submitted within the window, in order. Seconds; who had not started by its end waited
    until then."""

    queue: tuple[str, ...]
    gpu_class: tuple[str, ...]
    wait_s: Floats
    started: Flags
    submit_s: Ints
    end_s: Ints
    """Seconds of the life; -1 where it did not end within the window."""
    evictions: int
    lost_gpu_s: float
    held_gpu_s: float

    def waits(self, which: Ints | None = None) -> tuple[float, float]:
        """P50 and P90."""
        wait_s = self.wait_s if which is None else self.wait_s[which]
        if not wait_s.size:
            return 0.0, 0.0
        p50, p90 = np.percentile(wait_s, [50, 90])
        return float(p50), float(p90)


def lived(
    template: Snapshot,
    jobs: Sequence[Submission],
    *,
    before: int,
    until: datetime,
    seed: int | None = None,
) -> WindowOutcome:
    """``before`` of the jobs stand at the beginning and are not counted. Without a seed each arrives and runs
    as it did. Raises UnsettledError."""
    moved = list(jobs)
    if seed is not None:
        moved, _ = drawn(jobs, before, template.now, until, seed)
    life = live_submissions(template, moved, Options(until=until))
    return _read(template, moved, life, before, until)


def _read(
    template: Snapshot, jobs: Sequence[Submission], life: Life, before: int, until: datetime
) -> WindowOutcome:
    end_s = int((until - template.now).total_seconds())
    table = life.jobs
    first = table.first[before:]
    wait_s = np.where(first >= 0, first, end_s) - table.submit[before:]
    counted = jobs[before:]
    acts = life.ledger
    evicted = acts.action[: acts.used[0]] == codes.EVICT
    running = (table.slot >= 0) & (table.since >= 0)
    return WindowOutcome(
        queue=tuple(job.workload.queue for job in counted),
        gpu_class=tuple(next(iter(job.workload.gpu_classes), "") for job in counted),
        wait_s=np.maximum(0, wait_s).astype(np.float64),
        started=first >= 0,
        submit_s=table.submit[before:],
        end_s=table.end[before:],
        evictions=int(evicted.sum()),
        lost_gpu_s=float(acts.lost[: acts.used[0]][evicted].sum()),
        held_gpu_s=_held_gpu_s(jobs, table, running, end_s),
    )


def _held_gpu_s(jobs: Sequence[Submission], table: object, running: Flags, end_s: int) -> float:
    """Of runs that ended, and of those that go on at the end."""
    columns: dict[str, Ints] = table._asdict()  # type: ignore[attr-defined]
    gpus = np.array([j.workload.gpus * j.workload.members.min for j in jobs], np.int64)
    goes_on = running & (columns["free_at"] >= 0)
    more = np.where(goes_on, gpus * np.maximum(0, end_s - columns["since"]), 0)
    return float((columns["gpu_s"] + more).sum()) / MILLI


def alone(template: Snapshot) -> Snapshot:
    """The same cluster with each queue on its nominal quota alone: nobody borrows, nobody lends."""
    leaves = {queue.name for queue in template.queues} - {queue.parent for queue in template.queues}
    return replace(
        template,
        queues=tuple(_alone(queue) if queue.name in leaves else queue for queue in template.queues),
    )


def _alone(queue: Queue) -> Queue:
    own = {
        name: replace(quota, borrowing_limit=0, lending_limit=0, lowered=None)
        for name, quota in queue.quotas.items()
    }
    return replace(queue, quotas=own)


def later_than_alone(shared: WindowOutcome, own: WindowOutcome) -> int:
    """How many of the jobs that ended on the quota of their queue alone end later where it is shared; who
    did not end there within the window is late if the window was long enough to tell."""
    return int(late_each(shared, own).sum())


def late_each(shared: WindowOutcome, own: WindowOutcome) -> Flags:
    """The same, job by job."""
    done = own.end_s >= 0
    took_s = np.where(done, own.end_s - own.submit_s, 0)
    bound_s = np.where(done, own.end_s, 0) + np.maximum(LATE_S, LATE_SHARE * took_s)
    last_s = max(shared.end_s.max(initial=0), own.end_s.max(initial=0))
    ends_s = np.where(shared.end_s >= 0, shared.end_s, last_s)
    found: Flags = done & (ends_s > bound_s)
    return found
