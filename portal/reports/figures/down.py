"""GPUs that were down, as lines above a plot over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from portal.display.format import number
from portal.reports.figures.theme import local
from portal.reports.outages import Outage

ERR = "var(--err-text)"
ROW_PX = 18
"""Each class that had any has a line of its own, under its label."""


def room(found: Sequence[Outage]) -> int:
    """Pixels that they need above the plot."""
    return ROW_PX * len({one.name for one in found})


def drawn(
    found: Sequence[Outage], zone: ZoneInfo, plot_px: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(shapes, labels) above a plot ``plot_px`` high."""
    shapes, labels = [], []
    for row, name in enumerate(dict.fromkeys(one.name for one in found)):
        y = 1 + (row * ROW_PX + 3) / plot_px
        mine = [one for one in found if one.name == name]
        shapes += [_line(one, y, zone) for one in mine]
        labels.append(_label(f"{number(max(one.gpus for one in mine))} {name} down", y))
    return shapes, labels


def _line(one: Outage, y: float, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "type": "line", "xref": "x", "yref": "paper", "y0": y, "y1": y,
        "x0": local(one.since, zone), "x1": local(one.until, zone),
        "line": {"color": ERR, "width": 3},
    }  # fmt: skip


def _label(text: str, y: float) -> dict[str, Any]:
    return {
        "text": text, "x": 0, "xref": "paper", "xanchor": "left", "y": y, "yref": "paper",
        "yanchor": "bottom", "showarrow": False, "font": {"size": 11},
    }  # fmt: skip
