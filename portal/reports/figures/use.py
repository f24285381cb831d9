"""Allocated GPUs by period: really used, partly used, and on which nothing ran."""

from __future__ import annotations

from typing import Any

from portal.reports.figures import Chart, theme
from portal.reports.use import UseReport

HEIGHT = 264
TOP, BOTTOM = 16, 32
PARTS = ("used", "partly", "nothing")
NAMES = {"used": "really used", "partly": "partly used", "nothing": "nothing ran"}
MARKS = {
    "used": {"color": theme.OWN},
    "partly": {"color": "var(--own-pale)"},
    "nothing": {"color": theme.SURFACE, "line": {"color": theme.OWN, "width": 1.5}},
}


def by_period(report: UseReport) -> Chart:
    """Bars that add up to what was allocated, under what was ready, dashed."""
    layout = theme.layout(left=40, right=112, top=TOP, bottom=BOTTOM)
    layout |= {"barmode": "stack", "bargap": 0.24}
    heights = [max(day.ready, day.used + day.partly + day.nothing) for day in report.days]
    top = max([1.0, *heights]) * 1.06
    layout["xaxis"] = theme.period_axis(report.periods, report.filters.tz)
    layout["yaxis"] = theme.axis(range=[0, top], nticks=5, rangemode="tozero")
    data = [_bars(report, part) for part in PARTS] + [_ready(report)]
    layout["annotations"] = _labels(report, top)
    label = f"Mean GPUs by {report.periods.unit}: really used, partly used, nothing ran, and ready"
    return Chart("use", label, HEIGHT, data, layout)


def _middles(report: UseReport) -> list[str]:
    """Of the periods of which something is known."""
    known = {day.start for day in report.days}
    middles = theme.period_middles(report.periods, report.filters.tz)
    return [m for m, start in zip(middles, report.periods.starts, strict=True) if start in known]


def _bars(report: UseReport, part: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": NAMES[part],
        "x": _middles(report),
        "y": [round(getattr(day, part), 2) for day in report.days],
        "marker": MARKS[part],
        "hovertemplate": "%{y:.1f}",
    }


def _ready(report: UseReport) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "ready",
        "x": _middles(report),
        "y": [round(day.ready, 2) for day in report.days],
        "line": {"color": theme.TEXT, "width": 1.5, "dash": "4px,3px", "shape": "hvh"},
        "hovertemplate": "%{y:.1f}",
    }


def _labels(report: UseReport, top: float) -> list[dict[str, Any]]:
    """Right of the last bar, at the middles of its parts."""
    if not report.days:
        return []
    last, wanted, below = report.days[-1], [], 0.0
    for part in PARTS:
        value = getattr(last, part)
        wanted.append((NAMES[part], below + value / 2))
        below += value
    wanted.append(("ready", last.ready))
    gap = theme.LABEL_GAP_PX * top / (HEIGHT - TOP - BOTTOM)
    heights = theme.apart([y for _, y in wanted], gap)
    return [theme.label(name, y, bold=True) for (name, _), y in zip(wanted, heights, strict=True)]
