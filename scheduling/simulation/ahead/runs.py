"""How long work runs, drawn from what is known of it: what was learned or said of it, else runs of its like.

Only runs that ended before the moment are known. Work that has run already is drawn among those that ran
longer.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from scheduling.engine.compile.structs import Floats

KEPT = 256
"""Latest runs of one kind that are drawn from."""
SHRINK = 4.0
"""A kind with so many runs of its own counts as much as the kind around it."""
FEW = 3
"""Fewer runs that lasted as long say nothing of how much longer one lasts."""
Z90 = 1.2816
"""Standard deviations from the median to the 90th percentile."""


@dataclass(frozen=True, slots=True)
class Question:
    """One workload: its kinds from the narrowest to the widest, seconds it has run, its own quantiles of
    the whole run if there are any, and P10, P50 and P90 of what is left of it where that was learned."""

    kinds: tuple[Hashable, ...]
    age_s: float = 0.0
    p50_s: float | None = None
    p90_s: float | None = None
    rest_s: tuple[float, float, float] | None = None


@dataclass(slots=True)
class RunTimes:
    """The latest runs of each kind; ``note`` in order of their ends."""

    runs: dict[Hashable, deque[float]] = field(default_factory=dict)

    def note(self, kinds: Iterable[Hashable], run_s: float) -> None:
        for kind in kinds:
            if kind not in self.runs:
                self.runs[kind] = deque(maxlen=KEPT)
            self.runs[kind].append(run_s)

    def rests(self, questions: Sequence[Question], futures: int, dice: Generator) -> Floats:
        """Seconds still to run [future, workload]."""
        table = np.empty((futures, len(questions)))
        spread = {}
        for i, one in enumerate(questions):
            ranks = (dice.permutation(futures) + dice.random(futures)) / futures
            if one.rest_s is not None:
                table[:, i] = _learned(one.rest_s, ranks)
                continue
            if one.p50_s is not None and one.p90_s is not None:
                table[:, i] = _predicted(one, ranks)
                continue
            key = (one.kinds, one.age_s)
            if key not in spread:
                spread[key] = self._likes(one)
            values, heap = spread[key]
            table[:, i] = _drawn(values, heap, one.age_s, ranks)
        return np.maximum(1.0, table)

    def _likes(self, one: Question) -> tuple[Floats, Floats]:
        """Runs that lasted longer than this one has, and how much of the odds lies below each."""
        parts, left = [], 1.0
        for kind in one.kinds:
            values = np.array([v for v in self.runs.get(kind, ()) if v > one.age_s])
            if not values.size or (values.size < FEW and one.age_s > 0):
                continue
            own = left * values.size / (values.size + SHRINK)
            parts.append((values, np.full(values.size, own / values.size)))
            left -= own
        if not parts:
            return np.zeros(0), np.zeros(0)
        values = np.concatenate([v for v, _ in parts])
        odds = np.concatenate([w for _, w in parts])
        order = np.argsort(values, kind="stable")
        heap = np.cumsum(odds[order])
        return values[order], heap / heap[-1]


def _drawn(values: Floats, heap: Floats, age_s: float, ranks: Floats) -> Floats:
    """Nobody like it ran so long: it lasts twice as long as it has with even odds, and so on."""
    if not values.size:
        return np.minimum(max(age_s, 3600.0) * (1 / np.maximum(1e-3, 1 - ranks) - 1), 100.0 * 86400)
    at = np.minimum(np.searchsorted(heap, ranks), values.size - 1)
    return values[at] - age_s


def _learned(rest_s: tuple[float, float, float], ranks: Floats) -> Floats:
    """Log-normal on either side of the median, each with its own width."""
    low, middle, high = (math.log(max(1.0, value)) for value in rest_s)
    z = _normal(np.clip(ranks, 1e-6, 1 - 1e-6))
    return np.exp(middle + z / Z90 * np.where(z < 0, middle - low, high - middle))


def _predicted(one: Question, ranks: Floats) -> Floats:
    """Log-normal through P50 and P90, among those that last longer than it has."""
    p50 = max(1.0, one.p50_s or 1.0)
    sigma = max(1e-3, math.log(max(p50, one.p90_s or p50) / p50) / Z90)
    survived = 0.0
    if one.age_s > 0:
        survived = _below(math.log(one.age_s / p50) / sigma)
    at = np.minimum(survived + ranks * (1 - survived), 1 - 1e-6)
    return np.exp(math.log(p50) + sigma * _normal(at)) - one.age_s


def _below(z: float) -> float:
    return min(1 - 1e-4, 0.5 * math.erfc(-z / math.sqrt(2)))


def _normal(ranks: Floats) -> Floats:
    """Quantiles of the standard normal distribution."""
    from scipy.special import ndtri  # half a second to load, for whoever looks ahead

    found: Floats = ndtri(ranks)
    return found
