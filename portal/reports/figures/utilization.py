"""Allocated GPUs by class, stacked, under the capacity they are measured against."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np

from portal.display.format import class_number
from portal.display.periods import Floats
from portal.reports.figures import Chart, theme
from portal.reports.figures.labels import AWAY_PX, CHAR_PX
from portal.reports.utilization import ClassSeries, UtilizationReport

HEIGHT = 312
RIGHT = 136
TOP, BOTTOM = 20, 32
BAND_PX = 17
"""A band at least this thick carries its class's name inside."""
STRETCHES = 12
"""Parts of the width; a name takes several of them on a narrow page."""
NARROW_PX = 160
"""Width of the plot on the narrowest page, between its margins."""


def allocated_by_class(report: UtilizationReport) -> Chart:
    """Areas are pale, so that labels stand on them; capacity dashed; really used a line with a halo."""
    capacity, used, allocated = (
        np.sum([getattr(line, name) for line in report.series], axis=0)
        for name in ("capacity", "used", "allocated")
    )
    top = float(np.nanmax([np.nanmax(capacity), np.nanmax(allocated), 1.0])) * 1.06
    data = [_area(report, line) for line in report.series]
    if report.total.is_measured:
        data += _used(report, used)
    data.append(_capacity(report, capacity))
    layout = theme.layout(right=RIGHT, top=TOP, bottom=BOTTOM)
    end = report.starts[-1] + timedelta(seconds=report.step_s)
    zone = report.filters.tz
    layout["xaxis"] = theme.time_axis(report.starts[0], end, zone)
    layout["yaxis"] = theme.axis(range=[0, top], nticks=5, rangemode="tozero")
    layout["annotations"] = _labels(report, capacity, used, top)
    label = f"Mean GPUs allocated by GPU class against {report.against} GPUs over time"
    return Chart("allocated", label, HEIGHT, data, layout)


def _middles(report: UtilizationReport) -> list[str]:
    half = timedelta(seconds=report.step_s / 2)
    return [theme.local(start + half, report.filters.tz) for start in report.starts]


def _area(report: UtilizationReport, line: ClassSeries) -> dict[str, Any]:
    colour = theme.class_colour(line.position)
    area = {
        "type": "scatter",
        "mode": "lines",
        "name": line.name,
        "x": _middles(report),
        "y": theme.numbers(line.allocated),
        "stackgroup": "allocated",
        "line": {"color": theme.SURFACE, "width": 1},
        "fillcolor": theme.pale(colour),
        "hovertemplate": "%{y:.1f}",
    }
    if class_number(line.position) > 5:
        area["fillpattern"] = {"shape": "/", "fgcolor": theme.MUTED, "bgcolor": theme.SURFACE}
    return area


def _used(report: UtilizationReport, used: Floats) -> list[dict[str, Any]]:
    base = {"type": "scatter", "mode": "lines", "x": _middles(report), "y": theme.numbers(used)}
    return [
        {**base, "line": {"color": theme.SURFACE, "width": 4}, "hoverinfo": "skip"},
        {
            **base,
            "name": "really used",
            "line": {"color": theme.TEXT, "width": 1.5},
            "hovertemplate": "%{y:.1f}",
        },
    ]


def _capacity(report: UtilizationReport, capacity: Floats) -> dict[str, Any]:
    """Steps: each value holds until the next, the last to the end of the range."""
    end = report.starts[-1] + timedelta(seconds=report.step_s)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": report.against,
        "x": [theme.local(at, report.filters.tz) for at in (*report.starts, end)],
        "y": theme.numbers(np.append(capacity, capacity[-1])),
        "line": {"color": theme.TEXT, "width": 1.5, "dash": "4px,3px", "shape": "hv"},
        "hovertemplate": "%{y:.1f}",
    }


def _labels(
    report: UtilizationReport, capacity: Floats, used: Floats, top: float
) -> list[dict[str, Any]]:
    """Names of thick bands inside, as far left as there is room, the rest at the right end, moved apart."""
    per_px = top / (HEIGHT - TOP - BOTTOM)
    inside, outside = [], []
    line_used = used if report.total.is_measured else np.full(len(capacity), np.nan)
    lower = np.zeros(len(capacity))
    for line in report.series:
        upper = lower + line.allocated
        place = _place(lower, upper, line_used, BAND_PX * per_px, _stretches(line.name))
        if place is not None:
            inside.append(theme.label(line.name, place[1], x=place[0], bold=True))
        elif np.nansum(line.allocated) > 0:
            outside.append((line.name, (_ends(lower)[1] + _ends(upper)[1]) / 2, False))
        lower = upper
    below_last = _ends(lower)[1]
    outside.append((f"{_ends(capacity)[1]:,.0f} {report.against}", _ends(capacity)[1], True))
    outside.append((f"allocated {below_last:,.0f}", below_last, True))
    if report.total.is_measured:
        outside.append((f"really used {_ends(used)[1]:,.0f}", _ends(used)[1], True))
    heights = theme.apart([y for _, y, _ in outside], theme.LABEL_GAP_PX * per_px)
    return inside + [
        theme.label(text, y, bold=bold) for (text, _, bold), y in zip(outside, heights, strict=True)
    ]


def _ends(values: Floats) -> tuple[float, float]:
    """The first and last value that is known; 0 where none is."""
    known = values[~np.isnan(values)]
    return (float(known[0]), float(known[-1])) if len(known) else (0.0, 0.0)


def _stretches(name: str) -> int:
    """How many a name takes where they are narrowest."""
    return math.ceil((AWAY_PX + CHAR_PX * len(name)) / (NARROW_PX / STRETCHES))


def _place(
    lower: Floats, upper: Floats, used: Floats, least: float, wide: int
) -> tuple[float, float] | None:
    """(x in plot widths, y) of the first place from the left where a band has room for its name, ``wide``
    stretches long."""
    for i in range(STRETCHES - wide + 1):
        part = slice(len(lower) * i // STRETCHES, len(lower) * (i + wide) // STRETCHES + 2)
        low, high = _room(lower[part], upper[part], used[part])
        if high - low >= least:
            return i / STRETCHES, (low + high) / 2
    return None


def _room(lower: Floats, upper: Floats, used: Floats) -> tuple[float, float]:
    """The larger part of a band, over a stretch of time, that the line of use leaves free."""
    if np.isnan(lower).all():
        return 0.0, 0.0
    low, high = float(np.nanmax(lower)), float(np.nanmin(upper))
    if np.isnan(used).all():
        return low, high
    line_low, line_high = float(np.nanmin(used)), float(np.nanmax(used))
    parts = ((low, min(high, line_low)), (max(low, line_high), high))
    return max(parts, key=lambda part: part[1] - part[0])
