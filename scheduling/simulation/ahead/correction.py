"""Bands corrected by what came of earlier ones, of late.

Split conformal prediction with normalised scores (Lei et al. 2018, locally weighted): how far off a
forecast was is counted in widths of the band that its futures had, so that whoever is unsure is corrected by
more. The quantiles of these scores say how far a band reaches. Recent forecasts count more (Barber et al.
2023), which follows drift: those of the last day for the middle, of weeks for the tail. What waits still is
only known to be later: it counts by the estimate of Kaplan and Meier (1958), since who starts soon is heard
of first, and bands learned from those alone come out too short.

Which quantiles are taken moves with every hit and miss of what was told (adaptive conformal inference, Gibbs
and Candès 2021): quantiles of the past lag behind a change of load, levels that are moved by misses hold in
the long run whatever comes. The first forecast of a workload, and those told of small and large gangs while
they wait, miss for other causes, so each kind has levels of its own, and its own outcomes count most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from scheduling.engine.compile.structs import Flags, Floats

from .bands import Band

GRACE_S = 60.0
"""Added to both sides of a ratio: being a minute off is no matter, however short the wait."""
AGREED = 0.1
"""Added to a band's width: futures that agree wholly may all be off by a tenth."""
LEAST = 50
"""Outcomes that a correction rests on at least, in effect (Kish); with fewer in all nothing is corrected."""
DAY_S = 86400.0
HALF_LIVES_S = (DAY_S, 8 * DAY_S)
"""A forecast told so long ago counts half for the P50, and for the P90; twice as long ago, and so on, where
too few count. The middle moves with the load of the day, while tails need many outcomes."""
LONGEST_S = 32 * DAY_S
OTHER_KIND = 0.25
"""An outcome of another kind counts as so much of one of its own."""
LEVELS = (0.5, 0.9)
LOWEST, HIGHEST = 0.02, 0.995
LARGE_GPUS = 8
"""A gang from there on is large."""


class ForecastKind(Enum):
    """Forecasts that share their levels; how far one miss moves those of P50 and P90, and as how many at most
    the forecasts of a day do: a busy day is one change of load, not thousands."""

    FIRST = "first", (0.08, 0.02), 10
    SMALL = "small", (0.02, 0.01), 60
    LARGE = "large", (0.02, 0.01), 60

    @classmethod
    def of(cls, gpus: float, *, first: bool) -> ForecastKind:
        return cls.FIRST if first else cls.LARGE if gpus >= LARGE_GPUS else cls.SMALL

    def __init__(self, _name: str, steps: tuple[float, float], daily: int) -> None:
        self.steps, self.daily = steps, daily


@dataclass(frozen=True, slots=True)
class JudgedForecast:
    """A forecast before correction, made at ``at_s`` (seconds of any one clock), and what is known of it: it
    started ``after_s`` seconds later, or has waited so long since and waits still. ``said`` is what was told
    of it, after correction."""

    band: Band
    at_s: float
    after_s: float
    started: bool = True
    said: Band | None = None
    kind: ForecastKind = ForecastKind.SMALL


@dataclass(frozen=True, slots=True)
class Correction:
    """Where P50 and P90 lie, in widths beyond the P50 of the futures, by kind; without any bands stay as they
    are."""

    reach: Mapping[ForecastKind, tuple[float, float]] = field(default_factory=dict)

    def correct(self, band: Band, kind: ForecastKind = ForecastKind.SMALL) -> Band:
        """P50 is a second ahead at least, and P90 no sooner than it."""
        reach = self.reach.get(kind)
        if reach is None or not np.isfinite(band.p90_s):
            return band
        middle, far = reach
        p50_s = max(1.0, _at(band, middle))
        return Band(p50_s, max(p50_s, _at(band, far)))


def correction_from(came: Iterable[JudgedForecast], now_s: float) -> Correction:
    """What forecasts made before ``now_s`` say, in any order."""
    seen = [one for one in came if np.isfinite(one.band.p90_s)]
    started = np.array([one.started for one in seen], np.bool_)
    if started.sum() < LEAST:
        return Correction()
    scores = _scores(seen)
    age_s = np.array([max(0.0, now_s - one.at_s) for one in seen])
    reach = {}
    for kind in ForecastKind:
        alike = np.array([1.0 if one.kind is kind else OTHER_KIND for one in seen])
        middle, far = (
            _quantile(scores, started, _of_late(alike, age_s, started, half_life_s), level)
            for level, half_life_s in zip(levels_of(seen, kind), HALF_LIVES_S, strict=True)
        )
        reach[kind] = (middle, far)
    return Correction(reach)


def levels_of(seen: Iterable[JudgedForecast], kind: ForecastKind) -> tuple[float, float]:
    """The levels of P50 and P90 that what was told of one kind asks for: lower after hits, higher after
    misses, in the order in which they were known."""
    mine = [one for one in seen if one.kind is kind and one.said is not None]
    a_day = Counter(int(one.at_s // DAY_S) for one in mine)
    weights = [min(1.0, kind.daily / a_day[int(one.at_s // DAY_S)]) for one in mine]
    found = list(LEVELS)
    for _, which, missed, weight in sorted(_judgements(mine, weights)):
        step = kind.steps[which] * weight * (LEVELS[which] - 1 + missed)
        found[which] = min(HIGHEST, max(LOWEST, found[which] + step))
    return found[0], max(found)


def _judgements(
    mine: Sequence[JudgedForecast], weights: Sequence[float]
) -> Iterator[tuple[float, int, bool, float]]:
    """(when it was known, level, whether it was missed, weight): a start before its quantile is a hit, a wait
    past it a miss from then on; what may still come is neither."""
    for one, weight in zip(mine, weights, strict=True):
        for which, told_s in enumerate((one.said.p50_s, one.said.p90_s) if one.said else ()):
            if one.after_s > told_s:
                yield one.at_s + told_s, which, True, weight
            elif one.started:
                yield one.at_s + one.after_s, which, False, weight


def _log(seconds: Floats | float) -> Floats:
    found: Floats = np.log(np.maximum(seconds, 0.0) + GRACE_S)
    return found


def _width(p50_s: Floats | float, p90_s: Floats | float) -> Floats:
    return _log(p90_s) - _log(p50_s) + AGREED


def _at(band: Band, reach: float) -> float:
    """Seconds from now, so many widths beyond the P50."""
    step = reach * float(_width(band.p50_s, band.p90_s))
    return (band.p50_s + GRACE_S) * float(np.exp(min(step, 30.0))) - GRACE_S


def _scores(seen: Sequence[JudgedForecast]) -> Floats:
    """How many widths beyond the P50 each came, or has waited so far."""
    p50_s = np.array([one.band.p50_s for one in seen])
    p90_s = np.array([one.band.p90_s for one in seen])
    after_s = np.array([one.after_s for one in seen])
    return (_log(after_s) - _log(p50_s)) / _width(p50_s, p90_s)


def _of_late(alike: Floats, age_s: Floats, started: Flags, half_life_s: float) -> Floats:
    """``alike`` halved with age, over the shortest memory in which enough outcomes count."""
    while half_life_s <= LONGEST_S:
        weights: Floats = alike * 0.5 ** (age_s / half_life_s)
        if _in_effect(weights[started]) >= LEAST:
            return weights
        half_life_s *= 2
    return alike


def _in_effect(weights: Floats) -> float:
    """Kish's number of equal weights that say as much."""
    total = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / total if total > 0 else 0.0


def _quantile(scores: Floats, started: Flags, weights: Floats, level: float) -> float:
    """Kaplan and Meier's, weighted; the largest score where too much waits still to say."""
    order = np.lexsort((~started, scores))
    scores, started, weights = scores[order], started[order], weights[order]
    at_risk = np.maximum(np.cumsum(weights[::-1])[::-1], 1e-300)
    waits = np.cumprod(np.where(started, 1 - weights / at_risk, 1.0))
    beyond = np.flatnonzero(waits <= 1 - level + 1e-9)
    return float(scores[beyond[0]] if beyond.size else scores[-1])
