"""The kernel of the simulator: it knows time and order and nothing else."""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import Any


class Turn(IntEnum):
    """Order of things that happen in the same second: what is freed and asked for, then the plan."""

    END = 0
    ARRIVE = 1
    PLAN = 2


class Agenda:
    """What is to happen, by (second, turn, sequence of being written down)."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, int, Any]] = []
        self._sequence = 0

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, at_s: int, turn: Turn, what: Any = None) -> None:
        heapq.heappush(self._entries, (at_s, turn, self._sequence, what))
        self._sequence += 1

    def pop(self) -> tuple[int, Turn, Any]:
        """The next (second, turn, what). Raises IndexError when nothing is left."""
        at_s, turn, _, what = heapq.heappop(self._entries)
        return at_s, Turn(turn), what

    def next_s(self) -> int | None:
        """When the next thing happens."""
        return self._entries[0][0] if self._entries else None
