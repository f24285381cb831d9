"""When each of whoever waits starts: P50 and P90 over futures."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from scheduling.engine.compile.structs import Ints

HORIZONS_S = (600, 3600, 6 * 3600, 24 * 3600)
"""Forecasts are judged apart by how far ahead their P50 lies."""


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
