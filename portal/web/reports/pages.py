"""What the templates of the reports show: figures, bars and cells of a report, worked out beforehand."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from django.urls import reverse

from portal.display.adding_up import hours_column, percent_column
from portal.display.format import class_number
from portal.display.spread import LEAST
from portal.reports import words
from portal.reports.figures import starts as start_figures
from portal.reports.figures import theme
from portal.reports.figures import waits as wait_figures
from portal.reports.filters import PRESETS, ReportFilters
from portal.reports.forms import FilterForm
from portal.reports.longest import CAUSES, LongestReport, LongestRow
from portal.reports.outages import Outage
from portal.reports.outages import longest as longest_outages
from portal.reports.starts import StartsReport
from portal.reports.waits import WEEKDAYS, WaitsReport
from portal.selectors.workloads import gang
from scheduling.models import Cluster, Workload

SHADES = 6
"""Steps of a matrix, see reports.css."""
USERS = 500
"""Names offered while typing."""
ROWS = 8
"""Queues or people shown at once; ``show_all`` shows the rest."""


class _Kind(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def compares(self) -> bool: ...


@dataclass(frozen=True)
class ReportTab:
    title: str
    url: str
    current: bool


def frame(
    name: str, kinds: Collection[_Kind], form: FilterForm, cluster: Cluster, filters: ReportFilters
) -> dict[str, Any]:
    """Tabs, filter bar and export links; the same on every report."""
    query, narrow = filters.query(), filters.query(evicted="", **{"for": ""})
    url = reverse(f"reports:{name}", args=[cluster.name])
    return {
        "kind": name,
        "compares": any(kind.compares for kind in kinds if kind.name == name),
        "form": form,
        "filters": filters,
        "tabs": [
            ReportTab(
                kind.title,
                f"{reverse(f'reports:{kind.name}', args=[cluster.name])}?{narrow}",
                kind.name == name,
            )
            for kind in kinds
        ],
        "presets": [
            (label, f"?{filters.query(range=key)}", filters.preset == key)
            for key, label in PRESETS.items()
        ],
        "range_name": words.range_name(filters),
        "range_note": words.range_note(filters, None),
        "before_label": words.before_label(filters),
        "from_to": _inputs(filters, form),
        "users": _users(form),
        "csv_url": f"{url}.csv?{query}",
        "json_url": f"{url}.json?{query}",
        "link": f"{url}?{filters.permanent_query()}",
        "api_url": f"{reverse(f'api:{name}', args=[cluster.name])}?{query}",
    }


def _inputs(filters: ReportFilters, form: FilterForm) -> dict[str, str]:
    """What stands in the two day fields: as typed when wrong, else the range in local days."""
    if form.errors:
        return {"type": "text", "from": form.data.get("from", ""), "to": form.data.get("to", "")}
    if filters.preset:
        return {"type": "date", "from": "", "to": ""}
    start, end = filters.start.astimezone(filters.tz), filters.end.astimezone(filters.tz)
    if start.time() == end.time() and start.hour == start.minute == 0:
        last = end - timedelta(days=1)
        return {"type": "date", "from": f"{start:%F}", "to": f"{last:%F}"}
    return {"type": "datetime-local", "from": f"{start:%FT%H:%M}", "to": f"{end:%FT%H:%M}"}


def _users(form: FilterForm) -> list[str]:
    """Users who have work in the queues that the person may report on."""
    rows = Workload.objects.filter(queue__in=form.queues).exclude(user="")
    return list(rows.order_by("user").values_list("user", flat=True).distinct()[:USERS])


@dataclass(frozen=True)
class Meter:
    """A bar in percent of its track: ``full`` inside ``pale``, a tick at ``mark``."""

    full: float
    pale: float = 0.0
    mark: float | None = None
    colour: int = 0
    """Class colour; 0 is the accent."""

    @property
    def tone(self) -> str:
        return f"fill-{self.colour}" if self.colour else "fill-own"


def part_of(value: float, of: float) -> float:
    return round(min(100.0, 100 * value / of), 2) if of > 0 else 0.0


def waits_page(report: WaitsReport, *, show_all: bool = False, **_: object) -> dict[str, Any]:
    return {
        "waiting": words.waiting_sentence(report),
        "by_day": wait_figures.by_day(report),
        "within": wait_figures.started_within(report),
        "week": wait_figures.when_to_submit(report),
        "zone_name": f"{report.filters.end.astimezone(report.filters.tz):%Z}",
        "top": wait_figures.scale_top(report),
        "left_out": sum(0 < spread.count < LEAST for spread in report.days),
        "least": LEAST,
        "few": wait_figures.FEW if any(0 < spread.count < LEAST for spread in report.week) else "",
        "cividis": [
            (round(100 * i / (len(theme.CIVIDIS) - 1), 1), colour)
            for i, colour in enumerate(theme.CIVIDIS)
        ],
        "day_rows": list(zip(report.periods.starts, report.days, strict=True)),
        "week_rows": [
            (name, report.week[24 * day : 24 * day + 24]) for day, name in enumerate(WEEKDAYS)
        ],
        "hours": [f"{hour:02d}" for hour in range(24)],
        "class_rows": [(row, class_number(row.position)) for row in report.classes],
        "queue_rows": report.queues if show_all else report.queues[:ROWS],
        "down_rows": down_rows(report.down, report.filters),
        "within_rows": _within_rows(report),
    }


def down_rows(found: Sequence[Outage], filters: ReportFilters) -> list[tuple[Outage, bool]]:
    """Of many the longest; and whether each lasted over the whole range."""
    return [(one, one.covers(filters)) for one in longest_outages(found)]


def starts_page(report: StartsReport, **_: object) -> dict[str, Any]:
    hours, _busiest = report.tables()
    return {
        "by_hour": start_figures.by_hour(report),
        "zone_name": f"{report.filters.end.astimezone(report.filters.tz):%Z}",
        "hour_rows": [(f"{hour:02d}:00", *cells) for hour, *cells in hours.rows],
    }


WITHIN_S = (60, 600, 3600, 6 * 3600, 86400)


def _within_rows(report: WaitsReport) -> list[tuple[str, list[float | None]]]:
    """Share of each class that started within 1 min, 10 min, 1 h, 6 h, 24 h."""
    rows = []
    for row in report.classes:
        count = len(row.waits)
        shares = [float((row.waits <= s).sum()) / count if count else None for s in WITHIN_S]
        rows.append((row.name, shares))
    return rows


@dataclass(frozen=True)
class Piece:
    """A stretch of a bar, percent of the axis, in the colour of its cause."""

    x: float
    width: float
    cause: str
    title: str


def longest_page(report: LongestReport, **_: object) -> dict[str, Any]:
    most = max((row.waited.total_s for row in report.rows), default=0.0)
    step = next((h for h in AXIS_HOURS if 4 * h * 3600 >= most), AXIS_HOURS[-1])
    end = step * max(1, math.ceil(most / 3600 / step))
    high = max((row.hours for row in report.causes), default=0.0)
    hours = hours_column([row.hours for row in report.causes], report.hours)
    shares = percent_column([report.share(row.cause.name) for row in report.causes])
    return {
        "ticks": [(round(100 * h / end, 2), h) for h in range(0, end + 1, step)],
        "longest_rows": [
            (row, gang(row.work), _pieces(row, end * 3600), words.mostly(row))
            for row in report.rows
        ],
        "cause_rows": [
            (row, part_of(row.hours, high), time, share)
            for row, time, share in zip(report.causes, hours.parts, shares.parts, strict=True)
        ],
        "legend": [row.cause for row in report.causes],
        "all_hours": hours.total,
        "queue_rows": report.queues[:ROWS],
    }


AXIS_HOURS = (1, 2, 3, 6, 12, 24, 48, 96, 168, 336)
"""Between two ticks; at most five of them stand on an axis."""


def _pieces(row: LongestRow, end_s: float) -> list[Piece]:
    """By cause, not by when: the longest first."""
    titles = {cause.name: cause.title for cause in CAUSES}
    found, at = [], 0.0
    for name in row.waited.mostly:
        width = 100 * row.waited.by_cause[name] / end_s
        found.append(Piece(round(at, 3), round(width, 3), name, titles[name]))
        at += width
    return found
