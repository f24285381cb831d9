"""Utilization: how much of what was ready was held, by whom, and how much of that was really used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from django.db.models import Sum

from portal.accounts.models import User
from portal.display.csv import Table
from portal.display.periods import HOUR_S, Floats
from portal.reports import samples, timelines
from portal.reports.evictions import evictions_in
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope, Unit, report_scope
from portal.reports.usage import Readings, Usage
from portal.reports.work import Breakdown, Hours, breakdown, hours_held, worked
from portal.reports.work import gpu_seconds as held_in
from scheduling.models import Cluster

READY = "ready"
"""What the whole cluster is measured against; a subtree is by its nominal quota."""


@dataclass(frozen=True)
class ClassRow:
    """One GPU class; ``exchange_rate`` lets readers weigh it as the engine does."""

    name: str
    position: int
    exchange_rate: float
    usage: Usage


@dataclass(frozen=True)
class QueueRow:
    """One leaf queue; ``usage.capacity`` is its nominal quota."""

    name: str
    path: str
    usage: Usage


@dataclass(frozen=True)
class ClassSeries:
    """Mean GPUs of a class in each step; NaN where no sample covers it."""

    name: str
    position: int
    installed: Floats
    capacity: Floats
    allocated: Floats
    used: Floats


@dataclass(frozen=True)
class UtilizationReport:
    """GPU figures are whole GPUs; ``unit`` says what a slice counts."""

    filters: ReportFilters
    unit: Unit
    against: str
    """'ready' for the whole cluster, 'nominal' for a subtree's own quota."""
    source: str
    """'samples', or 'workloads' where a user or type was asked for."""
    starts: tuple[datetime, ...]
    step_s: int
    series: tuple[ClassSeries, ...]
    classes: tuple[ClassRow, ...]
    queues: tuple[QueueRow, ...]
    """Most GPU-hours first: held and idle where measured, else allocated."""
    total: Usage
    before: Usage | None
    """The same of the period before; None when not asked for or too little is known of it."""
    until: datetime | None
    covered_s: Floats
    """Seconds of each step that something is known of; means are over these."""
    work: Breakdown
    """The same hours by user and type, from the workloads' own timelines, and how work ended."""

    @property
    def used_share_before(self) -> float | None:
        """None where it is not asked for, or too little of it was measured."""
        return self.before.used_share_beside(self.total) if self.before else None

    @property
    def covered_hours(self) -> float:
        return float(self.covered_s.sum()) / HOUR_S

    @property
    def is_empty(self) -> bool:
        return not self.starts

    def tables(self) -> tuple[Table, ...]:
        return (
            _series_table(self), _class_table(self), _queue_table(self), *self.work.tables(),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "utilization",
            "filters": self.filters.as_dict(),
            "against": self.against,
            "source": self.source,
            "note": self.unit.note,
            "step_s": self.step_s,
            "covered_hours": round(self.covered_hours, 3),
            "samples_until": self.until.isoformat() if self.until else None,
            "total": usage_dict(self.total, self.against),
            "before": usage_dict(self.before, self.against) if self.before else None,
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def utilization(cluster: Cluster, filters: ReportFilters, user: User) -> UtilizationReport:
    """What ``user`` may see of the use of ``cluster`` in the range of ``filters``.

    Raises:
        Http404: the person has no queue in the cluster.
        ValidationError: the filters name a queue or class that is not there to see.
    """
    scope = report_scope(cluster, filters, user)
    readings = timelines.read(scope, filters) if filters.by_work else samples.read(scope, filters)
    lost = _lost(scope, filters)
    found = worked(scope, filters, filters.start, filters.end)
    held_hours = hours_held({kin: work.held_gpu_s for kin, work in found.items()})
    rows = _class_rows(scope, readings, lost, held_hours)
    return UtilizationReport(
        filters=filters,
        unit=scope.unit,
        against=READY if scope.is_whole else "nominal",
        source=readings.source,
        starts=tuple(datetime.fromtimestamp(s, UTC) for s in readings.starts_s.tolist()),
        step_s=readings.step_s,
        series=_series(scope, readings),
        classes=rows,
        queues=_queue_rows(scope, readings, held_hours),
        total=sum((row.usage for row in rows), Usage()),
        before=before(scope, filters) if filters.compare else None,
        until=datetime.fromtimestamp(readings.until_s, UTC) if readings.until_s else None,
        covered_s=readings.covered_s,
        work=breakdown(scope, found),
    )


def allocated_gpu_hours(scope: Scope, filters: ReportFilters) -> float:
    """GPU-hours that the scope held in the range; other reports state shares of it."""
    return sum(hours_held(held_in(scope, filters, filters.start, filters.end)).values())


def _usages(scope: Scope, filters: ReportFilters) -> dict[int, Usage]:
    if filters.by_work:
        return timelines.class_usage(scope, filters)
    return samples.class_usage(scope, filters, samples.best_resolution(scope, filters))


def before(scope: Scope, filters: ReportFilters) -> Usage | None:
    """All of the period before, in whole GPUs; None where too little is known of it."""
    if not samples.is_known(scope, filters.before()):
        return None
    usages = _usages(scope, filters.before())
    weights = scope.unit.weights
    total = sum((usage.weighed(weights[pk]) for pk, usage in usages.items()), Usage())
    return total.charged(allocated_gpu_hours(scope, filters.before()))


def _lost(scope: Scope, filters: ReportFilters) -> dict[int, float]:
    """GPU-hours lost to evictions by class."""
    rows = (
        evictions_in(scope, filters)
        .values_list("gpu_class_id")
        .annotate(lost=Sum("lost_gpu_s"))
        .order_by()
    )
    return {pk: lost / 3600 for pk, lost in rows}


def _class_rows(
    scope: Scope, readings: Readings, lost: dict[int, float], held_hours: Hours
) -> tuple[ClassRow, ...]:
    rows = []
    for pk, c in scope.classes.items():
        usage = readings.classes.get(pk, Usage()) + Usage(lost=lost.get(pk, 0.0))
        usage = usage.weighed(scope.unit.weights[pk])
        usage = usage.charged(sum(h for (_, one), h in held_hours.items() if one == pk))
        rows.append(ClassRow(c.name, c.position, float(c.exchange_rate), usage))
    return tuple(rows)


def _series(scope: Scope, readings: Readings) -> tuple[ClassSeries, ...]:
    series = []
    for pk, line in readings.lines.items():
        c, weight = scope.classes[pk], scope.unit.weights[pk]
        figures = (line.installed, line.capacity, line.allocated, line.used)
        series.append(ClassSeries(c.name, c.position, *(weight * values for values in figures)))
    return tuple(series)


def _queue_rows(scope: Scope, readings: Readings, held_hours: Hours) -> tuple[QueueRow, ...]:
    sums: dict[int, Usage] = {}
    for queue, pk in sorted(readings.queues.keys() | held_hours.keys()):
        usage = readings.queues.get((queue, pk), Usage()).weighed(scope.unit.weights[pk])
        usage = usage.charged(held_hours.get((queue, pk), 0.0))
        sums[queue] = sums.get(queue, Usage()) + usage
    rows = [
        QueueRow(scope.queues[pk].name, scope.queues[pk].path, usage) for pk, usage in sums.items()
    ]
    return tuple(sorted(rows, key=_most_first))


def _most_first(row: QueueRow) -> tuple[float, float, str]:
    idle = row.usage.idle if row.usage.is_measured else 0.0
    return -idle, -row.usage.allocated, row.path


def usage_dict(usage: Usage, against: str) -> dict[str, float | None]:
    """Figures of JSON; those of use are null where nobody measures, what is installed where a subtree is not
    measured against it."""
    measured = usage.is_measured
    return {
        "installed_gpu_hours": round(usage.installed, 3) if against == READY else None,
        "available_share_of_installed": _rounded(usage.available_share),
        "capacity_gpu_hours": round(usage.capacity, 3),
        "allocated_gpu_hours": round(usage.allocated, 3),
        "sampled_allocated_gpu_hours": round(usage.known, 3),
        "allocated_share": _rounded(usage.allocated_share),
        "used_gpu_hours": round(usage.used, 3) if measured else None,
        "used_share_of_allocated": _rounded(usage.used_share),
        "held_and_idle_gpu_hours": round(usage.idle, 3) if measured else None,
        "not_measured_gpu_hours": round(usage.unmeasured, 3),
        "free_gpu_hours": round(usage.free, 3),
        "lost_to_evictions_gpu_hours": round(usage.lost, 3),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _series_table(report: UtilizationReport) -> Table:
    measured = report.total.is_measured
    rows = [
        (
            start,
            round(float(report.covered_s[i]), 3),
            line.name,
            _number(line.installed[i]) if report.against == READY else None,
            _number(line.capacity[i]),
            _number(line.allocated[i]),
            _number(line.used[i]) if measured else None,
        )
        for i, start in enumerate(report.starts)
        for line in report.series
    ]
    columns = ("start", "seconds_known", "gpu_class", "installed_gpus", f"{report.against}_gpus")
    return Table(
        "series",
        "Mean GPUs by GPU class over time",
        (*columns, "allocated_gpus", "really_used_gpus"),
        rows,
    )


def _usage_cells(usage: Usage) -> tuple[float | None, ...]:
    measured = usage.is_measured
    return (
        round(usage.capacity, 3),
        round(usage.allocated, 3),
        round(usage.known, 3),
        _rounded(usage.allocated_share),
        round(usage.used, 3) if measured else None,
        _rounded(usage.used_share),
        round(usage.idle, 3) if measured else None,
        round(usage.unmeasured, 3),
        round(usage.lost, 3),
    )


def _usage_columns(against: str) -> tuple[str, ...]:
    return (
        f"{against}_gpu_hours",
        "allocated_gpu_hours",
        "sampled_allocated_gpu_hours",
        f"allocated_share_of_{against}",
        "really_used_gpu_hours",
        "really_used_share_of_allocated",
        "held_and_idle_gpu_hours",
        "not_measured_gpu_hours",
        "lost_to_evictions_gpu_hours",
    )


def _class_table(report: UtilizationReport) -> Table:
    rows = [(row.name, row.exchange_rate, *_usage_cells(row.usage)) for row in report.classes]
    columns = ("gpu_class", "exchange_rate", *_usage_columns(report.against))
    return Table("classes", "GPU-hours by GPU class", columns, rows)


def _queue_table(report: UtilizationReport) -> Table:
    rows = [(row.path, *_usage_cells(row.usage)[:-1]) for row in report.queues]
    columns = ("queue", *_usage_columns("nominal")[:-1])
    return Table("queues", "GPU-hours by leaf queue", columns, rows)
