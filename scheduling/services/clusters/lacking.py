"""What a look at a cluster finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    GOOD = "good"
    ADVICE = "advice"
    """Weir runs without it."""
    MISSING = "missing"
    """Weir does not run, or not in this mode, without it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked at; ``remedy`` is empty when nothing is to be done."""

    grade: Grade
    topic: str
    sentence: str
    remedy: str = ""
