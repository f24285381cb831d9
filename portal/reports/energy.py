"""Energy that GPUs took, by queue, class and time, as their drivers counted it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db.models import QuerySet, Sum

from portal.accounts.models import User
from portal.display.csv import Table
from portal.display.format import counted, number, percent
from portal.display.periods import HOUR_S, Floats, Periods
from portal.display.sentences import and_list
from portal.reports.declaration import Finding, Letter, Report
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope, report_scope
from portal.reports.timelines import workload_filter
from scheduling.models import Cluster, GpuUse

J_PER_KWH = 3.6e6
COLUMNS = ("measured_gpu_hours", "energy_kwh", "mean_w_per_gpu", "share_of_energy")


@dataclass(frozen=True, slots=True)
class Took:
    """What one queue, class or period took."""

    name: str | datetime
    gpu_hours: float
    """That were measured."""
    kwh: float

    @property
    def mean_w(self) -> float | None:
        """Of one GPU while it was held."""
        return 1000 * self.kwh / self.gpu_hours if self.gpu_hours else None


@dataclass(frozen=True)
class EnergyReport:
    filters: ReportFilters
    unit: str
    """Of the periods: hour, day or week."""
    queues: tuple[Took, ...]
    """Leaves, what took most first; all three add up to the same."""
    classes: tuple[Took, ...]
    periods: tuple[Took, ...]

    @property
    def total(self) -> Took:
        return Took("all", sum(row.gpu_hours for row in self.queues), self.kwh)

    @property
    def kwh(self) -> float:
        return sum(row.kwh for row in self.queues)

    @property
    def is_empty(self) -> bool:
        return not self.kwh

    def tables(self) -> tuple[Table, ...]:
        return (
            self._table("queues", "By queue", "queue", self.queues),
            self._table("classes", "By GPU class", "gpu_class", self.classes),
            self._table("periods", f"By {self.unit}", "start", self.periods),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "energy",
            "filters": self.filters.as_dict(),
            "energy_kwh": round(self.kwh, 3),
            "measured_gpu_hours": round(self.total.gpu_hours, 3),
            "mean_w_per_gpu": self.total.mean_w,
            **{table.name: table.as_dicts() for table in self.tables()},
        }

    def _table(self, name: str, title: str, first: str, rows: Iterable[Took]) -> Table:
        return Table(name, title, (first, *COLUMNS), [
            (row.name, row.gpu_hours, row.kwh, row.mean_w, row.kwh / self.kwh if self.kwh else None)
            for row in rows
        ])  # fmt: skip


def energy(cluster: Cluster, filters: ReportFilters, user: User) -> EnergyReport:
    """Of the hours that begin in the range. Raises Http404 and ValidationError as ``report_scope`` does."""
    scope = report_scope(cluster, filters, user)
    used = _used(scope, filters)
    periods = Periods.of(filters.start, filters.end, filters.tz)
    return EnergyReport(
        filters,
        periods.unit,
        _largest(used, "workload__queue_id", {pk: q.path for pk, q in scope.queues.items()}),
        _largest(used, "gpu_class_id", {pk: c.name for pk, c in scope.classes.items()}),
        _by_period(used, periods),
    )


def _used(scope: Scope, filters: ReportFilters) -> QuerySet[GpuUse]:
    return GpuUse.objects.filter(
        workload_filter(filters, "workload__"),
        workload__queue__in=list(scope.leaves),
        gpu_class__in=list(scope.classes),
        start__gt=filters.start - timedelta(hours=1),
        start__lt=filters.end,
        energy_j__gt=0,
    ).order_by()


def _largest(used: QuerySet[GpuUse], key: str, names: dict[int, str]) -> tuple[Took, ...]:
    rows = used.values_list(key).annotate(gpu_s=Sum("gpu_s"), j=Sum("energy_j"))
    found = [Took(names[pk], gpu_s / HOUR_S, j / J_PER_KWH) for pk, gpu_s, j in rows]
    return tuple(sorted(found, key=lambda row: (-row.kwh, str(row.name))))


def _by_period(used: QuerySet[GpuUse], periods: Periods) -> tuple[Took, ...]:
    rows = list(used.values_list("start").annotate(gpu_s=Sum("gpu_s"), j=Sum("energy_j")))
    at = periods.index(np.array([start.timestamp() for start, _, _ in rows]))

    def sums(values: list[float], per: float) -> Floats:
        return np.bincount(at, values, minlength=len(periods.starts)) / per

    gpu_hours, kwh = sums([s for _, s, _ in rows], HOUR_S), sums([j for _, _, j in rows], J_PER_KWH)
    return tuple(map(Took, periods.starts, gpu_hours.tolist(), kwh.tolist()))


def finding(report: EnergyReport) -> Finding:
    total = report.total
    bold = f"{number(total.kwh, 1)} kWh, {number(total.mean_w or 0)} W for each GPU that was held."
    most = report.queues[:3]
    if len(report.queues) <= len(most):
        return Finding(bold)
    part = sum(row.kwh for row in most) / report.kwh
    names = and_list([str(row.name) for row in most])
    return Finding(
        bold, f"{names}, of {counted(len(report.queues), 'queue')}, took {percent(part)} of it."
    )


REPORT = Report(
    "energy", "Energy", "Energy that GPUs took, by queue, class and time.", energy, finding,
    Letter("queues", "queue", (("energy_kwh", "{} kWh"), ("mean_w_per_gpu", "{} W a GPU"))),
)  # fmt: skip
