"""The last days of the ledger as jobs for the simulator.

A job's run time is the useful part of what it held GPUs for: what evictions cost is for the replay to find
anew. What had begun before the window goes on in its first second, what has not ended by its end never does
in it. Nodes that were down, holds and edits of that time are not replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from scheduling.engine import model as m
from scheduling.models import MILLI, Cluster, Outcome, Workload
from scheduling.simulation.run.jobs import RESTART_S, Submission

LEAST_RUN_S = 1
Kinds = tuple[tuple[object, ...], ...]
UNKNOWN_RUN_S = 3600
"""Run time of what never ran and nobody predicts."""


@dataclass(frozen=True, slots=True)
class Past:
    """``submissions`` in order; the first ``before`` of them had been submitted before ``begin``."""

    begin: datetime
    end: datetime
    submissions: tuple[Submission, ...]
    before: int


def past_of(cluster: Cluster, *, days: float, snapshot: m.Snapshot) -> Past:
    """Of the ``days`` up to now, as far as ``snapshot`` still knows queues, classes and priorities."""
    end = snapshot.now
    begin = end - timedelta(days=days)
    reader = _Reader(snapshot, begin, end)
    read = [(row, reader.submission(row)) for row in _rows(cluster, begin, end)]
    found = [(row, job) for row, job in read if job is not None]
    old = [(row, job) for row, job in found if row.submitted_at < begin]
    old.sort(key=lambda pair: (pair[0].first_started_at or end, pair[0].submitted_at, pair[0].pk))
    new = [job for row, job in found if row.submitted_at >= begin]
    jobs = (*(job for _, job in old), *new)
    return Past(begin, end, jobs, len(old))


def _rows(cluster: Cluster, begin: datetime, end: datetime) -> QuerySet[Workload]:
    open_then = Q(finished_at=None) | Q(finished_at__gt=begin)
    rows = Workload.objects.filter(open_then, cluster=cluster, submitted_at__lte=end, gpus__gt=0)
    ran = rows.exclude(outcome=Outcome.CANCELLED, first_started_at=None)
    told = ran.select_related("priority_class", "queue", "gpu_class", "prediction")
    return told.order_by("submitted_at", "id")


@dataclass(frozen=True, slots=True)
class _Reader:
    snapshot: m.Snapshot
    begin: datetime
    end: datetime

    @property
    def _queues(self) -> set[str]:
        return {queue.name for queue in self.snapshot.queues}

    def submission(self, row: Workload) -> Submission | None:
        """None of what the cluster knows no more."""
        if row.queue is None or row.queue.name not in self._queues:
            return None
        priority = row.priority_class.name if row.priority_class else ""
        if priority not in {p.name for p in self.snapshot.priority_classes}:
            return None
        run_s = self._run_s(row)
        return Submission(
            workload=self._workload(row, priority),
            duration_s=run_s,
            checkpoint_s=row.checkpoint_interval_s,
            restart_s=RESTART_S,
        )

    def _workload(self, row: Workload, priority: str) -> m.Workload:
        known = {c.name for c in self.snapshot.gpu_classes}
        wish = [name for name in row.gpu_classes if name in known]
        return m.Workload(
            name=f"{row.namespace}/{row.name} {row.pk}",
            queue=row.queue.name if row.queue else "",
            user=row.user,
            priority_class=priority,
            submitted=max(row.submitted_at, self.begin),
            gpus=row.gpus,
            cpus=row.cpus,
            memory_mib=row.memory_mib,
            members=m.Members(row.min_members, row.max_members),
            elastic=row.elastic,
            gpu_classes=tuple(wish),
            predicted=self._predicted(row),
        )

    def _predicted(self, row: Workload) -> m.Predicted | None:
        """Of its run, as said before it began: by the model, else by its author. Nothing of a run that had
        begun before the window: its rest was never told apart."""
        if row.first_started_at is not None and row.first_started_at < self.begin:
            return None
        told = getattr(row, "prediction", None)
        if told is not None:
            return m.Predicted(told.told_p50_s, max(told.told_p50_s, told.told_p90_s))
        if row.predicted_p50_s is None:
            return None
        return m.Predicted(
            row.predicted_p50_s, max(row.predicted_p50_s, row.predicted_p90_s or 0.0)
        )

    def _run_s(self, row: Workload) -> int:
        """Useful seconds with all members, from the window's begin on. Of what never ran its prediction."""
        if row.first_started_at is None or row.first_started_at > self.end:
            return max(LEAST_RUN_S, round(row.predicted_p50_s or UNKNOWN_RUN_S))
        done_s = useful_s(row, self.end)
        if (
            row.submitted_at < self.begin
            and row.first_started_at
            and row.first_started_at < self.begin
        ):
            done_s -= (self.begin - row.first_started_at).total_seconds()
        if row.finished_at is None or row.finished_at > self.end:
            # It outlives the window, whenever it starts.
            done_s = max(done_s, 0) + (self.end - self.begin).total_seconds()
        return max(LEAST_RUN_S, round(done_s))


def useful_s(row: Workload, now: datetime) -> float:
    """Seconds of useful run time with all its members, so far."""
    gpus = row.gpus * row.max_members / MILLI
    used = row.used_gpu_s - row.lost_gpu_s
    if row.finished_at is None and row.started_at and row.allocated_gpus:
        used += row.allocated_gpus / MILLI * (now - row.started_at).total_seconds()
    return max(0.0, used / gpus) if gpus else 0.0


def kinds_of(*, user: str, name: str, queue: str, gpus: int) -> Kinds:
    """What a workload is one of, from the narrowest to the widest: people repeat themselves. ``gpus`` are
    those of its smallest gang; counters at the end of a name do not count."""
    stem = name.rpartition("/")[2].rstrip("-0123456789")
    return (user, stem, gpus), (queue, gpus), (queue,), ()


def kinds_of_row(row: Workload) -> Kinds:
    return kinds_of(
        user=row.user, name=row.name, queue=row.queue_label, gpus=row.gpus * row.min_members
    )
