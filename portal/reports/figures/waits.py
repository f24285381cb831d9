"""Waits over time, their distribution by class, and the hours of the week in which they are long."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from portal.display.format import hmin
from portal.display.periods import Floats
from portal.display.spread import Spread
from portal.reports.figures import Chart, down, theme
from portal.reports.figures.labels import beside_lines
from portal.reports.waits import WEEKDAYS, ClassWaits, WaitsReport

HEIGHT = 264
TOP, BOTTOM = 16, 28
WEEK_HEIGHT = 200
TICKS_S = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400)
TICK_TEXTS = ("1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "24 h", "7 d", "30 d")
CDF_POINTS = 120
CURVES_PX = (360.0, 220.0)
"""The plot area of the distribution functions where two cards stand side by side."""
SCALED = 0.95
TOP_PART = 0.8
"""Heat map cells at or above this part of the scale carry their value."""
FEW = "○"
"""Marks cells of fewer starts than the sentence of the report counts."""
LINES = (
    ("p50", "P50", theme.TEXT, 1.5),
    ("p90", "P90", theme.OWN, 2.5),
    ("p99", "P99", theme.MUTED, 1.5),
)


def by_day(report: WaitsReport) -> Chart:
    """P50, P90 and P99 by period of start, on a logarithmic axis."""
    low, high = _bounds(tuple(spread for spread in report.days if spread.is_telling))
    room = down.room(report.down)
    layout = theme.layout(left=56, right=48, top=TOP + room, bottom=BOTTOM)
    plot_px = HEIGHT - TOP - BOTTOM - room
    layout["xaxis"] = theme.period_axis(report.periods, report.filters.tz)
    layout["yaxis"] = _log_axis(low, high)
    layout["shapes"], said = down.drawn(report.down, report.filters.tz, plot_px)
    data, ends = [], []
    for line in LINES:
        key, name, colour, _ = line
        values = _values(report, key)
        data.append(_line(report, line, low))
        if known := [v for v in values if v is not None]:
            ends.append((name, float(np.log10(max(known[-1], low))), colour))
    per_px = (np.log10(high) - np.log10(low)) / plot_px
    heights = theme.apart([y for _, y, _ in ends], theme.LABEL_GAP_PX * float(per_px))
    layout["annotations"] = said + [
        theme.label(name, y, bold=True, font={"color": colour})
        for (name, _, colour), y in zip(ends, heights, strict=True)
    ]
    label = f"P50, P90 and P99 of the wait by {report.periods.unit} of start"
    return Chart("by-day", label, HEIGHT, data, layout)


def _line(report: WaitsReport, line: tuple[str, str, str, float], low: float) -> dict[str, Any]:
    key, name, colour, width = line
    values = _values(report, key)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "marker": {"color": colour, "size": _dots(values)},
        "name": name,
        "x": theme.period_middles(report.periods, report.filters.tz),
        "y": [None if v is None else max(low, round(v, 1)) for v in values],
        "customdata": [None if v is None else f"{hmin(v)} h:min" for v in values],
        "line": {"color": colour, "width": width},
        "connectgaps": False,
        "hovertemplate": "%{customdata}",
    }


def _values(report: WaitsReport, key: str) -> list[float | None]:
    """A percentile of each period; None where too few started for it to say anything."""
    return [getattr(spread, key) if spread.is_telling else None for spread in report.days]


def _dots(values: list[float | None]) -> list[int]:
    """A dot for a value without neighbours, which no line would show."""
    known = [False, *(value is not None for value in values), False]
    return [
        5 if known[i] and not (known[i - 1] or known[i + 1]) else 0
        for i in range(1, len(values) + 1)
    ]


def _bounds(spreads: tuple[Spread, ...]) -> tuple[float, float]:
    """From the tick below the shortest wait to above the longest; nothing below a minute is told
    apart unless all are short."""
    longest = max((s.p99 for s in spreads if s.p99), default=600.0)
    shortest = min((s.p50 for s in spreads if s.p50), default=60.0)
    floor = 60 if longest >= 600 else 1
    low = max((t for t in TICKS_S if t <= max(shortest, floor)), default=floor)
    low = max(low, floor)
    return float(low), max(1.25 * longest, 10.0 * low)


def _log_axis(low: float, high: float, **options: Any) -> dict[str, Any]:
    return theme.axis(
        type="log",
        range=[float(np.log10(low)), float(np.log10(high))],
        tickmode="array",
        tickvals=list(TICKS_S),
        ticktext=list(TICK_TEXTS),
        **options,
    )


def started_within(report: WaitsReport) -> Chart:
    """The share of each class's work that started within a wait: distribution functions."""
    classes = [row for row in report.classes if row.spread.count]
    longest = max((float(row.waits[-1]) for row in classes), default=3600.0)
    low = 10.0 if longest >= 600 else 1.0
    xs = np.geomspace(low, max(longest, low * 10), CDF_POINTS)
    curves = [
        np.searchsorted(row.waits, xs, side="right") / len(row.waits) * 100 for row in classes
    ]
    layout = theme.layout(left=40, right=16, bottom=28)
    layout["xaxis"] = _log_axis(low, float(xs[-1]))
    layout["yaxis"] = theme.axis(range=[0, 102], tickvals=[0, 25, 50, 75, 90, 100])
    layout["hovermode"] = "closest"
    layout["annotations"] = _curve_labels(classes, xs, curves)
    data = [_curve(row, xs, ys) for row, ys in zip(classes, curves, strict=True)]
    return Chart("within", "Share started within a wait, by GPU class", HEIGHT, data, layout)


def _curve(row: ClassWaits, xs: Floats, ys: Floats) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": row.name,
        "x": theme.numbers(xs, 1),
        "y": theme.numbers(ys, 1),
        "customdata": [hmin(x) for x in xs],
        "line": {"color": theme.class_colour(row.position), "width": 2},
        "hovertemplate": f"{row.name}: %{{y:.0f}} % within %{{customdata}} h:min<extra></extra>",
    }


def _curve_labels(rows: list[ClassWaits], xs: Floats, curves: list[Floats]) -> list[dict[str, Any]]:
    """Beside the curves, worked out for the width that the card has beside its neighbour."""
    width, height = CURVES_PX
    logs = np.log10(xs)
    xs_px = (logs - logs[0]) / (logs[-1] - logs[0]) * width
    boxes = beside_lines(
        [row.name for row in rows], xs_px, [ys / 102 * height for ys in curves], CURVES_PX
    )
    return [
        {
            "text": row.name,
            "font": {"weight": theme.BOLD},
            "x": box.left / width,
            "y": box.middle / height,
            "xref": "paper",
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "middle",
            "showarrow": False,
        }
        for row, box in zip(rows, boxes, strict=True)
    ]


def when_to_submit(report: WaitsReport) -> Chart:
    """P90 by hour of the week of the submission; an hour without work is left empty."""
    z = [_day_of(report, day) for day in range(7)]
    top = scale_top(report)
    texts = [
        [_cell_text(spread, top) for spread in report.week[day * 24 : day * 24 + 24]]
        for day in range(7)
    ]
    layout = theme.layout(left=40, right=8, top=24, bottom=8)
    layout["hovermode"] = "closest"
    hours = [f"{hour:02d}" for hour in range(24)]
    layout["xaxis"] = theme.axis(
        side="top", showgrid=False, tickmode="array",
        tickvals=list(range(0, 24, 2)), ticktext=hours[::2],
    )  # fmt: skip
    layout["yaxis"] = theme.axis(
        autorange="reversed", showgrid=False, tickmode="array",
        tickvals=list(range(7)), ticktext=list(WEEKDAYS),
    )  # fmt: skip
    steps = len(theme.CIVIDIS) - 1
    heat = {
        "type": "heatmap",
        "z": z,
        "x": list(range(24)),
        "y": list(range(7)),
        "zmin": 0,
        "zmax": top.value or 1,
        "xgap": 1,
        "ygap": 1,
        "colorscale": [[i / steps, colour] for i, colour in enumerate(theme.CIVIDIS)],
        "showscale": False,
        "text": texts,
        "texttemplate": "%{text}",
        "textfont": {"color": "#111827", "size": 11, "weight": theme.BOLD},
        "customdata": _hover(report),
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": False,
    }
    return Chart(
        "week",
        "P90 wait by hour of the week of submission",
        WEEK_HEIGHT,
        [heat, _few(report)],
        layout,
    )


def _cell_text(spread: Spread, top: Top) -> str:
    """The value of a long wait, where enough started for their P90 to tell."""
    if spread.p90 is None or not spread.is_telling:
        return ""
    return hmin(spread.p90) if top.value and spread.p90 >= TOP_PART * top.value else ""


def _few(report: WaitsReport) -> dict[str, Any]:
    """A ring of the other tone, so that it shows on every colour of the scale."""
    hours = [h for h, spread in enumerate(report.week) if spread.count and not spread.is_telling]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [hour % 24 for hour in hours],
        "y": [hour // 24 for hour in hours],
        "marker": {"color": theme.SURFACE, "size": 5, "line": {"color": theme.TEXT, "width": 1}},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _day_of(report: WaitsReport, day: int) -> list[float | None]:
    spreads = report.week[day * 24 : day * 24 + 24]
    return [None if s.p90 is None else round(s.p90, 1) for s in spreads]


def _hover(report: WaitsReport) -> list[list[str]]:
    return [
        [
            f"{WEEKDAYS[day]} {hour:02d}:00, P90 {hmin(s.p90)} h:min of {s.count} workloads"
            for hour in range(24)
            for s in [report.week[day * 24 + hour]]
        ]
        for day in range(7)
    ]


class Top(NamedTuple):
    """Where the heat map's scale ends, in seconds, and whether hours lie beyond."""

    value: float
    is_passed: bool


def scale_top(report: WaitsReport) -> Top:
    """The P90 that all but the longest twentieth of the hours stay within, of those with enough work to tell:
    one bad hour leaves the others their colours."""
    known = [s.p90 for s in report.week if s.p90 is not None]
    telling = [s.p90 for s in report.week if s.p90 is not None and s.is_telling] or known
    if not telling:
        return Top(0.0, is_passed=False)
    value = float(np.quantile(telling, SCALED, method="higher"))
    return Top(value, is_passed=max(known) > value)
