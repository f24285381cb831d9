"""The simple model: what the last runs like it took.

Work belongs to groups, from its very recipe to the whole cluster. The last runs of each are weighed
together: those of a narrow group in full, those of a wider one by what the narrower leave over, so that a
recipe with many runs speaks for itself and a new one is drawn towards its user, its name and its queue.
Runs that were cut short count as *at least so long*: their weight goes to the longer ones (Kaplan and Meier
1958, with the last one taken as ended, Efron 1967).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .paces import Paces
from .quantiles import LEVELS, Quantiles, in_order, log2_s
from .runs import Run, Work

Floats = npt.NDArray[np.float64]
Key = tuple[str, ...]

GROUPS = ("recipe", "shape", "name", "place", "user", "image", "size", "queue", "all")
"""From the narrowest to the widest."""
KEPT = 16
FRESH = 0.85
"""Weight of a run against that of the next one of its group."""
ENOUGH = 4.0
"""Weight at which a group leaves half of the say to the wider ones."""
WIDEST = 2.0
"""Logarithm of the factor either way that stands for knowing nothing."""
UNKNOWN = Quantiles(11.0 - WIDEST, 11.0, 11.0 + WIDEST)
"""Half an hour, or a quarter or four times that: before anything has ended."""
MOST_KEYS = 40_000

WEIGHTS = FRESH ** np.arange(KEPT, dtype=np.float64)
"""Of the last, the one before it, ..."""


class PastRun(NamedTuple):
    """One run of a group: its logarithm, when it ended, whether it was cut short, and its class."""

    log2_s: float
    ended: float
    censored: bool
    gpu_class: str


Pasts = tuple[PastRun, ...]
"""The last ones of a group, at most ``KEPT``. There are thousands of groups, most of one run or two: a deque
of each would take ten times the memory."""


def keys_of(work: Work) -> tuple[Key | None, ...]:
    """The groups of ``work`` in the order of ``GROUPS``; None where it says too little to belong to one."""
    w, size = work, f"{work.gpus:g}"
    named = bool(w.stem or w.image)
    return (
        ("r", w.user, w.queue, w.stem, w.image, size, f"{w.memory_gib:g}", f"{w.limit_s:g}"),
        ("h", w.user, w.stem, w.image, size, f"{w.limit_s:g}"),
        ("n", w.user, w.stem) if w.stem else None,
        ("p", w.user, w.queue, size),
        ("u", w.user),
        ("i", w.stem, w.image) if named else None,
        ("s", w.queue, size),
        ("q", w.queue),
        ("*",),
    )


@dataclass(slots=True)
class Estimate:
    """What history says, and of which of ``GROUPS`` it says so: the narrowest with a say of its own."""

    quantiles: Quantiles
    weight: float
    group: str = ""
    values: Sequence[float] = ()
    """Logarithms of the runs of that group, the last first."""
    classes: Sequence[str] = ()
    """The GPU classes that those ran on."""


@dataclass(slots=True)
class History:
    """The last runs of every group, the group that was heard of last at the end."""

    past: dict[Key, Pasts] = field(default_factory=dict)
    paces: Paces = field(default_factory=Paces)

    def learn(self, run: Run) -> None:
        """Add a run that is over."""
        note = PastRun(log2_s(run.ran_s), run.ended, run.censored, run.work.gpu_class)
        for key in keys_of(run.work):
            if key is not None:
                self.past[key] = (*self.past.pop(key, ())[1 - KEPT :], note)
        while len(self.past) > MOST_KEYS:
            del self.past[next(iter(self.past))]
        self.paces.learn(run)

    def runs_like(self, work: Work) -> list[Pasts | None]:
        """The last runs of each of its groups, in the order of ``GROUPS``."""
        return [self.past.get(key) if key is not None else None for key in keys_of(work)]

    def estimate(self, work: Work, found: Sequence[Pasts | None] | None = None) -> Estimate:
        """What the last runs like ``work`` took, as if they had run on its class."""
        found = self.runs_like(work) if found is None else found
        values: list[float] = []
        weights: list[Floats] = []
        cut: list[bool] = []
        left, narrowest = 1.0, None  # type: tuple[float, tuple[str, list[float], list[str]] | None]
        total = 0.0
        for name, runs in zip(GROUPS, found, strict=True):
            if not runs:
                continue
            own = WEIGHTS[: len(runs)]
            weight = float(own.sum())
            said = self._on_class(runs, work)
            values += said
            cut += [run.censored for run in reversed(runs)]
            share = left * weight / (weight + ENOUGH) if name != "all" else left
            weights.append(own * (share / weight))
            total += weight * left
            left -= share
            if narrowest is None:
                narrowest = (name, said, [run.gpu_class for run in reversed(runs)])
            if left < 0.02:
                break
        if narrowest is None:
            return Estimate(UNKNOWN, 0.0)
        quantiles = quantiles_of(np.array(values), np.concatenate(weights), cut)
        return Estimate(quantiles, total, *narrowest)

    def _on_class(self, runs: Pasts, work: Work) -> list[float]:
        """Their logarithms, the last first, moved to the class of ``work`` where the pace is known."""
        wanted = work.gpu_class
        if not wanted or all(run.gpu_class == wanted for run in runs):
            return [run.log2_s for run in reversed(runs)]
        shifts = {name: self._shift(work, name) for name in {run.gpu_class for run in runs}}
        return [run.log2_s + shifts[run.gpu_class] for run in reversed(runs)]

    def _shift(self, work: Work, begin: str) -> float:
        pace = self.paces.between(work, begin, work.gpu_class) if begin else None
        return pace.shift if pace else 0.0


def quantiles_of(values: Floats, weights: Floats, censored: Sequence[bool]) -> Quantiles:
    """Weighted quantiles, those that were cut short counted as longer."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    if any(censored):
        weights = passed_on(weights, np.array(censored)[order])
    reached = np.cumsum(weights)
    middle = (reached - weights / 2) / reached[-1]
    p10, p50, p90 = np.interp(LEVELS, middle, values)
    return in_order(float(p10), float(p50), float(p90))


def passed_on(weights: Floats, censored: npt.NDArray[np.bool_]) -> Floats:
    """``weights`` in ascending order of run time, each censored one's shared out among the longer ones."""
    weights = weights.copy()
    for place in np.flatnonzero(censored[:-1]):
        longer = weights[place + 1 :]
        longer *= 1 + weights[place] / longer.sum()
        weights[place] = 0.0
    return weights
