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
    """One thing that was looked at; ``remedy`` is empty when nothing is to be done. ``command`` is the line
    in it that is typed in a shell, where there is one."""

    grade: Grade
    topic: str
    sentence: str
    remedy: str = ""
    command: str = ""
