"""Starts by hour of day: how many workloads first started in each hour, and how long those had waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from portal.accounts.models import User
from portal.display.csv import Table
from portal.display.format import counted, duration, percent
from portal.display.spread import Spread
from portal.reports.declaration import Finding, Letter, Report
from portal.reports.filters import ReportFilters
from portal.reports.scope import report_scope
from portal.reports.waits import spreads_by_hour
from scheduling.models import Cluster

COLUMNS = ("started", "share_of_starts", "median_wait_s")


@dataclass(frozen=True)
class StartsReport:
    """``hours`` are waits in seconds by hour of day of the first start, 0 to 23 in the filters' zone."""

    filters: ReportFilters
    hours: tuple[Spread, ...]

    @property
    def count(self) -> int:
        return sum(spread.count for spread in self.hours)

    @property
    def is_empty(self) -> bool:
        return not self.count

    @property
    def busiest(self) -> list[int]:
        """Hours in which something started, those with most starts first."""
        some = [hour for hour, spread in enumerate(self.hours) if spread.count]
        return sorted(some, key=lambda hour: (-self.hours[hour].count, hour))

    @property
    def longest(self) -> int | None:
        """The hour with the longest median wait, of several with enough starts to tell."""
        known = [h for h, spread in enumerate(self.hours) if spread.is_telling and spread.p50]
        some = max(known, key=lambda h: (self.hours[h].p50 or 0, -h), default=None)
        return some if sum(spread.is_telling for spread in self.hours) > 1 else None

    def tables(self) -> tuple[Table, ...]:
        busiest = [(span(hour), *self._cells(hour)) for hour in self.busiest]
        return (
            Table("hours", "By hour of day", ("hour", *COLUMNS), self._rows()),
            Table("busiest", "Most starts first", ("between", *COLUMNS), busiest),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "starts",
            "filters": self.filters.as_dict(),
            "time_zone": self.filters.zone,
            "started": self.count,
            **{table.name: table.as_dicts() for table in self.tables()},
        }

    def _rows(self) -> Sequence[tuple[int | float | None, ...]]:
        return [(hour, *self._cells(hour)) for hour in range(len(self.hours))]

    def _cells(self, hour: int) -> tuple[int | float | None, ...]:
        spread = self.hours[hour]
        part = spread.count / self.count if self.count else None
        return (spread.count, part, None if spread.p50 is None else round(spread.p50, 1))


def span(hour: int) -> str:
    """23 -> '23:00–24:00'."""
    return f"{hour:02d}:00–{hour + 1:02d}:00"


def starts(cluster: Cluster, filters: ReportFilters, user: User) -> StartsReport:
    """Of the work that ``user`` may see. Raises Http404 and ValidationError as ``report_scope`` does."""
    return StartsReport(filters, spreads_by_hour(report_scope(cluster, filters, user), filters))


def finding(report: StartsReport) -> Finding:
    first = report.busiest[0]
    most = report.hours[first].count
    bold = f"{counted(report.count, 'workload')} started, "
    bold += f"{percent(most / report.count)} of them between {_between(first)}."
    if report.longest is None:
        return Finding(bold)
    wait = duration(report.hours[report.longest].p50)
    return Finding(
        bold,
        f"Work that started between {_between(report.longest)} had waited longest: half of it {wait} or"
        " more.",
    )


def _between(hour: int) -> str:
    return span(hour).replace("–", " and ")


REPORT = Report(
    "starts", "Starts by hour",
    "Starts by hour of day: how many workloads first started in each hour, and their median wait.",
    starts, finding,
    Letter("busiest", "between", (("started", "{} started"), ("median_wait_s", "median wait {}"))),
)  # fmt: skip
