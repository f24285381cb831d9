"""Small statistics of waits and losses."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from portal.display.periods import Floats

LEAST = 5
"""Fewer values than this have no ninth decile worth saying aloud."""


@dataclass(frozen=True)
class Spread:
    """Percentiles of ``count`` values, in their unit; None of nothing."""

    count: int = 0
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    mean: float | None = None

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """Linear between the two nearest values."""
        if not len(values):
            return cls()
        p50, p90, p99 = np.quantile(values, (0.5, 0.9, 0.99))
        return cls(len(values), float(p50), float(p90), float(p99), float(values.mean()))

    @property
    def is_telling(self) -> bool:
        """Enough values for percentiles that more of them would not turn round."""
        return self.count >= LEAST

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


def share(part: float, whole: float) -> float | None:
    """part / whole; None where there is no whole."""
    return part / whole if whole > 0 else None
