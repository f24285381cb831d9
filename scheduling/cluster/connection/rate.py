"""A bounded rate: so many at once, and then so many a second."""

from __future__ import annotations

import time


class Allowance:
    """Fills up to ``at_once`` by ``per_s`` every second; starts full."""

    def __init__(self, per_s: float, at_once: int) -> None:
        self._per_s = per_s
        self._at_once = at_once
        self._tokens = float(at_once)
        self._since = time.monotonic()

    def left(self) -> int:
        """How many may be done now."""
        now = time.monotonic()
        self._tokens = min(self._at_once, self._tokens + (now - self._since) * self._per_s)
        self._since = now
        return int(self._tokens)

    def spend(self, number: int) -> None:
        self._tokens -= number
