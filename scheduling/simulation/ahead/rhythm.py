"""Arrivals to come, drawn from those of the weeks before.

Each day ahead is a day of the past, moved: one on the same weekday where there are two weeks to choose from,
so that nights, weekends and bursts are those of the cluster itself. Until a day is known its hours are: a
cluster in its first hours would else be foreseen as one to which nobody comes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from scheduling.engine.compile.structs import Ints

HOUR_S, DAY_S, WEEK_S = 3600, 86400, 7 * 86400
WEEKS = 8
BLOCK_S = 6 * HOUR_S
"""Arrivals of so long are drawn together: bursts last for hours."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """``submit`` in ascending order up to ``now_s``; times count from any common origin."""

    submit: Ints
    now_s: int

    def draw(self, ahead_s: int, dice: Generator) -> tuple[Ints, Ints]:
        """Which of the past arrivals come again, and when, seconds from now, in order."""
        which, when = [], []
        block_s = self._block_s()
        for begin in range(0, ahead_s, block_s):
            length = min(block_s, ahead_s - begin)
            back = self._back(begin, length, dice)
            if back is None:
                continue
            first, last = np.searchsorted(
                self.submit, [self.now_s + begin - back, self.now_s + begin - back + length]
            )
            which.append(np.arange(first, last))
            when.append(self.submit[first:last] + back - self.now_s)
        if not which:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        jobs, at = np.concatenate(which), np.concatenate(when)
        order = np.argsort(at, kind="stable")
        return jobs[order], np.maximum(1, at[order])

    def _past_s(self) -> int:
        return self.now_s - int(self.submit[0]) if self.submit.size else 0

    def _block_s(self) -> int:
        """No longer than what is known, in whole hours."""
        return min(BLOCK_S, max(1, self._past_s() // HOUR_S) * HOUR_S)

    def _back(self, begin: int, length: int, dice: Generator) -> int | None:
        """How far back the block is taken from: whole weeks, else whole days, else whole hours."""
        past_s = self._past_s()
        for period, most in ((WEEK_S, WEEKS), (DAY_S, 7), (HOUR_S, past_s // HOUR_S)):
            least = -(-(begin + length) // period)
            weeks = [k for k in range(least, least + most) if k * period - begin <= past_s]
            if len(weeks) >= (2 if period == WEEK_S else 1):
                return int(dice.choice(weeks)) * period
        return None
