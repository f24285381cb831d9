"""Whose rows are told anew: everybody's place moves with every start, and a long line is read less often."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.engine import model as m
from scheduling.models import Workload

TOLD_ROWS = 500
"""Rows whose reason changed that are told at a time. Fewer than that are told with every cycle."""
MOVED_ROWS = 200
"""The same for those of which only the figures did, in turn."""
TOLD_EVERY_S = 1.0
"""Wall seconds between two looks along a line that is longer."""


@dataclass(slots=True)
class Telling:
    """What is remembered from one look to the next."""

    _told_at: float = float("-inf")
    _turn: int = 0

    def is_due(self, length: int) -> bool:
        """Whether a line of that length is to be looked along now."""
        tick = time.monotonic()
        if length > TOLD_ROWS and tick - self._told_at < TOLD_EVERY_S:
            return False
        self._told_at = tick
        return True

    def choose(
        self, rows: Sequence[Workload | None], reasons: Sequence[m.Reason]
    ) -> tuple[list[int], list[int]]:
        """Places of those in the line (None: of no row) whose reason is another one than in their row,
        the first of them; and of others, so many in turn."""
        changed: list[int] = []
        moved: list[int] = []
        for place, (row, reason) in enumerate(zip(rows, reasons, strict=True)):
            if row is not None:
                (moved if row.reason == reason else changed).append(place)
        start = self._turn * MOVED_ROWS % len(moved) if len(moved) > MOVED_ROWS else 0
        self._turn += 1
        return changed[:TOLD_ROWS], moved[start : start + MOVED_ROWS]
