"""The figure of the last hours: cycle time above, decisions below, one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from portal.reports.figures import Figure, theme
from portal.web.operations.bounds import SLOW_MS
from portal.web.operations.hours import SLOT, Hours, Slot

HEIGHT = 312
UPPER, LOWER = [0.56, 0.96], [0.0, 0.4]
"""The two panels, in parts of the plot's height."""
TOP, BOTTOM = 16, 32
BOUND_S = SLOW_MS / 1000
NEAR = 0.4
"""The bound is drawn to scale once a cycle took that much of it; below, it would press the line flat."""
LEAST_S, LEAST_DECISIONS = 0.05, 4
ROOM = 1.12
CLEAR = "rgba(0,0,0,0)"
"""Plotly draws areas over bars: what was only planned shows through."""
BARS = (
    ("started", "starts", "var(--series-1)"),
    ("changed", "grow, shrink, move", "var(--series-4)"),
    ("evicted", "evictions", "var(--series-3)"),
)


def last_hours(hours: Hours, zone_name: str) -> Figure:
    """Three bars and two marks for each slot; hatched while nothing was written."""
    zone = ZoneInfo(zone_name)
    slowest_s = hours.slowest[0] / 1000 if hours.slowest else 0.0
    is_near = slowest_s >= NEAR * BOUND_S
    top_s = max(LEAST_S, slowest_s, BOUND_S if is_near else 0) * ROOM
    most = max(LEAST_DECISIONS, *(slot.decisions for slot in hours.slots)) * ROOM
    layout = theme.layout(left=44, right=132, top=TOP, bottom=BOTTOM) | {"barmode": "stack"}
    layout["xaxis"] = theme.time_axis(hours.start, hours.end, zone, anchor="y2")
    layout["yaxis"] = theme.axis(domain=UPPER, range=[0, top_s], nticks=4, tickformat="~g")
    layout["yaxis2"] = theme.axis(domain=LOWER, range=[0, most], nticks=4, tickformat=",d")
    layout["annotations"] = [*_heads(), *_names(hours, top_s, most)]
    layout["annotations"] += [_bound(is_near, top_s), *_modes(hours, zone)]
    if is_near:
        layout["shapes"] = [_bound_line()]
    data = [*_hatches(hours, zone, top_s, most), *_times(hours, zone), *_bars(hours, zone)]
    label = "Cycle time and decisions of the last six hours; the table holds the figures"
    return Figure("engine-hours", label, HEIGHT, data, layout)


def _middles(slots: Sequence[Slot], zone: ZoneInfo) -> list[str]:
    return [theme.local(slot.start + SLOT / 2, zone) for slot in slots]


def _seconds(values: Sequence[float | None]) -> list[float | None]:
    return [None if ms is None else round(ms / 1000, 3) for ms in values]


def _times(hours: Hours, zone: ZoneInfo) -> list[dict[str, Any]]:
    base = {"type": "scatter", "x": _middles(hours.slots, zone), "hovertemplate": "%{y} s"}
    half = {
        **base,
        "name": "P50",
        "mode": "lines+markers",
        "y": _seconds([slot.half_ms for slot in hours.slots]),
        "line": {"color": theme.OWN, "width": 1.5},
        "marker": {"color": theme.OWN, "size": 3},
    }
    slowest = {
        **base,
        "name": "slowest",
        "mode": "markers",
        "y": _seconds([slot.slowest_ms for slot in hours.slots]),
        "marker": {"color": theme.TEXT, "size": 4},
    }
    return [half, slowest]


def _bars(hours: Hours, zone: ZoneInfo) -> list[dict[str, Any]]:
    return [
        {
            "type": "bar",
            "name": name,
            "x": _middles(hours.slots, zone),
            "y": [getattr(slot, column) for slot in hours.slots],
            "yaxis": "y2",
            "width": SLOT.total_seconds() * 800,
            "marker": {"color": colour, "line": {"color": theme.SURFACE, "width": 1}},
            "hovertemplate": "%{y}",
        }
        for column, name, colour in BARS
    ]


def _hatches(hours: Hours, zone: ZoneInfo, top_s: float, most: float) -> list[dict[str, Any]]:
    """Behind both panels, for each span in which nothing was written."""
    return [
        _hatch(theme.local(span.start, zone), theme.local(span.end, zone), axis, top)
        for span in hours.held
        for axis, top in (("y", top_s), ("y2", most))
    ]


def _hatch(start: str, end: str, axis: str, top: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [start, start, end, end],
        "y": [0, top, top, 0],
        "yaxis": axis,
        "fill": "toself",
        "fillcolor": CLEAR,
        "fillpattern": {"shape": "/", "fgcolor": theme.GRID, "bgcolor": CLEAR, "size": 8},
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _modes(hours: Hours, zone: ZoneInfo) -> list[dict[str, Any]]:
    """What the cluster was while hatched, at the left edge of the span."""
    return [
        {
            "text": span.mode.label.lower(),
            "x": theme.local(span.start, zone),
            "xref": "x",
            "xanchor": "left",
            "xshift": 4,
            "y": UPPER[1],
            "yref": "paper",
            "yanchor": "top",
            "showarrow": False,
            "bgcolor": theme.SURFACE,
            "font": {"color": theme.MUTED},
        }
        for span in hours.held
    ]


def _heads() -> list[dict[str, Any]]:
    """What each panel shows, above it."""
    heads = (
        (UPPER[1], "Cycle time, s"),
        (LOWER[1], "Decisions that changed something, per 10 min"),
    )
    return [
        theme.label(text, y, x=0, bold=True, xshift=0, yref="paper", yanchor="bottom")
        for y, text in heads
    ]


def _names(hours: Hours, top_s: float, most: float) -> list[dict[str, Any]]:
    """Right of the panels: the lines by name at their last value, the bars by colour."""
    labels = []
    if last := next((slot for slot in reversed(hours.slots) if slot.took_ms), None):
        ends = [(last.slowest_ms or 0) / 1000, (last.half_ms or 0) / 1000]
        gap = theme.LABEL_GAP_PX * top_s / _panel_px(UPPER)
        slow_y, half_y = theme.apart(ends, gap)
        if slow_y < half_y:
            slow_y, half_y = half_y, slow_y
        # What stands below the axis is not drawn.
        slow_y, half_y = slow_y + max(0.0, -half_y), max(0.0, half_y)
        labels = [
            theme.label("slowest", slow_y, font={"color": theme.MUTED}),
            theme.label(f"P50 {ends[1]:.2f}", half_y, bold=True, font={"color": theme.OWN}),
        ]
    step = 1.3 * theme.LABEL_GAP_PX * most / _panel_px(LOWER)
    for i, (_, name, colour) in enumerate(BARS):
        y = most / 2 + (i - 1) * step
        labels.append(theme.label("■", y, yref="y2", font={"color": colour, "size": 14}))
        labels.append(theme.label(name, y, yref="y2", xshift=24))
    return labels


def _panel_px(domain: Sequence[float]) -> float:
    return (HEIGHT - TOP - BOTTOM) * (domain[1] - domain[0])


def _bound(is_near: bool, top_s: float) -> dict[str, Any]:
    text = f"bound {BOUND_S:g} s" if is_near else f"↑ bound {BOUND_S:g} s"
    y = BOUND_S if is_near else top_s
    return theme.label(text, y, font={"color": "var(--err-text)" if is_near else theme.MUTED})


def _bound_line() -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": BOUND_S,
        "y1": BOUND_S,
        "line": {"color": "var(--err-text)", "width": 1.5, "dash": "4px,3px"},
    }
