"""Labels along a line: which of them have room on a wide page and which on a narrow one.

Positions are percent of the width. Text is measured roughly, a little too wide rather than too narrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

CHAR_PX = 6.3
GAP_PX = 10
EDGE_PX = 4
"""A label may stand this far past either end."""


@dataclass(frozen=True, slots=True)
class LineLabel:
    """``anchor`` as in SVG. ``narrow``: whether there is room on a narrow page as well."""

    x: float
    text: str
    anchor: str = "start"
    figure: str = ""
    """Set apart after the text, in bold."""
    narrow: bool = True

    @property
    def at(self) -> str:
        return f"{self.x:g}%"

    @property
    def length_px(self) -> float:
        return (len(self.text) + len(self.figure) + bool(self.figure)) * CHAR_PX


def roomy(labels: Iterable[LineLabel], *, wide_px: float, narrow_px: float) -> list[LineLabel]:
    """Those that stand clear of the ones before them on a wide page, the most important first."""
    survivors: list[LineLabel] = []
    for label in labels:
        if _clear(label, survivors, wide_px):
            narrow = _clear(label, [k for k in survivors if k.narrow], narrow_px)
            survivors.append(replace(label, narrow=narrow))
    return survivors


def _clear(label: LineLabel, others: Sequence[LineLabel], width_px: float) -> bool:
    left, right = _span(label, width_px)
    if left < -EDGE_PX or right > width_px + EDGE_PX:
        return False
    return all(
        right + GAP_PX <= other_left or left >= other_right + GAP_PX
        for other_left, other_right in (_span(other, width_px) for other in others)
    )


def _span(label: LineLabel, width_px: float) -> tuple[float, float]:
    x, length = label.x / 100 * width_px, label.length_px
    left = {"start": x, "middle": x - length / 2, "end": x - length}[label.anchor]
    return left, left + length
