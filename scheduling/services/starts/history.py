"""What the ledger knows that futures are drawn from: how long work ran, and when it arrived."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
from django.db.models import Q

from scheduling.cluster.vocabulary.topology import NO_LEVELS, Levels
from scheduling.engine import Frame
from scheduling.engine.model import Members, Snapshot
from scheduling.engine.model import Workload as Work
from scheduling.models import Cluster, Outcome, Workload
from scheduling.services.ledger.past import kinds_of_row, useful_s
from scheduling.services.queues.knobs import levels_of
from scheduling.services.run_times.rests import Rest, rests_by_name
from scheduling.simulation.ahead.opening import Newcomers, described
from scheduling.simulation.ahead.rhythm import WEEKS, Rhythm
from scheduling.simulation.ahead.runs import RunTimes
from scheduling.simulation.run.jobs import RESTART_S
from scheduling.simulation.run.scribe import Scribe

MOST_ARRIVALS = 20_000
"""The latest arrivals of a cluster that are drawn from."""
BOOKED_LATE = timedelta(minutes=10)
"""A cycle books what it sees by the time at which it was."""
NEEDED = (
    "cluster", "name", "user", "queue", "queue_label", "priority_class", "gpus", "cpus", "memory_mib",
    "min_members", "max_members", "elastic", "shapes", "gpu_classes", "topology", "checkpoint_interval_s",
    "outcome",
    "submitted_at", "first_started_at", "started_at", "finished_at", "used_gpu_s", "lost_gpu_s",
)  # fmt: skip
"""Columns that are read of them."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One of the past, and how long it ran; None while that is unknown."""

    at_s: int
    row: Workload
    run_s: float | None


@dataclass(frozen=True, slots=True)
class StartHistory:
    """Of one cluster at one moment. Nothing in it had not happened by ``now``."""

    now: datetime
    runs: RunTimes
    ended: int
    arrivals: tuple[Arrival, ...]
    rhythm: Rhythm
    rests: Mapping[str, Rest] = field(default_factory=dict)
    """What was learned of the rest of runs, by the engine's name."""
    levels: Levels = NO_LEVELS


def known_of(cluster: Cluster, now: datetime) -> StartHistory:
    """From the rows of the last weeks: those alone are read that came or ended since this process read them
    last, and all once a day of the cluster."""
    with _lock:
        past = _pasts.get(cluster.pk)
        if past is None or not past.since < now < past.whole_at + timedelta(days=1):
            past = _pasts[cluster.pk] = _Past(now)
        rows = past.renewed(cluster, now)
    levels = levels_of(cluster)
    return replace(known_from(rows, now), rests=rests_by_name(cluster), levels=levels)


class _Past:
    """The latest arrivals of a cluster in the memory of a process, by key."""

    def __init__(self, now: datetime) -> None:
        self.whole_at = now
        self.since = now - timedelta(weeks=WEEKS)
        """From when on what came or ended may not have been read yet."""
        self._rows: dict[int, Workload] = {}

    def renewed(self, cluster: Cluster, now: datetime) -> list[Workload]:
        """In order of submission, with what came or ended by ``now``."""
        first = now - timedelta(weeks=WEEKS)
        rows = Workload.objects.filter(cluster=cluster, gpus__gt=0, submitted_at__lte=now)
        rows = rows.filter(submitted_at__gte=first).only(*NEEDED)
        new = Q(submitted_at__gte=self.since) | Q(finished_at__gte=self.since)
        # Prefetched, many share one queue; each row of a join would have one of its own.
        latest = rows.filter(new).order_by("-submitted_at", "-id")[:MOST_ARRIVALS]
        self._rows |= {row.pk: row for row in latest.prefetch_related("priority_class", "queue")}
        recent = sorted(self._rows.values(), key=lambda row: (row.submitted_at, row.pk))
        recent = [row for row in recent[-MOST_ARRIVALS:] if row.submitted_at >= first]
        self._rows = {row.pk: row for row in recent}
        self.since = now - BOOKED_LATE
        return recent


_pasts: dict[int, _Past] = {}
"""By cluster."""
_lock = threading.Lock()


def known_from(rows: Iterable[Workload], now: datetime) -> StartHistory:
    """``rows`` in order of submission; what had not happened by ``now`` is not looked at."""
    seen = [row for row in rows if row.submitted_at <= now]
    runs, ended = _run_times(seen, now)
    arrivals = tuple(
        _arrival(row, now) for row in seen[-MOST_ARRIVALS:] if row.queue_id is not None
    )
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    origin_s = int((midnight - timedelta(days=midnight.weekday())).timestamp())
    submit = np.array([one.at_s for one in arrivals], np.int64)
    rhythm = Rhythm(submit - origin_s, int(now.timestamp()) - origin_s)
    return StartHistory(now, runs, ended, arrivals, rhythm)


def _run_times(rows: Sequence[Workload], now: datetime) -> tuple[RunTimes, int]:
    """Runs that ended, in order of their ends; one that was cut short lasted at least so long."""
    done = [r for r in rows if r.finished_at and r.finished_at <= now and r.first_started_at]
    done.sort(key=lambda row: (row.finished_at, row.pk or 0))
    times, ended = RunTimes(), 0
    for row in done:
        run_s = useful_s(row, now)
        if run_s > 0 and row.outcome != Outcome.CANCELLED:
            times.note(kinds_of_row(row), run_s)
            ended += 1
    return times, ended


def _arrival(row: Workload, now: datetime) -> Arrival:
    ended = row.finished_at is not None and row.finished_at <= now
    run_s = useful_s(row, now) if ended and row.first_started_at else None
    return Arrival(int(row.submitted_at.timestamp()), row, run_s)


def stage(known: StartHistory, snapshot: Snapshot, frame: Frame) -> Newcomers:
    """Every past arrival once, described for ``frame``; those whose queue is gone ask for nothing."""
    scribe = Scribe(frame)
    classes = set(frame.class_names)
    priorities = {p.name for p in snapshot.priority_classes}
    rows = [
        scribe.columns(_work(one.row, classes, priorities, frame, known.levels))
        for one in known.arrivals
    ]
    cast = described(frame, rows, RESTART_S)
    steps = [one.row.checkpoint_interval_s or 0 for one in known.arrivals]
    count = len(rows)
    return Newcomers(
        cast, np.zeros(count, np.int64), np.zeros(count, np.int64),
        np.array(steps, np.int64), np.full(count, RESTART_S, np.int64),
    )  # fmt: skip


def _work(
    row: Workload, classes: set[str], priorities: set[str], frame: Frame, levels: Levels
) -> Work:
    priority = row.priority_class.name if row.priority_class else ""
    return Work(
        name=row.name,
        queue=row.queue.name if row.queue else "",
        user=row.user,
        priority_class=priority if priority in priorities else frame.priority_names[0],
        submitted=row.submitted_at,
        gpus=row.gpus,
        cpus=row.cpus,
        memory_mib=row.memory_mib,
        members=Members(row.min_members, row.max_members),
        roles=row.roles,
        elastic=row.elastic,
        gpu_classes=tuple(name for name in row.gpu_classes if name in classes),
        topology=levels.wish(
            row.topology, (row.min_members, row.max_members), is_unlike=bool(row.shapes)
        ),
    )
