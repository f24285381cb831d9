"""Forecast: what will be asked of the GPUs against what there is, and how good such forecasts have been.

Demand is what would run if nothing waited. Forecasts are made once a day for the cluster and for each queue
with others below it; a subtree is held against its own nominal quota, the cluster against what is ready.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db.models import Case, F, When

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.display.periods import HOUR_S, Floats
from portal.display.units import unit
from portal.reports.filters import ReportFilters
from portal.reports.samples import best_resolution
from portal.reports.scope import Scope, report_scope
from scheduling.models import (
    MILLI,
    Cluster,
    DemandForecast,
    GpuClass,
    Node,
    Queue,
    Share,
    UsageSample,
)
from scheduling.models.ledger import Resolution

WEEK = timedelta(weeks=1)
HOUR = timedelta(hours=1)
PAST_DAYS = 3
"""Of known hours before those ahead."""
PAST_WEEKS = 26
BANDS = ("p10", "p25", "p50", "p75", "p90")


@dataclass(frozen=True, slots=True)
class Crossing:
    """When the weekly mean of the demand first exceeds what there is; None is not within the forecast."""

    early: datetime | None
    """By the P90 of the demand."""
    middle: datetime | None
    late: datetime | None
    """By its P10."""


@dataclass(frozen=True)
class ClassAhead:
    """One class; GPUs are its own (slices where it has slices)."""

    gpu_class: GpuClass
    capacity: float
    """Ready GPUs of the cluster now, or the nominal quota of the subtree."""
    installed: float
    mean: float | None
    """Demand in the range; None where it is not known."""
    above_hours: float
    """Hours of the range in which it was above what there was then."""
    row: DemandForecast | None

    @property
    def unit(self) -> str:
        return unit(self.gpu_class)

    @property
    def is_told(self) -> bool:
        return self.row is not None and not self.row.why_not

    @property
    def why_not(self) -> str:
        return self.row.why_not if self.row else "none has been made yet"

    @property
    def hours_above(self) -> int | None:
        """Of the hours ahead, those whose P50 is above what there is."""
        if self.row is None or not self.is_told:
            return None
        return sum(gpus > self.capacity for gpus in self.row.hours["p50"])

    @property
    def peak(self) -> float | None:
        """The highest P50 of the hours ahead."""
        if self.row is None or not self.is_told:
            return None
        return float(max(self.row.hours["p50"], default=0.0))

    @property
    def passing(self) -> Crossing | None:
        """None where there is no forecast."""
        if self.row is None or not self.is_told:
            return None
        return Crossing(*(self._passes(self.row, name) for name in ("p90", "p50", "p10")))

    def _passes(self, row: DemandForecast, name: str) -> datetime | None:
        weeks = row.weeks[name]
        i = next((i for i, gpus in enumerate(weeks) if gpus > self.capacity), None)
        return None if i is None else row.made_at + i * WEEK

    @property
    def holds(self) -> bool:
        """Whether P50 stays within what there is as far as it was looked."""
        return self.passing is not None and self.passing.middle is None


@dataclass(frozen=True, slots=True)
class KnownDemand:
    """Known demand of the chosen class: by the hour up to the forecast, and by the week before it."""

    hours_start: datetime
    hours: Floats
    weeks_start: datetime
    weeks: Floats


@dataclass(frozen=True)
class ForecastReport:
    filters: ReportFilters
    cluster: Cluster
    queue: Queue | None
    """Whose demand it is; None where no forecast is made for what was chosen."""
    choices: tuple[str, ...]
    """Names of queues of which there is one, that the person may see."""
    rows: tuple[ClassAhead, ...]
    chosen: ClassAhead | None
    past: KnownDemand | None

    @property
    def is_empty(self) -> bool:
        return self.queue is None or not self.rows

    @property
    def is_whole(self) -> bool:
        return self.queue is not None and self.queue.is_root

    @property
    def against(self) -> str:
        return "ready" if self.is_whole else "nominal"

    def tables(self) -> tuple[Table, ...]:
        return (
            _class_table(self), _hour_table(self), _week_table(self), _score_table(self),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "forecast",
            "filters": self.filters.as_dict(),
            "queue": str(self.queue) if self.queue else None,
            "against": self.against,
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def forecast(cluster: Cluster, filters: ReportFilters, user: User) -> ForecastReport:
    """What will be asked of ``cluster``, or of the chosen subtree. Raises as ``report_scope`` does."""
    scope = report_scope(cluster, filters, user)
    made = _made(scope)
    queue = _queue(scope, made)
    rows = _rows(scope, filters, queue, made.get(queue.pk, {})) if queue else ()
    chosen = _most_pressing(rows)
    return ForecastReport(
        filters=filters,
        cluster=cluster,
        queue=queue,
        choices=tuple(scope.queues[pk].name for pk in made),
        rows=rows,
        chosen=chosen,
        past=_past(queue, chosen) if queue and chosen else None,
    )


def about(report: ForecastReport, name: str) -> ForecastReport:
    """The same, with the class called ``name`` as the chosen one; as it is where none is told of it."""
    rows = (row for row in report.rows if row.gpu_class.name == name and row.is_told)
    chosen = next(rows, None)
    if chosen is None or report.queue is None:
        return report
    return replace(report, chosen=chosen, past=_past(report.queue, chosen))


def _made(scope: Scope) -> dict[int, dict[int, DemandForecast]]:
    """Queue -> class -> the newest forecast."""
    found: dict[int, dict[int, DemandForecast]] = defaultdict(dict)
    rows = DemandForecast.objects.filter(
        queue__in=list(scope.queues), gpu_class__in=list(scope.classes)
    ).order_by("queue__path")
    for row in rows:
        found[row.queue_id][row.gpu_class_id] = row
    return dict(found)


def _queue(scope: Scope, made: Mapping[int, object]) -> Queue | None:
    """The top of what was chosen, where there is one top of which forecasts are made."""
    if len(scope.tops) != 1:
        return None
    (top,) = scope.tops
    return scope.queues[top] if top in made else None


def _rows(
    scope: Scope, filters: ReportFilters, queue: Queue, made: Mapping[int, DemandForecast]
) -> tuple[ClassAhead, ...]:
    capacity, known = _capacity(scope, queue), _measured_demand(scope, filters, queue)
    rows = []
    for pk, gpu_class in scope.classes.items():
        installed, ready = capacity.get(pk, (0.0, 0.0))
        mean, above = known.get(pk, (None, 0.0))
        rows.append(ClassAhead(gpu_class, ready, installed, mean, above, made.get(pk)))
    return tuple(rows)


def _capacity(scope: Scope, queue: Queue) -> dict[int, tuple[float, float]]:
    """Class -> (installed, to hold demand against)."""
    if not queue.is_root:
        shares = Share.objects.filter(queue=queue).values_list("gpu_class_id", "nominal")
        return {pk: (gpus / MILLI, gpus / MILLI) for pk, gpus in shares}
    found: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    rows = Node.objects.filter(cluster=scope.cluster, gpu_class__in=list(scope.classes))
    for pk, gpus, foreign, ready in rows.values_list(
        "gpu_class_id", "gpus", "foreign_gpus", "ready"
    ):
        found[pk][0] += gpus / MILLI
        found[pk][1] += (gpus - foreign) / MILLI if ready else 0.0
    return {pk: (installed, ready) for pk, (installed, ready) in found.items()}


def _measured_demand(
    scope: Scope, filters: ReportFilters, queue: Queue
) -> dict[int, tuple[float | None, float]]:
    """Class -> (mean demand in the range, hours above what there was)."""
    top = Scope(scope.cluster, {queue.pk: queue}, scope.classes)
    limit = "ready_gpus" if queue.is_root else "nominal_gpus"
    rows = UsageSample.objects.filter(
        queue=queue, gpu_class__in=list(scope.classes), demand_gpus__isnull=False,
        resolution=_by_the_hour(best_resolution(top, filters)),
        start__gte=filters.start, start__lt=filters.end,
    ).annotate(
        above=Case(When(demand_gpus__gt=F(limit), then=F("seconds")), default=0)
    )  # fmt: skip
    found: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for pk, seconds, gpus, above in rows.order_by().values_list(
        "gpu_class_id", "seconds", "demand_gpus", "above"
    ):
        sums = found[pk]
        sums[0] += seconds
        sums[1] += seconds * (gpus or 0.0) / MILLI
        sums[2] += above / HOUR_S
    return {pk: (gpu_s / seconds, above) for pk, (seconds, gpu_s, above) in found.items()}


def _by_the_hour(resolution: Resolution | None) -> Resolution:
    """Demand is not known by the minute."""
    return Resolution.DAY if resolution == Resolution.DAY else Resolution.HOUR


def _most_pressing(rows: Iterable[ClassAhead]) -> ClassAhead | None:
    """Of those told: what passes first, else what comes nearest."""
    pressing = [row for row in rows if row.passing is not None and row.capacity > 0]

    def key(row: ClassAhead) -> tuple[float, float]:
        middle = row.passing.middle if row.passing else None
        return middle.timestamp() if middle else math.inf, -(row.peak or 0.0) / row.capacity

    return min(pressing, key=key, default=None)


def _past(queue: Queue, chosen: ClassAhead) -> KnownDemand | None:
    if chosen.row is None:
        return None
    made = chosen.row.made_at
    begin = made - PAST_WEEKS * WEEK
    hours = np.full(PAST_WEEKS * 168, np.nan)
    rows = UsageSample.objects.filter(
        queue=queue, gpu_class=chosen.gpu_class, resolution=Resolution.HOUR,
        start__gte=begin, start__lt=made, demand_gpus__isnull=False,
    )  # fmt: skip
    for at, gpus in rows.order_by().values_list("start", "demand_gpus"):
        hours[round((at - begin) / HOUR)] = (gpus or 0.0) / MILLI
    with np.errstate(invalid="ignore"):
        weeks = hours.reshape(-1, 168)
        known = (~np.isnan(weeks)).sum(axis=1)
        means = np.where(known > 84, np.nansum(weeks, axis=1) / np.maximum(known, 1), np.nan)
    return KnownDemand(made - PAST_DAYS * 24 * HOUR, hours[-PAST_DAYS * 24 :], begin, means)


def _class_table(report: ForecastReport) -> Table:
    columns = (
        "gpu_class", "installed", f"{report.against}_gpus", "mean_demand_in_range", "hours_above_in_range",
        "hours_above_of_next_168", "highest_p50_of_next_168", "passes_p50", "passes_early", "passes_late",
        "gpus_more_a_week", "made_at", "why_not",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for row in report.rows:
        at, forecast = row.passing, row.row
        rows.append((
            row.gpu_class.name, row.installed if report.is_whole else None, row.capacity, row.mean,
            row.above_hours, row.hours_above,
            row.peak, at.middle if at else None, at.early if at else None, at.late if at else None,
            forecast.slope_per_week if forecast else None, forecast.made_at if forecast else None,
            "" if row.is_told else row.why_not,
        ))  # fmt: skip
    return Table("classes", "Demand against capacity by GPU class", columns, rows)


def _ahead(report: ForecastReport, name: str, step: timedelta) -> list[tuple[Cell, ...]]:
    found: list[tuple[Cell, ...]] = []
    for row in report.rows:
        forecast = row.row
        if forecast is None or forecast.why_not:
            continue
        bands = zip(*(getattr(forecast, name)[band] for band in BANDS), strict=True)
        found += [
            (forecast.made_at + i * step, row.gpu_class.name, *gpus) for i, gpus in enumerate(bands)
        ]
    return found


def _hour_table(report: ForecastReport) -> Table:
    return Table(
        "hours", "GPUs asked for in the hours ahead", ("start", "gpu_class", *BANDS),
        _ahead(report, "hours", HOUR),
    )  # fmt: skip


def _week_table(report: ForecastReport) -> Table:
    return Table(
        "weeks", "Weekly means ahead", ("start", "gpu_class", *BANDS), _ahead(report, "weeks", WEEK)
    )


def _score_table(report: ForecastReport) -> Table:
    columns = (
        "gpu_class", "days_ahead", "mean_error_gpus", "same_hour_last_week_error_gpus", "p10_p90_holds",
        "forecasts",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            row.gpu_class.name, score["days_ahead"], score["error"], score["last_week_error"],
            score["held"], score["forecasts"],
        )
        for row in report.rows
        if row.row is not None
        for score in row.row.scores
    ]  # fmt: skip
    return Table("scores", "How earlier forecasts did", columns, rows)
