"""Many futures of one snapshot: when each of whoever waits starts, and when each of whoever runs ends.

The shipped engine lives each of them in the simulator; what differs are the drawn run times and arrivals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from scheduling.engine.model import Phase, Snapshot
from scheduling.services.ledger.past import kinds_of, kinds_of_row
from scheduling.services.starts.accuracy import AHEAD_S
from scheduling.services.starts.history import StartHistory, stage
from scheduling.simulation.ahead.bands import Band, bands
from scheduling.simulation.ahead.forward import live_on
from scheduling.simulation.ahead.opening import Newcomers, Opening, open_snapshot, picked
from scheduling.simulation.ahead.runs import Question

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_FUTURES, LEAST_FUTURES = 60, 12
MOST_LIVED = 30_000
"""Work of one pass: workloads lived through, open ones and arrivals, summed over futures. Past it only the
fewest futures are completed."""
FOLLOWS_S = 60
"""A start so soon after an end came of it: evicted pods take their time to go."""


def may_go_on(lived: Sequence[int], most: int) -> bool:
    """Whether the budget of work allows another future, after these."""
    if len(lived) >= most:
        return False
    return len(lived) < LEAST_FUTURES or sum(lived) + max(lived) <= MOST_LIVED


@dataclass(frozen=True, slots=True)
class Ahead:
    """``starts`` [future, workload], seconds from now, -1 where it did not start; in order of ``names``."""

    futures: int
    waiting: tuple[str, ...]
    starts: Ints
    running: tuple[str, ...]
    ends: Floats
    runs: Floats
    """Median run time of each that waits."""
    after: Mapping[str, str]
    """Waiting workload -> the one whose end it most often starts with."""

    def bands(self) -> dict[str, Band]:
        if not self.waiting:
            return {}
        return dict(zip(self.waiting, bands(self.starts), strict=True))

    def end_bands(self) -> dict[str, Band]:
        if not self.running:
            return {}
        p50, p90 = np.quantile(self.ends, [0.5, 0.9], axis=0)
        found = (Band(float(a), float(b)) for a, b in zip(p50, p90, strict=True))
        return dict(zip(self.running, found, strict=True))


class Lives:
    """Futures of one snapshot, lived one after the other; the same ``seed`` and moment draw the same.

    Raises SnapshotError; UnsettledError where a life does not settle.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        known: StartHistory,
        *,
        futures: int,
        ahead_s: int = AHEAD_S,
        seed: int = 0,
        checkpoints: Mapping[str, int] | None = None,
    ) -> None:
        self.opening = opening = open_snapshot(snapshot, checkpoints)
        self._dice = np.random.default_rng([seed, int(snapshot.now.timestamp())])
        self._coming = _ArrivalDraw(known, snapshot, opening, ahead_s)
        self.rests = known.runs.rests(_questions(snapshot, opening, known), futures, self._dice)
        """[future, open work]: seconds that each runs, or has left to run."""
        self._ahead_s, self.lived = ahead_s, list[int]()
        """Workloads that each future was lived for."""

    def live(self, awaited: Ints) -> Ints:
        """The starts of all open work in one more future, which ends once the ``awaited`` have started."""
        rest_s = self.rests[len(self.lived)].astype(np.int64)
        coming = self._coming.draw(self._dice)
        future = live_on(self.opening, rest_s, coming, stop_s=self._ahead_s, awaited=awaited)
        self.lived.append(future.lived)
        return future.starts


def look_ahead(
    snapshot: Snapshot,
    known: StartHistory,
    *,
    futures: int = MOST_FUTURES,
    ahead_s: int = AHEAD_S,
    seed: int = 0,
    checkpoints: Mapping[str, int] | None = None,
) -> Ahead:
    """At most so many ``futures`` of ``ahead_s`` seconds. Raises SnapshotError; UnsettledError."""
    lives = Lives(
        snapshot, known, futures=futures, ahead_s=ahead_s, seed=seed, checkpoints=checkpoints
    )
    opening = lives.opening
    waits, runs = np.flatnonzero(opening.waits), np.flatnonzero(opening.runs)
    # Work on hold starts in no future, so no future is lived to its end for it.
    awaited = np.flatnonzero(opening.waits & ~opening.frame.work.on_hold[opening.slots])
    starts, after = np.empty((futures, waits.size), np.int64), [Counter[int]() for _ in waits]
    while may_go_on(lives.lived, futures):
        at = len(lives.lived)
        starts[at] = lives.live(awaited)[waits]
        _follow(after, starts[at], lives.rests[at, runs].astype(np.int64))
    count = len(lives.lived)
    starts, rests = starts[:count], lives.rests[:count]
    names = opening.names
    return Ahead(
        futures=count,
        waiting=tuple(names[i] for i in waits),
        starts=starts,
        running=tuple(names[i] for i in runs),
        ends=rests[:, runs],
        runs=np.median(rests[:, waits], axis=0) if waits.size else np.zeros(0),
        after={
            names[waits[i]]: names[runs[seen.most_common(1)[0][0]]]
            for i, seen in enumerate(after)
            if seen and seen.most_common(1)[0][1] * 3 >= count
        },
    )


def _follow(after: list[Counter[int]], starts: Ints, ends: Ints) -> None:
    """Count with whose end each start came."""
    order = np.argsort(ends, kind="stable")
    sorted_ends = ends[order]
    for i, start in enumerate(starts.tolist()):
        at = int(np.searchsorted(sorted_ends, start, side="right")) - 1
        if start > 0 and at >= 0 and start - sorted_ends[at] <= FOLLOWS_S:
            after[i][int(order[at])] += 1


def _questions(snapshot: Snapshot, opening: Opening, known: StartHistory) -> list[Question]:
    work = {w.name: w for w in snapshot.workloads}
    now, found = snapshot.now, []
    for name in opening.names:
        one = work[name]
        if name in known.rests:
            since = one.started if one.phase is Phase.RUNNING else None
            found.append(Question((), rest_s=known.rests[name].left_s(since, now)))
            continue
        ran = one.phase is Phase.RUNNING and one.started is not None
        age_s = (now - one.started).total_seconds() if ran and one.started else 0.0
        prediction = one.predicted
        gpus = one.gpus * one.members.min
        kinds = kinds_of(user=one.user, name=name, queue=one.queue, gpus=gpus)
        p50_s, p90_s = (prediction.p50, prediction.p90) if prediction else (None, None)
        found.append(Question(kinds, max(0.0, age_s), p50_s, p90_s))
    return found


class _ArrivalDraw:
    """Draws who arrives: the past again, at other times, as work of this frame."""

    def __init__(
        self, known: StartHistory, snapshot: Snapshot, opening: Opening, ahead_s: int
    ) -> None:
        self._known, self._ahead_s = known, ahead_s
        self._all = stage(known, snapshot, opening.frame)
        self._now_s = float(opening.frame.now)
        self._tie = 1 + int(opening.frame.work.tie.max(initial=0)) + len(known.arrivals)
        self._kinds = [kinds_of_row(one.row) for one in known.arrivals]

    def draw(self, dice: Generator) -> Newcomers:
        which, submit = self._known.rhythm.draw(self._ahead_s, dice)
        cast = picked(self._all.cast, which)
        cast.submitted[:] = self._now_s + submit
        cast.tie[:] = self._tie + np.arange(submit.size)
        return replace(
            self._all,
            cast=cast,
            submit=submit,
            duration=self._durations(which, dice),
            checkpoint=self._all.checkpoint[which],
            restart=self._all.restart[which],
        )

    def _durations(self, which: Ints, dice: Generator) -> Ints:
        """Each as long as it ran; what has not ended yet as long as its like."""
        arrivals = self._known.arrivals
        run_s = np.array([arrivals[i].run_s or np.nan for i in which.tolist()])
        unknown = np.flatnonzero(np.isnan(run_s))
        if unknown.size:
            questions = [Question(self._kinds[int(which[i])]) for i in unknown]
            run_s[unknown] = self._known.runs.rests(questions, 1, dice)[0]
        return np.maximum(1, run_s).astype(np.int64)
