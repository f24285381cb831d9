"""How good start forecasts were: one table on one axis, the worst misses, and why the late ones were late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min, QuerySet

from portal.display.adding_up import rounded
from portal.display.format import duration, number, zone
from portal.display.line_labels import LineLabel, roomy
from portal.web.ahead import Ahead, Box
from scheduling.models import Cluster, ForecastOutcome, ForecastRun, LateCause, Workload
from scheduling.services.starts.accuracy import Score, Share, groups, score, scored

RANGES = ("7", "30", "90")
LOW, HIGH = 30.0, 100.0
"""Percent at the ends of the axis."""
DAYS_PX, DAYS_NARROW_PX = 480, 240
TICK_PARTS = (2, 4, 8)
MISSES = 6
FAR_S = 6 * 3600.0
FEW_A_DAY = 3


@dataclass(frozen=True, slots=True)
class AskedForecast:
    days: int = 30
    gpu_class: str = ""
    hourly: bool = False


@dataclass(frozen=True, slots=True)
class ShareDot:
    """A share with its whiskers, percent of the axis; hollow where what was told was missed."""

    x: float
    low: float
    high: float
    hollow: bool


@dataclass(frozen=True, slots=True)
class ForecastRow:
    score: Score
    p50: ShareDot
    p90: ShareDot


@dataclass(frozen=True, slots=True)
class Miss:
    outcome: ForecastOutcome
    box: Box
    dot: float
    text: str


@dataclass(frozen=True, slots=True)
class Day:
    """Of the starts of one local day."""

    label: str
    starts: int
    error_pct: float | None
    naive_pct: float | None
    held_pct: float


@dataclass(frozen=True, slots=True)
class ForecastsPage:
    total: ForecastRow
    groups: Sequence[tuple[str, Sequence[ForecastRow]]]
    before: Score
    far: Score
    misses: Sequence[Miss]
    causes: Sequence[tuple[str, int, float]]
    late: int
    days: Sequence[Day]
    lines: Sequence[tuple[str, str]]
    """(class of the line, points of a polyline 0-100 by 0-100) of the error by day."""
    most_pct: float
    day_ticks: Sequence[LineLabel]
    unscored: int
    run: ForecastRun | None


def page(cluster: Cluster, query: AskedForecast, seen: QuerySet[Workload]) -> ForecastsPage | None:
    """None where nothing was forecast that has come due."""
    now = cluster.now()
    since = now - timedelta(days=query.days)
    how: dict[str, Any] = {"at_submission": not query.hourly, "gpu_class": query.gpu_class}
    rows = scored(cluster, since, now, **how)
    if not rows:
        return None
    earlier = _before(cluster, since - timedelta(days=query.days), since, how)
    late = [one for one in rows if (one.came_s or 0) > one.p90_s]
    days = _days(rows, cluster.display_time_zone)
    most = max([40.0, *(d.error_pct or 0 for d in days), *(d.naive_pct or 0 for d in days)])
    most = min(100.0, most)
    started = Workload.objects.filter(cluster=cluster, first_started_at__range=(since, now))
    return ForecastsPage(
        total=_row(score("All", rows)),
        groups=[(title, [_row(one) for one in part]) for title, part in groups(rows)],
        before=score("before", earlier),
        far=score("far", [one for one in rows if one.p50_s > FAR_S]),
        misses=_misses(
            rows,
            set(seen.filter(pk__in=[r.workload_id for r in rows]).values_list("pk", flat=True)),
        ),
        causes=_causes(late) if not query.hourly else (),
        late=len(late),
        days=days,
        lines=[
            ("naive", _line([d.naive_pct for d in days], most)),
            ("own", _line([d.error_pct for d in days], most)),
        ],
        most_pct=most,
        day_ticks=_day_ticks(days),
        unscored=max(0, started.count() - len(rows)),
        run=ForecastRun.objects.filter(cluster=cluster).first(),
    )


def _before(
    cluster: Cluster, since: datetime, until: datetime, how: dict[str, Any]
) -> list[ForecastOutcome]:
    """Of the period before; none where forecasts were not told yet when it began."""
    first = ForecastOutcome.objects.filter(workload__cluster=cluster).aggregate(at=Min("told_at"))
    if first["at"] is None or first["at"] > since:
        return []
    return scored(cluster, since, until, **how)


def x(pct: float) -> float:
    return round(100 * (min(HIGH, max(LOW, pct)) - LOW) / (HIGH - LOW), 2)


def _row(one: Score) -> ForecastRow:
    return ForecastRow(one, _dot(one.before_p50, 50, one), _dot(one.before_p90, 90, one))


def _dot(share: Share, target: float, one: Score) -> ShareDot:
    low, high = share.bounds
    return ShareDot(x(share.pct), x(low), x(high), not one.is_few and not low <= target <= high)


def _misses(rows: Sequence[ForecastOutcome], seen: set[int]) -> list[Miss]:
    """The farthest outside their bands, of work that the reader may see."""

    def missed_s(one: ForecastOutcome) -> float:
        came_s = one.came_s or 0.0
        return max(came_s - one.p90_s, (one.p50_s - came_s) / 2)

    mine = [one for one in rows if one.workload_id in seen and missed_s(one) > 0]
    return [_miss(one) for one in sorted(mine, key=missed_s, reverse=True)[:MISSES]]


def _miss(one: ForecastOutcome) -> Miss:
    told_at, came_s = one.told_at, one.came_s or 0.0
    p50, p90 = told_at + timedelta(seconds=one.p50_s), told_at + timedelta(seconds=one.p90_s)
    axis = Ahead.over([p90, one.started_at], told_at)
    late = came_s - one.p90_s
    text = f"{duration(late)} late" if late > 0 else f"{duration(one.p50_s - came_s)} early"
    return Miss(one, axis.box(p50, p90), axis.x(one.started_at or told_at), text)


def _causes(late: Sequence[ForecastOutcome]) -> list[tuple[str, int, float]]:
    """Cause, starts, share of all late ones in percent; they add up."""
    counts = Counter(one.cause or LateCause.UNKNOWN for one in late)
    order = [
        cause for cause in sorted(LateCause, key=lambda cause: -counts[cause]) if counts[cause]
    ]
    shares = rounded([100 * counts[cause] / len(late) for cause in order])
    return [(cause.label, counts[cause], share) for cause, share in zip(order, shares, strict=True)]


def _days(rows: Sequence[ForecastOutcome], zone_name: str) -> list[Day]:
    local = zone(zone_name)
    by_day: dict[datetime, list[ForecastOutcome]] = {}
    for one in rows:
        at = (one.started_at or one.told_at).astimezone(local)
        by_day.setdefault(at.replace(hour=0, minute=0, second=0, microsecond=0), []).append(one)
    found = []
    for day, part in sorted(by_day.items()):
        of = score("", part)
        if of.starts >= FEW_A_DAY:
            found.append(
                Day(f"{day.day} {day:%b}", of.starts, of.error_pct, of.naive_pct, of.before_p90.pct)
            )
    return found


def _line(values: Sequence[float | None], most: float) -> str:
    step = 100 / max(1, len(values) - 1)
    points = (
        f"{i * step:.2f},{100 - 100 * min(most, value) / most:.2f}"
        for i, value in enumerate(values)
        if value is not None
    )
    return " ".join(points)


def _day_ticks(days: Sequence[Day]) -> list[LineLabel]:
    """The first and the last day, then as many between as have room."""
    last = len(days) - 1
    if last < 1:
        return []
    ends = [LineLabel(0, days[0].label), LineLabel(100, days[-1].label, "end")]
    between = [
        LineLabel(round(100 * i / last, 2), days[i].label, "middle")
        for step in (max(1, round(last / parts)) for parts in TICK_PARTS)
        for i in range(step, last, step)
    ]
    return roomy([*ends, *between], wide_px=DAYS_PX, narrow_px=DAYS_NARROW_PX)


def pct(value: float | None) -> str:
    return "–" if value is None else number(value, 1)
