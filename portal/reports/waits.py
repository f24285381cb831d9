"""Queue waits: how long work waited from its submission to its first start.

Counted are the workloads that first started in the range. Work that still waits has no wait yet: it is
reported apart, and so is work that was cancelled before it ever started.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from portal.accounts.models import User
from portal.display.csv import Table
from portal.display.periods import (
    DAY_HOURS,
    Floats,
    Ints,
    Periods,
    epochs,
    hour_of_day,
    hour_of_week,
)
from portal.display.spread import Spread
from portal.reports import samples
from portal.reports.filters import ReportFilters
from portal.reports.outages import Outage, outage_table, outages
from portal.reports.scope import Scope, report_scope
from portal.reports.timelines import workload_filter
from scheduling.models import Cluster, State, Transition, Workload
from scheduling.services.ledger.holds import LAST_CLASS
from scheduling.services.tables.instants import Epoch

SIZES = ((1, "1 GPU or less"), (4, "2–4"), (8, "5–8"), (32, "9–32"), (None, "33 and more"))
"""Largest gang in GPUs, and its name."""
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
WEEK_HOURS = 7 * 24
_SIZE = F("gpus") * F("min_members")


@dataclass(frozen=True)
class ClassWaits:
    """Waits in seconds of the work that started on one GPU class, sorted."""

    name: str
    position: int
    waits: Floats
    spread: Spread


@dataclass(frozen=True)
class SizeWaits:
    label: str
    spread: Spread


@dataclass(frozen=True)
class QueueWaits:
    name: str
    path: str
    spread: Spread


@dataclass(frozen=True)
class PendingWork:
    """Work that had not started when the range ended. Its wait is at least what it is so far."""

    count: int = 0
    gpus: float = 0.0
    """Asked for, milli-GPU; a slice counts its part."""
    so_far: Spread = field(default_factory=Spread)
    longest_s: float | None = None
    cancelled: int = 0
    """Ended in the range without ever starting."""
    again: int = 0
    """Started before, was evicted and waited anew when the range ended; its first wait is in the spreads."""
    again_gpus: float = 0.0


@dataclass(frozen=True)
class WaitsReport:
    """Spreads are in seconds. ``days`` are the pieces of ``periods``, by first start."""

    filters: ReportFilters
    total: Spread
    before: Spread | None
    """Of the period before; None when not asked for, unknown, or nothing started then."""
    periods: Periods
    days: tuple[Spread, ...]
    classes: tuple[ClassWaits, ...]
    queues: tuple[QueueWaits, ...]
    """That started anything: the longest P90 first, after those with enough work to tell the rest."""
    sizes: tuple[SizeWaits, ...]
    week: tuple[Spread, ...]
    """By hour of the week of the submission, Monday 00:00 local first."""
    waiting: PendingWork
    down: tuple[Outage, ...]

    @property
    def is_empty(self) -> bool:
        return not self.total.count

    @property
    def worst_hour(self) -> int | None:
        """Hour of the week with the longest P90, of those with enough work to tell."""
        known = [h for h, s in enumerate(self.week) if s.is_telling and s.p90]
        return max(known, key=lambda h: (self.week[h].p90 or 0, -h)) if known else None

    @property
    def leaves_out(self) -> bool:
        """Whether hours or classes with too little work to tell are in the tables, not in the sentence."""
        classes, queues = (row.spread for row in self.classes), (row.spread for row in self.queues)
        every = (*self.week, *classes, *queues)
        return any(spread.count and not spread.is_telling for spread in every)

    @property
    def tail_class(self) -> ClassWaits | None:
        """The class with the longest P90, when there are several to compare."""
        known = [c for c in self.classes if c.spread.is_telling and c.spread.p90]
        return max(known, key=lambda c: c.spread.p90 or 0) if len(known) > 1 else None

    @property
    def tail_queue(self) -> QueueWaits | None:
        """The queue with the longest P90, when there are several to compare."""
        known = [row for row in self.queues if row.spread.is_telling]
        return known[0] if len(known) > 1 and known[0].spread.p90 else None

    def tables(self) -> tuple[Table, ...]:
        return (
            _day_table(self), _class_table(self), _queue_table(self), _size_table(self),
            _week_table(self), outage_table(self.down),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "waits",
            "filters": self.filters.as_dict(),
            "total": spread_dict(self.total),
            "before": spread_dict(self.before) if self.before else None,
            "still_waiting": {
                "count": self.waiting.count,
                "gpus": round(self.waiting.gpus / 1000, 3),
                "longest_s": self.waiting.longest_s,
                **{f"so_far_{k}": v for k, v in spread_dict(self.waiting.so_far).items()},
            },
            "cancelled_before_start": self.waiting.cancelled,
            "waiting_again": {
                "count": self.waiting.again,
                "gpus": round(self.waiting.again_gpus / 1000, 3),
            },
            "period": self.periods.unit,
            **{table.name: table.as_dicts() for table in self.tables()},
        }


@dataclass(frozen=True)
class _StartColumns:
    """Columns of the workloads that started; ``sizes`` in milli-GPU of the smallest gang."""

    submitted: Floats
    started: Floats
    classes: Ints
    queues: Ints
    sizes: Ints

    @property
    def waits(self) -> Floats:
        return np.maximum(0.0, self.started - self.submitted)


def waits(cluster: Cluster, filters: ReportFilters, user: User) -> WaitsReport:
    """How long the work that ``user`` may see waited, in the range of ``filters``.

    Raises:
        Http404: the person has no queue in the cluster.
        ValidationError: the filters name a queue or class that is not there to see.
    """
    scope = report_scope(cluster, filters, user)
    work = _started(scope, filters)
    seconds = work.waits
    periods = Periods.of(filters.start, filters.end, filters.tz)
    return WaitsReport(
        filters=filters,
        total=Spread.of(seconds),
        before=_before(scope, filters),
        periods=periods,
        days=_grouped(seconds, periods.index(work.started), len(periods.starts)),
        classes=_by_class(scope, work, seconds),
        queues=_by_queue(scope, work, seconds),
        sizes=_by_size(work, seconds),
        week=_grouped(seconds, hour_of_week(work.submitted, filters.tz), WEEK_HOURS),
        waiting=_waiting(scope, filters),
        down=outages(scope, filters),
    )


def spread_of_waits(scope: Scope, filters: ReportFilters) -> Spread:
    """The waits of what started in the range, without all else that the report tells. Two queries."""
    return Spread.of(_started(scope, filters).waits)


def spreads_by_hour(scope: Scope, filters: ReportFilters) -> tuple[Spread, ...]:
    """The same by hour of day of the start, 0 to 23 local. Two queries."""
    work = _started(scope, filters)
    return _grouped(work.waits, hour_of_day(work.started, filters.tz), DAY_HOURS)


def _work(scope: Scope, filters: ReportFilters) -> QuerySet[Workload]:
    return Workload.objects.filter(
        workload_filter(filters), cluster=scope.cluster, queue__in=list(scope.queues)
    ).order_by()


def _started(scope: Scope, filters: ReportFilters) -> _StartColumns:
    rows = _work(scope, filters).filter(
        first_started_at__gte=filters.start, first_started_at__lt=filters.end
    )
    ran = rows.annotate(held_class=LAST_CLASS).filter(held_class__in=list(scope.classes))
    columns = ran.values_list(
        Epoch("submitted_at"), Epoch("first_started_at"), "held_class", "queue_id", _SIZE
    )
    table = np.array(list(columns), dtype=np.float64).reshape(-1, 5)
    return _StartColumns(
        # Milliseconds: what the database adds beyond is rounding.
        table[:, 0].round(3),
        table[:, 1].round(3),
        table[:, 2].astype(np.int64),
        table[:, 3].astype(np.int64),
        table[:, 4].astype(np.int64),
    )


def _before(scope: Scope, filters: ReportFilters) -> Spread | None:
    if not filters.compare or not samples.is_known(scope, filters.before()):
        return None
    spread = Spread.of(_started(scope, filters.before()).waits)
    return spread if spread.count else None


def _grouped(values: Floats, index: Ints, count: int) -> tuple[Spread, ...]:
    """The spread of each of ``count`` groups; sorts once, then cuts."""
    order = np.argsort(index, kind="stable")
    cuts = np.searchsorted(index[order], np.arange(1, count))
    return tuple(Spread.of(part) for part in np.split(values[order], cuts))


def _by_class(scope: Scope, work: _StartColumns, seconds: Floats) -> tuple[ClassWaits, ...]:
    rows = []
    for pk, gpu_class in scope.classes.items():
        own = np.sort(seconds[work.classes == pk])
        rows.append(ClassWaits(gpu_class.name, gpu_class.position, own, Spread.of(own)))
    return tuple(rows)


def _by_queue(scope: Scope, work: _StartColumns, seconds: Floats) -> tuple[QueueWaits, ...]:
    known, index = np.unique(work.queues, return_inverse=True)
    spreads = _grouped(seconds, index.astype(np.int64), len(known)) if len(known) else ()
    rows = [
        QueueWaits(scope.queues[pk].name, scope.queues[pk].path, spread)
        for pk, spread in zip(known.tolist(), spreads, strict=True)
    ]
    return tuple(
        sorted(rows, key=lambda row: (not row.spread.is_telling, -(row.spread.p90 or 0), row.path))
    )


def _by_size(work: _StartColumns, seconds: Floats) -> tuple[SizeWaits, ...]:
    bounds = np.array([most * 1000 for most, _ in SIZES if most is not None])
    groups = _grouped(seconds, np.searchsorted(bounds, work.sizes).astype(np.int64), len(SIZES))
    return tuple(SizeWaits(label, s) for (_, label), s in zip(SIZES, groups, strict=True))


def _waiting(scope: Scope, filters: ReportFilters) -> PendingWork:
    """As of the end of the range: submitted by then, and neither started nor ended by then; or evicted since
    it started. One query."""
    asks = _Demands(scope, narrowed=bool(filters.gpu_classes))
    since: list[datetime] = []
    gpus, cancelled = 0.0, 0
    again: list[float] = []
    for submitted, started, finished, size, wish in _not_started(scope, filters):
        if not asks.counts(wish):
            continue
        if started is not None and started < filters.end:
            again.append(asks.gpus(wish, size))
        elif finished is not None and finished < filters.end:
            cancelled += 1
        else:
            since.append(submitted)
            gpus += asks.gpus(wish, size)
    so_far = filters.end.timestamp() - epochs(since)
    longest = float(so_far.max()) if since else None
    return PendingWork(
        len(since), gpus, Spread.of(so_far), longest, cancelled, len(again), math.fsum(again)
    )


def _not_started(scope: Scope, filters: ReportFilters) -> QuerySet[Workload, tuple[Any, ...]]:
    """(submitted, first start, end, milli-GPU, classes) of what did not run when the range ended, but for
    what had run and ended."""
    unstarted = Q(first_started_at=None) | Q(first_started_at__gte=filters.end)
    ended_within = Q(finished_at=None) | Q(finished_at__gte=filters.start)
    open_then = Q(finished_at=None) | Q(finished_at__gte=filters.end)
    last = Transition.objects.filter(workload=OuterRef("pk"), at__lt=filters.end)
    state = last.order_by("-at", "-id").values("to_state")[:1]
    again = Q(first_started_at__lt=filters.end, then=State.REQUEUED)
    rows = (
        _work(scope, filters)
        .annotate(then=Subquery(state))
        .filter((unstarted & ended_within) | (again & open_then), submitted_at__lt=filters.end)
    )
    return rows.values_list("submitted_at", "first_started_at", "finished_at", _SIZE, "gpu_classes")


class _Demands:
    """What waiting work asks for, by the classes that it accepts."""

    def __init__(self, scope: Scope, *, narrowed: bool) -> None:
        self._weights = {c.name: scope.unit.weights[pk] for pk, c in scope.classes.items()}
        self._narrowed = narrowed

    def counts(self, names: list[str]) -> bool:
        return not self._narrowed or any(name in self._weights for name in names)

    def gpus(self, names: list[str], milli: int) -> float:
        """Milli-GPU as whole GPUs count, by the class it would like best."""
        first = next((name for name in names if name in self._weights), "")
        return milli * self._weights.get(first, 1.0)


def spread_dict(spread: Spread) -> dict[str, float | int | None]:
    return {
        "count": spread.count,
        **dict(zip(("p50_s", "p90_s", "p99_s"), _cells(spread)[1:], strict=True)),
    }


def _cells(spread: Spread) -> tuple[float | int | None, ...]:
    values = (spread.p50, spread.p90, spread.p99)
    return (spread.count, *(None if v is None else round(v, 1) for v in values))


SPREAD_COLUMNS = ("started", "p50_s", "p90_s", "p99_s")


def _day_table(report: WaitsReport) -> Table:
    pairs = zip(report.periods.starts, report.days, strict=True)
    rows = [(start, *_cells(spread)) for start, spread in pairs]
    unit = report.periods.unit
    return Table("days", f"Wait by {unit} of start", ("start", *SPREAD_COLUMNS), rows)


def _class_table(report: WaitsReport) -> Table:
    rows = [(row.name, *_cells(row.spread)) for row in report.classes]
    return Table("classes", "Wait by GPU class", ("gpu_class", *SPREAD_COLUMNS), rows)


def _queue_table(report: WaitsReport) -> Table:
    rows = [(row.path, *_cells(row.spread)) for row in report.queues]
    return Table("queues", "Wait by queue", ("queue", *SPREAD_COLUMNS), rows)


def _size_table(report: WaitsReport) -> Table:
    rows = [(row.label, *_cells(row.spread)) for row in report.sizes]
    return Table("sizes", "Wait by size of the gang", ("gpus", *SPREAD_COLUMNS), rows)


def _week_table(report: WaitsReport) -> Table:
    rows = [
        (WEEKDAYS[hour // 24], hour % 24, *_cells(spread))
        for hour, spread in enumerate(report.week)
    ]
    columns = ("weekday", "hour", *SPREAD_COLUMNS)
    return Table("week", "Wait by hour of submission", columns, rows)
