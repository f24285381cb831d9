"""What several replays of one question tell: means with their intervals, and differences that are not noise.

One life is chaotic, so a figure is a mean over lives. The intervals are Student's (Biometrika 6, 1908). A
reader who looks at k differences at once finds one of them by chance k times as often; Bonferroni's
inequality, as Dunn (JASA 56, 1961) uses it, widens each interval to the level 1 - 0.05 / k, so that all k
hold together at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

ERROR = 0.05
"""Chance that an interval misses, all comparisons of one question taken together."""
LEAST = 5
"""Fewer replays are not judged."""

Floats = npt.NDArray[np.float64]


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NOISE = "noise"
    TOO_FEW = "too few"


@dataclass(frozen=True, slots=True)
class Interval:
    """``mean`` plus or minus ``half``, in the unit of the values; ``half`` is None for a single value."""

    mean: float
    half: float | None

    @property
    def low(self) -> float | None:
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        return None if self.half is None else self.mean + self.half


@dataclass(frozen=True, slots=True)
class Difference:
    """The other's mean less the base's, plus or minus ``half``, and what that says of the other."""

    mean: float
    half: float | None
    verdict: Verdict


def interval(values: Sequence[float], comparisons: int = 1) -> Interval:
    """Mean and Student's interval, at 95 % for all of ``comparisons`` intervals together.

    Raises ValueError without values, where one is not finite, or for less than one comparison.
    """
    found = _finite(values, "values")
    mean, error = _mean_and_error(found)
    return Interval(mean, _half(error, found.size - 1, comparisons))


def compare(
    base: Sequence[float],
    other: Sequence[float],
    comparisons: int = 1,
    *,
    lower_is_better: bool = True,
) -> Difference:
    """Paired: ``base[i]`` and ``other[i]`` lived the same life i. ``comparisons`` as told above.

    Raises ValueError as ``interval`` does, and where they are not equally many.
    """
    before, after = _finite(base, "base"), _finite(other, "other")
    if before.size != after.size:
        raise ValueError(
            f"expected as many values of both, found {before.size} and {after.size}: "
            "pair each life with itself"
        )
    found = interval((after - before).tolist(), comparisons)
    return Difference(found.mean, found.half, _judge(found, before.size, lower_is_better))


def _finite(values: Sequence[float], name: str) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if not found.size or not np.isfinite(found).all():
        raise ValueError(f"{name}: expected one finite number or more")
    return found


def _mean_and_error(found: Floats) -> tuple[float, float]:
    """Mean, and its standard error (0 for a single value)."""
    spread = float(found.std(ddof=1)) if found.size > 1 else 0.0
    return float(found.mean()), spread / math.sqrt(found.size)


def _half(error: float, freedom: float, comparisons: int) -> float | None:
    if comparisons < 1:
        raise ValueError(f"comparisons: expected 1 or more, found {comparisons}")
    if freedom <= 0:
        return None
    from scipy.stats import t as student  # a second to load, for whoever compares lives

    return float(student.ppf(1 - ERROR / comparisons / 2, freedom)) * error


def _judge(found: Interval, count: int, lower_is_better: bool) -> Verdict:
    if count < LEAST or found.half is None:
        return Verdict.TOO_FEW
    if abs(found.mean) <= found.half:
        return Verdict.NOISE
    return Verdict.BETTER if (found.mean < 0) == lower_is_better else Verdict.WORSE
