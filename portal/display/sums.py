"""Figures of a line of a table that add up, each for itself."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Summed:
    """A base for lines whose fields are all numbers: ``sum(lines, Kind())`` is the line below them."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))
