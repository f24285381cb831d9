"""When each of who waits starts: P50 and P90 over futures, corrected from what came of earlier ones."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from scheduling.engine.compile.structs import Ints

HORIZONS_S = (600, 3600, 6 * 3600, 24 * 3600)
"""Forecasts are judged, and corrected, apart by how far ahead their P50 lies."""
GRACE_S = 60.0
"""Added to both sides of a ratio: being a minute off is no matter, however short the wait."""
KEPT = 400
LEAST = 100
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
    """A forecast before correction and what came of it, seconds after it was made."""

    told: Band
    start_s: float


def _ratio(came_s: float, told_s: float) -> float:
    """Logarithm of what came over what was told."""
    return float(np.log((came_s + GRACE_S) / (told_s + GRACE_S)))


@dataclass(slots=True)
class Errors:
    """At P50 and at P90, the latest last."""

    p50: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    p90: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))


@dataclass(slots=True)
class Correction:
    """Conformal: the quantile of past errors is added to the quantile that was told, in the logarithm.

    By horizon; -1 is all of them.
    """

    errors: dict[int, Errors] = field(default_factory=dict)

    def learn(self, came: Came) -> None:
        for errors in self._of(came.told):
            errors.p50.append(_ratio(came.start_s, came.told.p50_s))
            errors.p90.append(_ratio(came.start_s, came.told.p90_s))

    def with_waiting(self, waiting: Iterable[Came]) -> Correction:
        """And what is late already and waits still, at least so late: who starts soon is heard of first,
        so without it every band would come out too short."""
        found = copy.deepcopy(self)
        for one in waiting:
            for errors in found._of(one.told):
                if one.start_s > one.told.p50_s:
                    errors.p50.append(_ratio(one.start_s, one.told.p50_s))
                if one.start_s > one.told.p90_s:
                    errors.p90.append(_ratio(one.start_s, one.told.p90_s))
        return found

    def correct(self, band: Band) -> Band:
        if not np.isfinite(band.p50_s):
            return band
        mid, high = self._shift(horizon(band.p50_s))
        p50_s = max(1.0, (band.p50_s + GRACE_S) * np.exp(mid) - GRACE_S)
        p90_s = max(p50_s, (band.p90_s + GRACE_S) * np.exp(high) - GRACE_S)
        return Band(float(p50_s), float(p90_s))

    def _of(self, told: Band) -> list[Errors]:
        if not np.isfinite(told.p90_s):
            return []
        return [self.errors.setdefault(key, Errors()) for key in (horizon(told.p50_s), -1)]

    def _shift(self, key: int) -> tuple[float, float]:
        errors = self.errors.get(key, Errors())
        if len(errors.p50) < LEAST:
            errors = self.errors.get(-1, Errors())
        if len(errors.p50) < LEAST or len(errors.p90) < LEAST:
            return 0.0, 0.0
        return float(np.quantile(errors.p50, 0.5)), float(np.quantile(errors.p90, 0.9))
