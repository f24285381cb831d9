"""The last days of the ledger as jobs for the simulator.

A job's run time is the useful part of what it held GPUs for: what evictions cost is for the replay to find
anew. What had begun before the window goes on in its first second with what it had still to do, what has not
ended by its end never does in it. Nodes that were down, holds and edits of that time are not replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from django.db.models import Q, QuerySet, Sum

from scheduling.engine import model as m
from scheduling.models import MILLI, Cluster, Eviction, Outcome, Transition, Workload
from scheduling.simulation.run.jobs import RESTART_S, Submission

LEAST_RUN_S = 1
AT_ONCE = 1000
"""Workloads of which a query asks."""
Kinds = tuple[tuple[object, ...], ...]
UNKNOWN_RUN_S = 3600
"""Run time of what never ran and nobody predicts."""


@dataclass(frozen=True, slots=True)
class LedgerPast:
    """``submissions`` in order; the first ``before`` of them had been submitted before ``begin``."""

    begin: datetime
    end: datetime
    submissions: tuple[Submission, ...]
    before: int


def past_of(cluster: Cluster, *, days: float, snapshot: m.Snapshot) -> LedgerPast:
    """Of the ``days`` up to now, as far as ``snapshot`` still knows queues, classes and priorities."""
    end = snapshot.now
    begin = end - timedelta(days=days)
    found = read_between(cluster, begin, snapshot)
    old = [(row, job) for row, job in found if row.submitted_at < begin]
    old.sort(key=lambda pair: (pair[0].first_started_at or end, pair[0].submitted_at, pair[0].pk))
    new = [job for row, job in found if row.submitted_at >= begin]
    jobs = (*(job for _, job in old), *new)
    return LedgerPast(begin, end, jobs, len(old))


def read_between(
    cluster: Cluster, begin: datetime, snapshot: m.Snapshot
) -> list[tuple[Workload, Submission]]:
    """What was open between ``begin`` and the snapshot's now, in order of submission: its rows, and the jobs
    as ``past_of`` tells of them."""
    end = snapshot.now
    rows = list(_rows(cluster, begin, end))
    begun = [row.pk for row in rows if _had_begun(row, begin)]
    reader = _LedgerReader(snapshot, begin, end, done_before(begun, begin))
    read = [(row, reader.submission(row)) for row in rows]
    return [(row, job) for row, job in read if job is not None]


def _rows(cluster: Cluster, begin: datetime, end: datetime) -> QuerySet[Workload]:
    open_then = Q(finished_at=None) | Q(finished_at__gt=begin)
    rows = Workload.objects.filter(open_then, cluster=cluster, submitted_at__lte=end, gpus__gt=0)
    ran = rows.exclude(outcome=Outcome.CANCELLED, first_started_at=None)
    selection = ran.select_related("priority_class", "queue", "gpu_class", "prediction")
    return selection.order_by("submitted_at", "id")


def _had_begun(row: Workload, at: datetime) -> bool:
    return row.first_started_at is not None and row.first_started_at < at


def done_before(pks: Sequence[int], at: datetime) -> Mapping[int, float]:
    """Useful GPU-seconds that each of these workloads had done by ``at``: what its steps say it held, without
    what evictions lost. Nothing of those whose steps are kept no more. Two queries for each thousand."""
    found: dict[int, float] = {}
    for first in range(0, len(pks), AT_ONCE):
        some = pks[first : first + AT_ONCE]
        steps = Transition.objects.filter(workload__in=some, at__lt=at).order_by(
            "workload", "at", "id"
        )
        rows = steps.values_list("workload", "at", "gpus")
        for pk, each in groupby(rows, key=itemgetter(0)):
            found[pk] = _held_gpu_s([(when, gpus) for _, when, gpus in each], at)
        lost = Eviction.objects.filter(workload__in=found.keys() & set(some), at__lt=at).order_by()
        for pk, gpu_s in lost.values_list("workload").annotate(Sum("lost_gpu_s")):
            found[pk] -= gpu_s
    return found


def _held_gpu_s(steps: Sequence[tuple[datetime, int]], until: datetime) -> float:
    """Of (time, milli-GPU from then on) in order."""
    ends = [*(when for when, _ in steps[1:]), until]
    spells = (
        (end - when).total_seconds() * gpus for (when, gpus), end in zip(steps, ends, strict=True)
    )
    return sum(spells) / MILLI


@dataclass(frozen=True, slots=True)
class _LedgerReader:
    """``done_gpu_s`` is what those had done that had begun before the window."""

    snapshot: m.Snapshot
    begin: datetime
    end: datetime
    done_gpu_s: Mapping[int, float]

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
            roles=row.roles,
            elastic=row.elastic,
            gpu_classes=tuple(wish),
            predicted=self._predicted(row),
        )

    def _predicted(self, row: Workload) -> m.PredictedRunTime | None:
        """Of its run, as said before it began: by the model, else by its author. Nothing of a run that had
        begun before the window: its rest was never told apart."""
        if _had_begun(row, self.begin):
            return None
        prediction = getattr(row, "prediction", None)
        if prediction is not None:
            return m.PredictedRunTime(
                prediction.told_p50_s, max(prediction.told_p50_s, prediction.told_p90_s)
            )
        if row.predicted_p50_s is None:
            return None
        return m.PredictedRunTime(
            row.predicted_p50_s, max(row.predicted_p50_s, row.predicted_p90_s or 0.0)
        )

    def _run_s(self, row: Workload) -> int:
        """Useful seconds with all members, from the window's begin on. Of what never ran its prediction."""
        if row.first_started_at is None or row.first_started_at > self.end:
            return max(LEAST_RUN_S, round(row.predicted_p50_s or UNKNOWN_RUN_S))
        done_s = useful_s(row, self.end)
        if _had_begun(row, self.begin):
            done_s -= self._done_before_s(row)
        if row.finished_at is None or row.finished_at > self.end:
            # It outlives the window, whenever it starts.
            done_s = max(done_s, 0) + (self.end - self.begin).total_seconds()
        return max(LEAST_RUN_S, round(done_s))

    def _done_before_s(self, row: Workload) -> float:
        """Of what had begun before the window; of one whose steps are gone as if it had run all along."""
        if row.pk in self.done_gpu_s:
            return MILLI * self.done_gpu_s[row.pk] / (row.gpus * row.max_members)
        return (self.begin - (row.first_started_at or self.begin)).total_seconds()


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
