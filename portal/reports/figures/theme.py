"""One look for every chart: margins, axes, labels at the lines, and the colours by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from portal.display.format import class_number
from portal.display.periods import Floats, Periods

TEXT, MUTED, SURFACE, GRID = "var(--text)", "var(--muted)", "var(--surface)", "var(--grid)"
OWN, STRONG, ROOM = "var(--own)", "var(--strong)", "var(--room)"
FONT = {"family": "var(--font)", "size": 12, "color": TEXT}
BOLD = 600
"""By weight, not by <b>, which Plotly turns into an inline style that the security policy refuses."""
AXIS_FONT = {"size": 12, "color": MUTED}
LABEL_GAP_PX = 15
"""Least distance of two labels' middles."""
TICKS = 6

CIVIDIS = (
    "#00224e", "#123570", "#3b496c", "#575d6d", "#707173",
    "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838",
)  # fmt: skip
"""Ten even steps of the colour map; its lightness rises evenly, also for colour-blind eyes."""


def class_colour(position: int) -> str:
    """The colour that a GPU class has on every page. The sixth is drawn with a pattern as well."""
    number = class_number(position)
    return f"var(--class-{number})" if number <= 5 else TEXT


def pale(colour: str) -> str:
    """The same mixed into the surface: areas under labels."""
    return f"{colour[:-1]}-pale)"


def layout(*, left: int = 48, right: int = 24, top: int = 16, bottom: int = 32) -> dict[str, Any]:
    return {
        "margin": {"l": left, "r": right, "t": top, "b": bottom, "pad": 0},
        "font": FONT,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,
        "dragmode": False,
        "hovermode": "x unified",
        "hoverlabel": {
            "bgcolor": SURFACE,
            "bordercolor": STRONG,
            "font": {"family": "var(--font)", "size": 12, "color": TEXT},
        },
        "annotations": [],
    }


def axis(**options: Any) -> dict[str, Any]:
    """A quiet axis: grid lines, no line, no zoom."""
    return {
        "showgrid": True,
        "gridcolor": GRID,
        "gridwidth": 1,
        "zeroline": False,
        "fixedrange": True,
        "tickfont": AXIS_FONT,
        "automargin": False,
        "ticks": "",
        "ticklabelstandoff": 4,
        "spikecolor": MUTED,
        "spikethickness": 1,
        "spikedash": "solid",
        **options,
    }


def time_axis(start: datetime, end: datetime, zone: ZoneInfo, **options: Any) -> dict[str, Any]:
    """Local wall-clock time, few ticks at round moments, no vertical lines."""
    values, texts = time_ticks(start, end, zone)
    return axis(
        type="date",
        range=[local(start, zone), local(end, zone)],
        tickmode="array",
        tickvals=values,
        ticktext=texts,
        **{"showgrid": False, "hoverformat": "%a %-d %b %H:%M", **options},
    )


def local(at: datetime, zone: ZoneInfo) -> str:
    """What Plotly takes for a moment: wall-clock time without a zone."""
    return at.astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")


def time_ticks(start: datetime, end: datetime, zone: ZoneInfo) -> tuple[list[str], list[str]]:
    """(values, texts): midnights, or hours where the range is at most two days."""
    span = end - start
    if span <= timedelta(days=2):
        hours = next(h for h in (1, 2, 3, 6, 12, 24) if span <= timedelta(hours=h * (TICKS + 2)))
        first = start.astimezone(zone).replace(minute=0, second=0, microsecond=0, tzinfo=None)
        moments = [
            first + timedelta(hours=i) for i in range(1, int(span.total_seconds() // 3600) + 1)
        ]
        chosen = [at for at in moments if at.hour % hours == 0]
        return [at.isoformat() for at in chosen], [f"{at:%H:%M}" for at in chosen]
    midnight = start.astimezone(zone).replace(
        hour=0, minute=0, second=0, microsecond=0, tzinfo=None
    )
    days = _day_step(span)
    first = (
        midnight
        if midnight == start.astimezone(zone).replace(tzinfo=None)
        else (midnight + timedelta(days=1))
    )
    last = end.astimezone(zone).replace(tzinfo=None)
    chosen = [first + timedelta(days=i) for i in range(0, (last - first).days + 1, days)]
    return [at.isoformat() for at in chosen], [day_text(at) for at in chosen]


def _day_step(span: timedelta) -> int:
    steps = (1, 2, 7, 14, 28, 91, 182, 364)
    return next((d for d in steps if span <= timedelta(days=d * (TICKS + 1))), steps[-1])


def day_text(at: datetime) -> str:
    return f"{at.day} {at:%b}"


def period_axis(periods: Periods, zone: ZoneInfo) -> dict[str, Any]:
    """An axis on which each period stands at its middle, with ticks under some of them."""
    names = {"hour": "%a %-d %b %H:00", "day": "%a %-d %b", "week": "week of %-d %b"}
    middles = period_middles(periods, zone)
    every = max(1, -(-len(middles) // TICKS))
    if periods.unit == "day" and every > 1:
        every = 7 if every > 2 else 2
    chosen = range(0, len(middles), every)
    locals_ = [start.astimezone(zone) for start in periods.starts]
    texts = [f"{at:%H}:00" if periods.unit == "hour" else day_text(at) for at in locals_]
    half = (periods.edges[-1] - periods.edges[0]) / len(periods.starts) / 2
    return axis(
        type="date",
        range=[_shift(middles[0], -half * 1.1), _shift(middles[-1], half * 1.1)],
        tickmode="array",
        tickvals=[middles[i] for i in chosen],
        ticktext=[texts[i] for i in chosen],
        showgrid=False,
        hoverformat=names[periods.unit],
    )


def period_middles(periods: Periods, zone: ZoneInfo) -> list[str]:
    """Where whole periods have their middle, also for a first one that is cut short."""
    size = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
    middles = []
    for start in periods.starts:
        at = start.astimezone(zone).replace(minute=0, second=0, microsecond=0, tzinfo=None)
        if periods.unit != "hour":
            at = at.replace(hour=0)
        if periods.unit == "week":
            at -= timedelta(days=at.weekday())
        middles.append((at + size[periods.unit] / 2).isoformat())
    return middles


def _shift(at: str, by: timedelta) -> str:
    return (datetime.fromisoformat(at) + by).isoformat()


def label(
    text: str,
    y: float,
    *,
    x: float | str = 1.0,
    bold: bool = False,
    font: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """A label right of the plot (``x`` in its widths, or of the axis), at the height ``y`` of the axis."""
    return {
        "text": text,
        "x": x,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 8,
        "y": y,
        "yref": "y",
        "yanchor": "middle",
        "showarrow": False,
        "align": "left",
        "font": {"weight": BOLD if bold else 400, **(font or {})},
        **options,
    }


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Heights for labels that want to stand at ``wanted``, at least ``gap`` from each other.

    Labels that are too close form a block around the mean of what they want; blocks that then touch
    merge (pool adjacent violators), so the order stays and the sum of squared moves is least.
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    blocks: list[tuple[float, int]] = []
    for rank, i in enumerate(order):
        mean, count = wanted[i] - rank * gap, 1
        while blocks and blocks[-1][0] >= mean:
            other, n = blocks.pop()
            mean, count = (mean * count + other * n) / (count + n), count + n
        blocks.append((mean, count))
    spread = [mean for mean, count in blocks for _ in range(count)]
    placed = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        placed[i] = spread[rank] + rank * gap
    return placed


def numbers(values: Floats, digits: int = 2) -> list[float | None]:
    """JSON knows no NaN."""
    return [None if np.isnan(v) else round(float(v), digits) for v in values]
