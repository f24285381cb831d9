"""Predictors of one line, to hold the model against."""

from __future__ import annotations

import bisect
import statistics
from collections import defaultdict, deque
from dataclasses import dataclass, field

from .quantiles import log2_s
from .runs import Run, Work


@dataclass(slots=True)
class Baselines:
    """One-line predictors that see what the learner sees; nobody knows a run time before one has ended."""

    all: list[float] = field(default_factory=list)
    last: dict[str, deque[float]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=2))
    )
    errors: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def judge(self, work: Work, ran_s: float) -> None:
        median = self.all[len(self.all) // 2] if self.all else 1.0
        last = self.last.get(work.user)
        said = {
            "global_median": median,
            "user_last_two": statistics.fmean(last) if last else median,
            "requested_time": work.limit_s or median,
        }
        for name, seconds in said.items():
            self.errors[name].append(abs(log2_s(seconds) - log2_s(ran_s)))

    def learn(self, run: Run) -> None:
        bisect.insort(self.all, run.ran_s)
        self.last[run.work.user].append(run.ran_s)

    def figures(self) -> dict[str, float]:
        return {name: round(statistics.median(errors), 4) for name, errors in self.errors.items()}
