"""What changes would have done to the last days: the ledger's jobs lived with and without them.

The first pair of lives is the ledger as it was; further pairs move arrivals a little, so that chance is seen
beside the effect. Both sides run on today's nodes and quotas, so that nothing but the changes differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.engine import model as m
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.past import LedgerPast
from scheduling.services.studies.whatif.changes import QuestionChanges
from scheduling.simulation.ahead.compare import WindowOutcome, alone, later_than_alone, lived
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import UnsettledError

REPLAYS = 10
"""Pairs with other dice, beside the ledger itself."""
MIDDLE = (5, 95)
"""Percentiles of the replays that a band is drawn between."""

Progress = Callable[[int], None]
"""Is told the percent that is done; raises CancelledError when nobody wants the rest."""


class CancelledError(Exception):
    """The person who asked does not want to know any more."""


@dataclass(frozen=True, slots=True)
class Side:
    """One figure in each pair of lives: without the changes, and with them. Value and band are of the same
    lives, so that no value lies outside of its own band."""

    befores: tuple[float, ...]
    afters: tuple[float, ...]

    @property
    def before(self) -> float:
        return float(np.median(self.befores))

    @property
    def after(self) -> float:
        return float(np.median(self.afters))

    @property
    def band(self) -> tuple[float, float]:
        """Middle of the lives with the change."""
        low, high = np.percentile(self.afters, MIDDLE)
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        """ "shorter" or "longer" where the pairs agree, else "noise"; empty of one pair."""
        if len(self.afters) < 2:
            return ""
        moved = np.subtract(self.afters, self.befores)
        low, high = np.percentile(moved, MIDDLE)
        if high < 0 and self.after < self.before:
            return "shorter"
        return "longer" if low > 0 and self.after > self.before else "noise"

    def document(self) -> dict[str, object]:
        low, high = self.band
        values = {"before": self.before, "after": self.after, "low": low, "high": high}
        rounded = {name: round(value, 3) for name, value in values.items()}
        return rounded | {"verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class QueueWaits:
    """Of the jobs that a queue submitted in the window (the whole cluster: no name)."""

    queue: str
    jobs: int
    p50_s: Side
    p90_s: Side


@dataclass(frozen=True, slots=True)
class ReplayResult:
    waits: tuple[QueueWaits, ...]
    figures: Mapping[str, Side]
    jobs: int
    replays: int


def replayed(
    template: m.Snapshot,
    past: LedgerPast,
    changes: QuestionChanges,
    *,
    replays: int = REPLAYS,
    with_own: bool = True,
    progress: Progress = lambda percent: None,
) -> ReplayResult:
    """``with_own`` lives the ledger on each queue's own quota too, and counts who ends later than there.
    Raises ServiceError; whatever ``progress`` raises."""
    before = replace(template, now=past.begin, workloads=())
    after = replace(changes.applied(template), now=past.begin, workloads=())
    lives, done = 2 * (replays + 1 + with_own), 0

    def pair(worlds: Sequence[m.Snapshot], seed: int | None) -> tuple[WindowOutcome, WindowOutcome]:
        nonlocal done
        sides = []
        for half, world in enumerate(worlds):
            progress(100 * done // lives)
            jobs, begun = _with_arrivals(past, changes, world, half)
            sides.append(life(world, jobs, begun, past, seed))
            done += 1
        return sides[0], sides[1]

    pairs = [pair((before, after), number or None) for number in range(replays + 1)]
    own = pair((alone(before), alone(after)), None) if with_own else None
    return _summed(pairs, own)


def life(
    world: m.Snapshot, jobs: Sequence[Submission], begun: int, past: LedgerPast, seed: int | None
) -> WindowOutcome:
    """``jobs`` lived on ``world``, a snapshot of the past's begin without work; ``begun`` of them are not
    counted. Raises ServiceError."""
    try:
        return lived(world, jobs, before=begun, until=past.end, seed=seed)
    except (UnsettledError, m.SnapshotError) as error:
        raise ServiceError(
            "cannot_replay",
            "With these changes the engine finds no rest in the past.",
            "Ask for fewer changes at once, and tell whoever operates Weir.",
        ) from error


def _with_arrivals(
    past: LedgerPast, changes: QuestionChanges, world: m.Snapshot, half: int
) -> tuple[Sequence[Submission], int]:
    """The jobs, and how many of them are not counted: arrivals of the question come in the window's first
    second."""
    if not half:
        return past.submissions, past.before
    extra = tuple(
        Submission(replace(one.workload(world, number), submitted=past.begin), one.run_s)
        for number, one in changes.arrivals
    )
    jobs = (*past.submissions[: past.before], *extra, *past.submissions[past.before :])
    return jobs, past.before + len(extra)


def _summed(
    pairs: Sequence[tuple[WindowOutcome, WindowOutcome]],
    own: tuple[WindowOutcome, WindowOutcome] | None,
) -> ReplayResult:
    """``own`` are the lives on each queue's quota alone, before and after."""
    first, _ = pairs[0]
    names = sorted(set(first.queue))
    waits = [_of_queue(name, pairs) for name in names]
    figures = {
        "evictions": _side(pairs, lambda one: float(one.evictions)),
        "lost_gpu_hours": _side(pairs, lambda one: one.lost_gpu_s / 3600),
        "used_gpu_hours": _side(pairs, lambda one: one.held_gpu_s / 3600),
        "started": _side(pairs, lambda one: float(one.started.sum())),
    }
    if own is not None:
        before, after = _later(pairs[0], own)
        figures["later_than_alone"] = Side((before,), (after,))
    return ReplayResult(
        waits=(*waits, _of_queue("", pairs)),
        figures=figures,
        jobs=len(first.queue),
        replays=len(pairs) - 1,
    )


def _later(
    shared: tuple[WindowOutcome, WindowOutcome], own: tuple[WindowOutcome, WindowOutcome]
) -> tuple[float, float]:
    before, after = map(later_than_alone, shared, own)
    return float(before), float(after)


def _of_queue(name: str, pairs: Sequence[tuple[WindowOutcome, WindowOutcome]]) -> QueueWaits:
    counts = [one for one in pairs[0][0].queue if not name or one == name]
    return QueueWaits(
        queue=name,
        jobs=len(counts),
        p50_s=_side(pairs, lambda one: one.waits(_places(one, name))[0]),
        p90_s=_side(pairs, lambda one: one.waits(_places(one, name))[1]),
    )


def _places(one: WindowOutcome, name: str) -> np.ndarray:
    """Of the queue's jobs."""
    of = np.array([not name or queue == name for queue in one.queue], np.bool_)
    return np.flatnonzero(of)


def _side(
    pairs: Iterable[tuple[WindowOutcome, WindowOutcome]], figure: Callable[[WindowOutcome], float]
) -> Side:
    values = [(figure(before), figure(after)) for before, after in pairs]
    befores, afters = zip(*values, strict=True)
    return Side(befores, afters)
