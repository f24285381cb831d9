"""When each of who waits starts: P50 and P90 over futures, corrected from what came of earlier ones."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from scheduling.engine.compile.structs import Ints

HORIZONS_S = (600, 3600, 6 * 3600, 24 * 3600)
"""Forecasts are judged, and corrected, apart by how far ahead their P50 lies."""
GRACE_S = 60.0
"""Added to both sides of a ratio: being a minute off is no matter, however short the wait."""
KEPT = 400
LEAST = 25
"""With fewer outcomes at a horizon all horizons correct it together; with fewer in all, nothing does."""


@dataclass(frozen=True, slots=True)
class Band:
    """Seconds from now; infinite where fewer of the futures saw it start."""

    p50_s: float
    p90_s: float


def bands(starts: Ints) -> list[Band]:
    """Of ``starts`` [future, workload], -1 where one had not started by the end of a future."""
    table = np.where(starts < 0, np.inf, starts.astype(np.float64))
    p50, p90 = np.quantile(table, [0.5, 0.9], axis=0, method="higher")
    return [Band(float(a), float(b)) for a, b in zip(p50, p90, strict=True)]


def horizon(p50_s: float) -> int:
    """Which of the five horizons."""
    return bisect_right(HORIZONS_S, p50_s)


@dataclass(frozen=True, slots=True)
class Came:
    """A forecast before correction and what came of it, seconds after it was made. One that still waits
    tells only that it is late."""

    told: Band
    start_s: float

    @property
    def late(self) -> tuple[float, float]:
        """Logarithm of what came over what was told, at P50 and at P90."""
        return _ratio(self.start_s, self.told.p50_s), _ratio(self.start_s, self.told.p90_s)


def _ratio(came_s: float, told_s: float) -> float:
    return float(np.log((came_s + GRACE_S) / (told_s + GRACE_S)))


@dataclass(slots=True)
class Correction:
    """Conformal: the quantile of past errors is added to the quantile that was told, in the logarithm."""

    errors: dict[int, deque[tuple[float, float]]] = field(default_factory=dict)

    def learn(self, came: Came) -> None:
        if np.isfinite(came.told.p90_s):
            for key in (horizon(came.told.p50_s), -1):
                self.errors.setdefault(key, deque(maxlen=KEPT)).append(came.late)

    def correct(self, band: Band) -> Band:
        if not np.isfinite(band.p50_s):
            return band
        mid, high = self._shift(horizon(band.p50_s))
        p50_s = max(1.0, (band.p50_s + GRACE_S) * np.exp(mid) - GRACE_S)
        p90_s = max(p50_s, (band.p90_s + GRACE_S) * np.exp(high) - GRACE_S)
        return Band(float(p50_s), float(p90_s))

    def _shift(self, key: int) -> tuple[float, float]:
        errors = self.errors.get(key, ())
        if len(errors) < LEAST:
            errors = self.errors.get(-1, ())
        if len(errors) < LEAST:
            return 0.0, 0.0
        table = np.array(errors)
        return float(np.quantile(table[:, 0], 0.5)), float(np.quantile(table[:, 1], 0.9))
