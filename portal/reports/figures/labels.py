"""Where names of lines go, so that they meet neither each other nor a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from portal.display.periods import Floats

CHAR_PX, HEIGHT_PX, AWAY_PX = 6.9, 14.0, 6.0
"""Width of a letter and height of a line of 12 px type, and the distance from the own line."""


@dataclass(frozen=True)
class Box:
    """A label's place in pixels: its left edge, its middle height (upwards), its width."""

    left: float
    middle: float
    width: float

    @property
    def right(self) -> float:
        return self.left + self.width

    def meets(self, other: Box) -> bool:
        apart = self.left >= other.right or other.left >= self.right
        return not apart and abs(self.middle - other.middle) < HEIGHT_PX

    def lines_inside(self, xs: Floats, lines: Sequence[Floats]) -> int:
        """Points of lines that the label would cover."""
        columns = (xs >= self.left) & (xs <= self.right)
        return sum(
            int((np.abs(line[columns] - self.middle) < HEIGHT_PX / 2 + 1).sum()) for line in lines
        )


def beside_lines(
    names: Sequence[str], xs: Floats, lines: Sequence[Floats], size: tuple[float, float]
) -> list[Box]:
    """One place for each line's name, left or right of one of its points, inside ``size`` pixels.

    Lines are taken in order; each gets the place that covers the fewest points of any line and no label
    so far, then the one nearest to the middle of the height.
    """
    placed: list[Box] = []
    for name, line in zip(names, lines, strict=True):
        width = len(name) * CHAR_PX
        places = [
            Box(left, float(y), width)
            for x, y in zip(xs, line, strict=True)
            for left in (float(x) + AWAY_PX, float(x) - AWAY_PX - width)
            if left >= 0 and left + width <= size[0] and HEIGHT_PX <= y <= size[1] - HEIGHT_PX
        ]
        free = [box for box in places if not any(box.meets(other) for other in placed)]
        best = min(
            free or places or [Box(0.0, size[1] / 2, width)],
            key=lambda box: (box.lines_inside(xs, lines), abs(box.middle - size[1] / 2), box.left),
        )
        placed.append(best)
    return placed
