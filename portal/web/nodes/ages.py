"""How long work has run, in the four steps by which the map of nodes can be coloured."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime

HOUR_S, DAY_S = 3600, 86_400
STEPS_S = (HOUR_S, DAY_S, 7 * DAY_S)
WORDS = ("under 1 h", "1 h to 1 d", "1 to 7 d", "over 7 d")


def age_of(started: datetime | None, now: datetime) -> int:
    """Its place in ``WORDS``; what has not started yet is in the first."""
    return bisect_right(STEPS_S, (now - started).total_seconds()) if started else 0
