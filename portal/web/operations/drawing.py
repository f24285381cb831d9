"""The figure of the last hours: cycle time, decisions, lag of the mirror, one axis of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from portal.reports.figures import Chart, theme
from portal.web.operations.bounds import SLOW_MS
from portal.web.operations.hours import SLOT, Hours, Slot
from scheduling.services.cycle.run import LAG_S

HEIGHT = 404
UPPER, MIDDLE, LOWER = [0.67, 0.97], [0.29, 0.58], [0.0, 0.19]
"""The panels, in parts of the plot's height."""
TOP, BOTTOM = 16, 32
BOUND_S = SLOW_MS / 1000
NEAR = 0.4
"""A bound is drawn to scale once that much of it was used; below, it would press the line flat."""
LEAST_S, LEAST_DECISIONS, LEAST_LAG_S = 0.05, 4, 1.0
ROOM = 1.12
CLEAR = "rgba(0,0,0,0)"
"""Plotly draws areas over bars: what was only planned shows through."""
BARS = (
    ("started", "starts", "var(--series-1)"),
    ("changed", "resized, moved", "var(--series-4)"),
    ("evicted", "evictions", "var(--series-3)"),
)


def last_hours(hours: Hours, zone_name: str) -> Chart:
    """Three bars and two marks for each slot; hatched while nothing was written."""
    zone = ZoneInfo(zone_name)
    took = _Scale.of(hours.slowest[0] / 1000 if hours.slowest else 0.0, BOUND_S, LEAST_S)
    lag = _Scale.of(max(slot.lag_s or 0.0 for slot in hours.slots), LAG_S, LEAST_LAG_S, axis="y3")
    most = max(LEAST_DECISIONS, *(slot.decisions for slot in hours.slots)) * ROOM
    layout = theme.layout(left=44, right=132, top=TOP, bottom=BOTTOM) | {"barmode": "stack"}
    layout["xaxis"] = theme.time_axis(hours.start, hours.end, zone, anchor="y3")
    layout["yaxis"] = theme.axis(domain=UPPER, range=[0, took.top], nticks=4, tickformat="~g")
    layout["yaxis2"] = theme.axis(domain=MIDDLE, range=[0, most], nticks=4, tickformat=",d")
    layout["yaxis3"] = theme.axis(domain=LOWER, range=[0, lag.top], nticks=3, tickformat="~g")
    layout["annotations"] = [*_heads(), *_names_of_times(hours, took), *_names_of_bars(most)]
    layout["annotations"] += [lag.label(lag.mark), *_last_lag(hours), *_modes(hours, zone)]
    if shapes := [scale.line() for scale in (took, lag) if scale.is_near]:
        layout["shapes"] = shapes
    hatches = _hatches(hours, zone, {"y": took.top, "y2": most, "y3": lag.top})
    data = [*hatches, *_times(hours, zone), *_bars(hours, zone), _lags(hours, zone)]
    label = (
        "Cycle time, decisions and mirror lag of the last six hours; the table holds the figures"
    )
    return Chart("engine-hours", label, HEIGHT, data, layout)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Of a panel with a bound: what its axis ends at, and whether the bound is on it."""

    top: float
    bound: float
    is_near: bool
    axis: str

    @classmethod
    def of(cls, worst: float, bound: float, least: float, axis: str = "y") -> _Scale:
        is_near = worst >= NEAR * bound
        return cls(max(least, worst, bound if is_near else 0) * ROOM, bound, is_near, axis)

    @property
    def mark(self) -> float:
        """Where the bound is named, if nothing else is named there."""
        return self.bound if self.is_near else self.top

    def label(self, y: float) -> dict[str, Any]:
        text = f"bound {self.bound:g} s" if self.is_near else f"↑ bound {self.bound:g} s"
        colour = "var(--err-text)" if self.is_near else theme.MUTED
        return theme.label(text, y, yref=self.axis, font={"color": colour})

    def line(self) -> dict[str, Any]:
        return {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "yref": self.axis,
            "y0": self.bound,
            "y1": self.bound,
            "line": {"color": "var(--err-text)", "width": 1.5, "dash": "4px,3px"},
        }


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


def _lags(hours: Hours, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": "mirror lag",
        "mode": "lines+markers",
        "x": _middles(hours.slots, zone),
        "y": [slot.lag_s for slot in hours.slots],
        "yaxis": "y3",
        "line": {"color": theme.OWN, "width": 1.5},
        "marker": {"color": theme.OWN, "size": 3},
        "hovertemplate": "%{y} s",
    }


def _hatches(hours: Hours, zone: ZoneInfo, tops: Mapping[str, float]) -> list[dict[str, Any]]:
    """Behind each panel (its axis and where that ends), for each span in which nothing was written."""
    return [
        _hatch(theme.local(span.start, zone), theme.local(span.end, zone), axis, top)
        for span in hours.standstills
        for axis, top in tops.items()
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
        for span in hours.standstills
    ]


def _heads() -> list[dict[str, Any]]:
    """What each panel shows, above it."""
    heads = (
        (UPPER[1], "Cycle time, s"),
        (MIDDLE[1], "Changes, per 10 min"),
        (LOWER[1], "Mirror lag, s"),
    )
    return [
        theme.label(text, y, x=0, bold=True, xshift=0, yref="paper", yanchor="bottom")
        for y, text in heads
    ]


def _names_of_times(hours: Hours, took: _Scale) -> list[dict[str, Any]]:
    """Right of the panel: its lines at their last value and its bound, each clear of the others."""
    last = next((slot for slot in reversed(hours.slots) if slot.took_ms), None)
    if last is None:
        return [took.label(took.mark)]
    half_s, slowest_s = (last.half_ms or 0) / 1000, (last.slowest_ms or 0) / 1000
    gap = theme.LABEL_GAP_PX * took.top / _panel_px(UPPER)
    heights = theme.apart([half_s, slowest_s, took.mark], gap)
    # What stands below the axis is not drawn.
    half_y, slowest_y, bound_y = (y + max(0.0, -min(heights)) for y in heights)
    return [
        took.label(bound_y),
        theme.label("slowest", slowest_y, font={"color": theme.MUTED}),
        theme.label(f"P50 {half_s:.2f}", half_y, bold=True, font={"color": theme.OWN}),
    ]


def _names_of_bars(most: float) -> list[dict[str, Any]]:
    labels = []
    step = 1.3 * theme.LABEL_GAP_PX * most / _panel_px(MIDDLE)
    for i, (_, name, colour) in enumerate(BARS):
        y = most / 2 + (i - 1) * step
        labels.append(theme.label("■", y, yref="y2", font={"color": colour, "size": 14}))
        labels.append(theme.label(name, y, yref="y2", xshift=24))
    return labels


def _last_lag(hours: Hours) -> list[dict[str, Any]]:
    lags = [slot.lag_s for slot in hours.slots if slot.lag_s is not None]
    text, colour = "last {:.1f}", {"color": theme.OWN}
    return [
        theme.label(text.format(lag), lag, yref="y3", bold=True, font=colour) for lag in lags[-1:]
    ]


def _panel_px(domain: Sequence[float]) -> float:
    return (HEIGHT - TOP - BOTTOM) * (domain[1] - domain[0])
