"""Quantiles of a run time, and what is left of it once it has run for a while.

Inside, run times are base-2 logarithms of seconds: an error of 1 is a factor of two either way. Three
quantiles stand for a distribution that is log-normal on either side of its median, each with its own
width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

LEVELS = (0.1, 0.5, 0.9)
NORMAL = NormalDist()
Z90 = NORMAL.inv_cdf(0.9)
LEAST_WIDTH = 0.02
"""Nobody knows a run time better than to one or two in a hundred (logarithm)."""
MOST = 30.0
"""Logarithm of the longest run that is ever predicted: 34 years."""
FURTHEST = 1 - 1e-9
"""Share of runs that are over by the longest that the tail is followed to."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """P10, P50 and P90 of a run time as logarithms, in order."""

    p10: float
    p50: float
    p90: float

    def moved(self, by: float) -> Quantiles:
        return Quantiles(self.p10 + by, self.p50 + by, self.p90 + by)

    def share_below(self, value: float) -> float:
        """The share of runs that are over by ``value`` (a logarithm)."""
        below = value < self.p50
        width = self.p50 - self.p10 if below else self.p90 - self.p50
        return NORMAL.cdf((value - self.p50) / max(width, LEAST_WIDTH) * Z90)

    def at(self, share: float) -> float:
        """The logarithm that this share of runs stays below."""
        z = NORMAL.inv_cdf(min(max(share, 1 - FURTHEST), FURTHEST)) / Z90
        width = self.p50 - self.p10 if z < 0 else self.p90 - self.p50
        return self.p50 + z * max(width, LEAST_WIDTH)


def in_order(p10: float, p50: float, p90: float) -> Quantiles:
    """``p50`` stays; the others give way to it."""
    middle = min(max(p50, 0.0), MOST)
    return Quantiles(min(max(p10, 0.0), middle), middle, min(max(p90, middle), MOST))


def seconds(value: float) -> float:
    return math.pow(2.0, min(value, MOST))


def log2_s(seconds_: float) -> float:
    """Of a run of less than a second as if it had taken one."""
    return math.log2(max(1.0, seconds_))


def rest_s(
    quantiles: Quantiles, ran_s: float = 0.0, limit_s: float = 0.0
) -> tuple[float, float, float]:
    """P10, P50 and P90 of the seconds that are left of a run that has not ended in ``ran_s``.

    Of those that survive so long; never past the limit that ends it.
    """
    gone = quantiles.share_below(log2_s(ran_s)) if ran_s >= 1 else 0.0
    left = [seconds(quantiles.at(gone + level * (1 - gone))) - ran_s for level in LEVELS]
    most = max(0.0, limit_s - ran_s) if limit_s else math.inf
    p10, p50, p90 = (min(max(0.0, value), most) for value in left)
    return p10, max(p10, p50), max(p10, p50, p90)
