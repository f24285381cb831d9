"""What replays say of another value: the average wait, and four figures that must not pay for it.

Lives are paired, seed by seed (``simulation.replications``). Chance is that of arrivals and run times, drawn
near what came (``simulation.ahead.period``); the interval is Student's at 95 % for all figures and values of
one judgement together. A change of demand or failures of nodes are in no interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scheduling.models import Result, Study, StudyState, Variant
from scheduling.models.studies import OPEN
from scheduling.services.studies.adapting.parameters import Value
from scheduling.simulation.replications import LEAST, Verdict, compare

Json = dict[str, Any]
WAIT = "avg_wait_s"
KEPT = {
    "unfair_pct": "unfair jobs",
    "worst_queue_s": "longest average wait of a queue",
    "evictions": "evictions",
    "lost_gpu_hours": "lost work",
}
"""What must not be worse beyond noise, and how it reads."""
FIGURES = (WAIT, *KEPT)


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of another value: ``base`` of the value beside it; the difference, with half its interval."""

    base: float
    mean: float
    half: float
    verdict: str


@dataclass(frozen=True, slots=True)
class ValueVerdict:
    """``value`` against the one that the lives of the base had."""

    value: Value
    figures: Mapping[str, FigureChange]

    @property
    def is_better(self) -> bool:
        """Waits are, beyond noise, and nothing is worse beyond noise."""
        return self.figures[WAIT].verdict == Verdict.BETTER and not self.is_worse

    @property
    def is_worse(self) -> bool:
        return any(one.verdict == Verdict.WORSE for one in self.figures.values())

    @property
    def worse(self) -> list[str]:
        return [key for key, one in self.figures.items() if one.verdict == Verdict.WORSE]

    def document(self) -> Json:
        figures = {
            key: {name: v if isinstance(v, str) else round(v, 4) for name, v in asdict(one).items()}
            for key, one in self.figures.items()
        }
        return {"value": self.value, "figures": figures}


def judged_of(document: Mapping[str, Any]) -> ValueVerdict:
    return ValueVerdict(
        document["value"], {key: FigureChange(**one) for key, one in document["figures"].items()}
    )


@dataclass(frozen=True, slots=True)
class FinishedLives:
    """Replays that nobody lives any more; ``fault`` says why they tell nothing."""

    lives: int
    judged: tuple[ValueVerdict, ...]
    fault: str = ""


def ended(study: Study | None, *, base: str, values: Mapping[str, Value]) -> FinishedLives | None:
    """What ``values`` (by letter) are against ``base``; None while it is lived still."""
    if study is None:
        return FinishedLives(0, (), "its replays were dropped")
    variants = list(study.variants.all())
    if any(one.state in OPEN for one in variants):
        return None
    lives = {one.letter: _lives(one) for one in variants}
    if any(one.state != StudyState.DONE for one in variants):
        fault = next((one.fault for one in variants if one.fault), "its replays were cancelled")
        return FinishedLives(0, (), fault.rstrip(".").lower())
    seeds = sorted(set.intersection(*(set(found) for found in lives.values())))
    if len(seeds) < LEAST:
        return FinishedLives(len(seeds), (), f"under {LEAST} replays tell nothing")
    comparisons = len(values) * len(FIGURES)
    found = tuple(
        _judged(value, [lives[base][s] for s in seeds], [lives[letter][s] for s in seeds], comparisons)
        for letter, value in values.items()
    )  # fmt: skip
    return FinishedLives(len(seeds), found)


def _lives(variant: Variant) -> dict[int, Json]:
    """By seed: the figures of a life."""
    done = Result.objects.filter(variant=variant).exclude(done_at=None)
    return {one.seed: _figures(one) for one in done}


def _figures(one: Result) -> Json:
    waits = [row["avg_wait_s"] for row in one.queues.values() if row.get("jobs")]
    return {**one.figures, "worst_queue_s": max(waits, default=0.0)}


def _judged(
    value: Value, before: Sequence[Json], after: Sequence[Json], comparisons: int
) -> ValueVerdict:
    changes = {}
    for key in FIGURES:
        base, other = [one[key] for one in before], [one[key] for one in after]
        found = compare(base, other, comparisons)
        mean = sum(base) / len(base)
        changes[key] = FigureChange(mean, found.mean, found.half or 0.0, str(found.verdict))
    return ValueVerdict(value, changes)
