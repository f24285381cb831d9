"""Demand ahead with its bands, by the hour and by the week, and an earlier forecast beside what came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from portal.display.periods import Floats
from portal.reports.figures import Chart, theme
from portal.reports.forecast import HOUR, WEEK, ClassAhead, ForecastReport, KnownDemand
from scheduling.models import DemandForecast

HEIGHT = 264
TOP, BOTTOM = 28, 32
RIGHT = 112
BOX = 0.07
"""Height of the box under the crossing, as a part of the axis."""


def next_week(
    report: ForecastReport, chosen: ClassAhead, past: KnownDemand, row: DemandForecast
) -> Chart:
    """The last days and the next, against what there is."""
    zone = report.filters.tz
    count = len(row.hours["p50"])
    ahead = [row.made_at + (i + 0.5) * HOUR for i in range(count)]
    before = [past.hours_start + (i + 0.5) * HOUR for i in range(len(past.hours))]
    layout = _layout(report, past.hours_start, row.made_at + count * HOUR)
    top = _top(chosen, past.hours, row.hours["p90"])
    layout["yaxis"] = theme.axis(range=[0, top], nticks=6, rangemode="tozero")
    data = [
        *_bands(row.hours, [theme.local(at, zone) for at in ahead]),
        _line("demand", [theme.local(at, zone) for at in before], past.hours, theme.OWN, 1.8),
        _line("P50", [theme.local(at, zone) for at in ahead], row.hours["p50"], theme.OWN, 1.2),
        _level(chosen, [past.hours_start, row.made_at + count * HOUR], report),
    ]
    layout["shapes"] = [_now(report, row.made_at)]
    layout["annotations"] = [
        _now_label(report, row.made_at),
        *_right([
            ("P90", row.hours["p90"][-1], False), ("P10", row.hours["p10"][-1], False),
            (f"{chosen.capacity:,.0f} {report.against}", chosen.capacity, True),
        ], top),
    ]  # fmt: skip
    label = f"GPUs of {chosen.gpu_class.name} asked for, the last days and the next week"
    return Chart("next-week", label, HEIGHT, data, layout)


def trend(
    report: ForecastReport, chosen: ClassAhead, past: KnownDemand, row: DemandForecast
) -> Chart:
    """Weekly means, with the box of when they pass what there is."""
    zone = report.filters.tz
    count = len(row.weeks["p50"])
    middles = [theme.local(row.made_at + (i + 0.5) * WEEK, zone) for i in range(count)]
    before = [
        theme.local(past.weeks_start + (i + 0.5) * WEEK, zone) for i in range(len(past.weeks))
    ]
    end = row.made_at + count * WEEK
    layout = _layout(report, past.weeks_start, end)
    top = _top(chosen, past.weeks, row.weeks["p90"])
    layout["yaxis"] = theme.axis(range=[0, top], nticks=6, rangemode="tozero")
    data = [
        *_bands(row.weeks, middles),
        _line("weekly mean", before, past.weeks, theme.OWN, 1.8),
        _line("P50", middles, row.weeks["p50"], theme.OWN, 1.2),
        _level(chosen, [past.weeks_start, end], report),
    ]
    shapes, figures = _crossing(report, chosen, end, top)
    layout["shapes"] = [_now(report, row.made_at), *shapes]
    last = float(row.weeks["p50"][-1])
    layout["annotations"] = [
        _now_label(report, row.made_at),
        *figures,
        *_right([
            (f"P50 {last:,.0f}", last, True),
            (f"{chosen.capacity:,.0f} {report.against}", chosen.capacity, False),
        ], top),
    ]  # fmt: skip
    label = f"Weekly mean of the GPUs of {chosen.gpu_class.name} asked for, before and ahead"
    return Chart("trend", label, HEIGHT, data, layout)


def earlier(report: ForecastReport, chosen: ClassAhead, row: DemandForecast) -> Chart | None:
    """What was told some weeks ago and what came; None where nothing that old can be told."""
    past = row.earlier
    if not past:
        return None
    made = row.made_at - timedelta(days=past["days_ago"])
    middles = [
        theme.local(made + (i + 0.5) * WEEK, report.filters.tz) for i in range(len(past["came"]))
    ]
    layout = _layout(report, made - WEEK / 2, row.made_at)
    top = max(1.0, *past["p90"], *past["came"]) * 1.15
    layout["yaxis"] = theme.axis(range=[0, top], nticks=5, rangemode="tozero")
    data = [
        _band(past["p10"], past["p90"], middles, 0.35),
        _line("told", middles, past["p50"], theme.OWN, 1.2),
        _line("came", middles, past["came"], theme.TEXT, 1.8),
    ]
    layout["annotations"] = _right([
        (f"told {past['p50'][-1]:,.1f}", past["p50"][-1], False),
        (f"came {past['came'][-1]:,.1f}", past["came"][-1], True),
    ], top)  # fmt: skip
    at = made.astimezone(report.filters.tz)
    label = f"The forecast of {theme.day_text(at)} beside what came, weekly means"
    return Chart("earlier", label, HEIGHT, data, layout)


def _layout(report: ForecastReport, start: datetime, end: datetime) -> dict[str, Any]:
    layout = theme.layout(left=44, right=RIGHT, top=TOP, bottom=BOTTOM)
    layout["xaxis"] = theme.time_axis(start, end, report.filters.tz)
    return layout


def _top(chosen: ClassAhead, past: Floats, high: Sequence[float]) -> float:
    known = past[~np.isnan(past)]
    return max(1.0, chosen.capacity, *high, *known.tolist()) * 1.12


def _bands(bands: dict[str, list[float]], x: list[str]) -> list[dict[str, Any]]:
    return [_band(bands["p10"], bands["p90"], x, 0.25), _band(bands["p25"], bands["p75"], x, 0.4)]


def _band(
    low: Sequence[float], high: Sequence[float], x: list[str], opacity: float
) -> dict[str, Any]:
    """A closed shape: up along ``high``, back along ``low``."""
    return {
        "type": "scatter", "mode": "lines", "x": [*x, *reversed(x)], "y": [*high, *reversed(low)],
        "fill": "toself", "fillcolor": "var(--own-pale)", "opacity": opacity * 2,
        "line": {"width": 0}, "hoverinfo": "skip",
    }  # fmt: skip


def _line(name: str, x: list[str], y: Any, colour: str, width: float) -> dict[str, Any]:
    values = theme.numbers(np.asarray(y, dtype=np.float64))
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x, "y": values,
        "line": {"color": colour, "width": width}, "hovertemplate": "%{y:.1f}",
    }  # fmt: skip


def _level(chosen: ClassAhead, ends: list[datetime], report: ForecastReport) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": report.against,
        "x": [theme.local(at, report.filters.tz) for at in ends], "y": [chosen.capacity] * 2,
        "line": {"color": theme.TEXT, "width": 1.5, "dash": "4px,3px"}, "hovertemplate": "%{y:.0f}",
    }  # fmt: skip


def _now(report: ForecastReport, at: datetime) -> dict[str, Any]:
    x = theme.local(at, report.filters.tz)
    return {
        "type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
        "line": {"color": theme.TEXT, "width": 1.5},
    }  # fmt: skip


def _now_label(report: ForecastReport, at: datetime) -> dict[str, Any]:
    local = at.astimezone(report.filters.tz)
    return theme.label(
        f"made {local:%H:%M}", 1.0, x=theme.local(at, report.filters.tz), bold=True,
        xref="x", yref="paper", xanchor="center", yanchor="bottom", xshift=0,
    )  # fmt: skip


def _crossing(
    report: ForecastReport, chosen: ClassAhead, end: datetime, top: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The box from early to late under the crossing, its middle marked and named."""
    at = chosen.passing
    if at is None or at.early is None:
        return [], []
    zone, y = report.filters.tz, top * 0.2
    late = at.late or end
    box = {
        "type": "rect", "x0": theme.local(at.early, zone), "x1": theme.local(late, zone),
        "y0": y, "y1": y + top * BOX, "fillcolor": "var(--own-pale)",
        "line": {"color": theme.OWN, "width": 1},
    }  # fmt: skip
    if at.middle is None:
        text, middle = f"passes {chosen.capacity:,.0f} at P90 alone", at.early
    else:
        local = at.middle.astimezone(zone)
        text, middle = f"passes {chosen.capacity:,.0f} on {theme.day_text(local)}", at.middle
    x = theme.local(middle, zone)
    mark = {
        "type": "line", "x0": x, "x1": x, "y0": y, "y1": y + top * BOX,
        "line": {"color": theme.OWN, "width": 3},
    }  # fmt: skip
    named = theme.label(
        text, y, x=x, xref="x", xanchor="center", yanchor="top", xshift=0, bold=True
    )
    return [box, *([mark] if at.middle else [])], [named]


def _right(wanted: list[tuple[str, float, bool]], top: float) -> list[dict[str, Any]]:
    gap = theme.LABEL_GAP_PX * top / (HEIGHT - TOP - BOTTOM)
    heights = theme.apart([y for _, y, _ in wanted], gap)
    return [
        theme.label(text, y, bold=bold) for (text, _, bold), y in zip(wanted, heights, strict=True)
    ]
