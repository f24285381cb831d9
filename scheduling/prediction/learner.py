"""Predict, then learn: one pass through submissions and ends in the order in which they came.

A prediction sees what had ended by its time and nothing else. The boosted model is fitted again whenever
enough runs have ended since; it speaks while it has been better than history on runs that began after its
first fit, and history speaks otherwise. Every quantile is corrected by how the last ones held.

How good quantiles are: what held, by how much they were off, and whether a simpler one is as good.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from . import gradient_boosting
from .calibration import Calibrator
from .features import Submissions, features_of
from .gradient_boosting import Forest
from .history import Estimate, History
from .quantiles import LEVELS, MOST, Quantiles, in_order, log2_s
from .runs import Run, Work

KEPT = 20_000


def pinball(said: Quantiles, log2_s: float) -> float:
    """Mean loss over ``LEVELS`` in logarithms: the proper score of quantiles (Koenker and Bassett 1978)."""
    values = (said.p10, said.p50, said.p90)
    losses = (
        max(level * (log2_s - value), (level - 1) * (log2_s - value))
        for level, value in zip(LEVELS, values, strict=True)
    )
    return sum(losses) / len(LEVELS)


@dataclass(slots=True)
class Score:
    """Of predictions that were made before the run and judged after it; ``recent`` fades."""

    fade: float = 0.998
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    runs: int = 0
    within: int = 0
    upper: int = 0
    loss: float = 0.0
    recent: float = 0.0
    weight: float = 0.0

    def note(self, said: Quantiles, log2_s: float) -> None:
        loss = pinball(said, log2_s)
        self.errors.append(abs(log2_s - said.p50))
        self.runs += 1
        self.within += said.p10 <= log2_s <= said.p90
        self.upper += said.p50 <= log2_s <= said.p90
        self.loss += loss
        self.recent = self.recent * self.fade + loss * (1 - self.fade)
        self.weight = self.weight * self.fade + 1 - self.fade

    @property
    def recent_loss(self) -> float:
        return self.recent / self.weight if self.weight else 0.0

    def figures(self) -> dict[str, float]:
        """As a row keeps them; empty before anything has ended."""
        if not self.runs:
            return {}
        return {
            "runs": self.runs,
            "median_abs_log2_error": round(statistics.median(self.errors), 4),
            "pinball": round(self.loss / self.runs, 4),
            "p10_p90_pct": round(100 * self.within / self.runs, 2),
            "p50_p90_pct": round(100 * self.upper / self.runs, 2),
        }


YOUNG = 500
"""Runs before there is a boosted model at all, and that it must have been judged on before it speaks."""
JUDGED = 100
AGAIN = 1.15
"""It is fitted again when so many times the runs have ended as at its last fit."""
AGAIN_RUNS = 4000
"""At the latest after so many more."""
ROWS = 16_000
"""Latest runs that it is fitted to: bounds time and memory."""


@dataclass(frozen=True, slots=True)
class RunTimeEstimate:
    """What was said of one: by each model before correction (``raw``) and after it, and whose word it was
    ``told``."""

    work: Work
    row: list[float]
    estimate: Estimate
    raw: dict[str, Quantiles]
    corrected: dict[str, Quantiles]
    by: str

    @property
    def quantiles(self) -> Quantiles:
        return self.corrected[self.by]


@dataclass(slots=True)
class Models:
    """All that a prediction is made of."""

    history: History = field(default_factory=History)
    submissions: Submissions = field(default_factory=Submissions)
    forest: Forest | None = None
    calibrators: dict[str, Calibrator] = field(
        default_factory=lambda: {"history": Calibrator(), "boosted": Calibrator()}
    )
    serving: str = "history"


@dataclass(slots=True)
class Learner:
    """``models`` as they stand, what was said of those that have not ended, and how good it was."""

    models: Models = field(default_factory=Models)
    scores: dict[str, Score] = field(
        default_factory=lambda: {"history": Score(), "boosted": Score(), "told": Score()}
    )
    by_class: dict[str, Score] = field(default_factory=dict)
    """Of what was told, by the GPU class that it ran on."""
    by_group: dict[str, Score] = field(default_factory=dict)
    """Of what was told, by the group of history that it rested on."""
    rows: deque[tuple[list[float], float]] = field(default_factory=lambda: deque(maxlen=ROWS))
    waiting: dict[int, RunTimeEstimate] = field(default_factory=dict)
    ended: int = 0
    censored: int = 0
    fitted_at: int = 0
    fits: int = 0
    unseen: int = 0
    """The last of ``rows``, which the trees were not fitted to."""
    before: tuple[Forest, list[tuple[list[float], float]]] | None = None
    """The trees of the fit before, and what had ended between the two."""
    boosting: bool = True
    again: float = AGAIN

    def submit(self, number: int, work: Work) -> RunTimeEstimate:
        """Say how long it will run, and keep that until it ends. ``number`` is its own."""
        said = say(self.models, work, work.submitted, self.models.submissions.note(work))
        self.waiting[number] = said
        return said

    def end(self, number: int, run: Run) -> None:
        """Judge what was said of it, then learn from it."""
        said = self.waiting.pop(number, None)
        if said is not None:
            self._judge(said, run)
            self.models.submissions.end(run.work)
        self.models.history.learn(run)
        self.ended += 1
        self.censored += run.censored
        if self.boosting and self._is_due():
            self.fit()

    def _judge(self, said: RunTimeEstimate, run: Run) -> None:
        took = log2_s(run.ran_s)
        for name, corrected in said.corrected.items():
            self.models.calibrators[name].learn(corrected, took, censored=run.censored)
            if not run.censored:
                self.scores[name].note(corrected, took)
        if not run.censored:
            self.scores["told"].note(said.quantiles, took)
            self.by_class.setdefault(run.work.gpu_class, Score()).note(said.quantiles, took)
            self.by_group.setdefault(said.estimate.group, Score()).note(said.quantiles, took)
        self.rows.append((said.row, target_of(said, took, censored=run.censored)))
        self.unseen = min(self.unseen + 1, len(self.rows))
        self.models.serving = self._better()

    def _better(self) -> str:
        """Which of the two has been better of late on what neither had seen."""
        ours, simple = self.scores["boosted"], self.scores["history"]
        if self.models.forest is None or ours.runs < JUDGED:
            return "history"
        return "boosted" if ours.recent_loss < simple.recent_loss else "history"

    def _is_due(self) -> bool:
        if len(self.rows) < YOUNG:
            return False
        return self.ended >= min(self.fitted_at * self.again, self.fitted_at + AGAIN_RUNS)

    def fit(self) -> None:
        """Fit the boosted model to the runs that have ended."""
        table = np.array([row for row, _ in self.rows])
        table[:, np.isnan(table).all(axis=0)] = 0.0  # A column of nothing cannot be put into bins.
        targets = np.array([target for _, target in self.rows])
        if self.models.forest is not None:
            self.before = self.models.forest, list(self.rows)[-self.unseen :]
        self.models.forest, self.unseen = gradient_boosting.fit(table, targets), 0
        self.fitted_at, self.fits = self.ended, self.fits + 1


def target_of(said: RunTimeEstimate, took: float, *, censored: bool) -> float:
    """By how much history's median was off. One cut short is taken to have gone on for as long as half of
    those that history knows to last so long do (Buckley and James 1979)."""
    history = said.raw["history"]
    if censored:
        gone = history.share_below(took)
        took = min(max(took, history.at((1 + gone) / 2)), MOST)
    return took - history.p50


def say(models: Models, work: Work, now: float, submitted: tuple[float, ...]) -> RunTimeEstimate:
    """What every model says of ``work`` by what had ended at ``now``."""
    found = models.history.runs_like(work)
    estimate = models.history.estimate(work, found)
    row = features_of(work, submitted, estimate, found, now)
    raw = {"history": estimate.quantiles}
    if models.forest is not None:
        low, middle, high = sorted(models.forest.predict(row) + estimate.quantiles.p50)
        raw["boosted"] = in_order(float(low), float(middle), float(high))
    by = models.serving if models.serving in raw else "history"
    corrected = {name: models.calibrators[name].correct(one) for name, one in raw.items()}
    return RunTimeEstimate(work, row, estimate, raw, corrected, by)
