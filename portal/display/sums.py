"""Figures of a line of a table that add up, each for itself."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, sub
from typing import Self


@dataclass(frozen=True, slots=True)
class NumericLine:
    """A base for lines whose fields are all numbers: ``sum(lines, Kind())`` is the line below them."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, self._amounts(), other._amounts()))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(sub, self._amounts(), other._amounts()))

    def _amounts(self) -> list[float]:
        # ``astuple`` copies each value deeply: a tree of a thousand queues is five thousand sums.
        names: tuple[str, ...] = type(self).__match_args__
        return [getattr(self, name) for name in names]
