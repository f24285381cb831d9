"""Conformal correction: quantiles are moved by how far they were off of late.

When a run ends, each quantile that was said of it is moved a step up if the run took longer, a step down
otherwise, the steps such that they balance where the quantile holds what it promises (Gibbs and Candès 2021).
Steps are in widths of what was said, so that whoever is unsure is corrected by more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .quantiles import LEVELS, Quantiles, in_order

STEP = 0.02
MEDIAN_STEP = 0.004
"""The median is off by less, and moving it costs accuracy."""
LEAST = 0.25
"""Width (logarithm) below which steps do not shrink with it."""


@dataclass(slots=True)
class Calibrator:
    """Corrections of P10, P50 and P90 in widths."""

    moved: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def correct(self, said: Quantiles) -> Quantiles:
        below, above = widths(said)
        low, middle, high = self.moved
        p50 = said.p50 + middle * (above if middle > 0 else below)
        return in_order(said.p10 + low * below, p50, said.p90 + high * above)

    def learn(self, forecast: Quantiles, log2_s: float, *, censored: bool = False) -> None:
        """``told`` is what was said after correction. What was cut short is only known to be longer, so a
        quantile that it has not passed learns nothing of it."""
        for place, (level, value) in enumerate(zip(LEVELS, _values(forecast), strict=True)):
            step = MEDIAN_STEP if level == 0.5 else STEP
            if log2_s > value:
                self.moved[place] += step * level
            elif not censored and log2_s < value:
                self.moved[place] -= step * (1 - level)


def widths(said: Quantiles) -> tuple[float, float]:
    return max(said.p50 - said.p10, LEAST), max(said.p90 - said.p50, LEAST)


def _values(said: Quantiles) -> tuple[float, float, float]:
    return said.p10, said.p50, said.p90
