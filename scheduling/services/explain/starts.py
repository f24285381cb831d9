"""When work would start that nobody has submitted yet, or that waits and would be changed.

The engine lives the same futures that forecasts are made of, fewer of them: somebody waits for the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, repeat

import numpy as np

from scheduling.cluster.adapters import Observed
from scheduling.engine import model as m
from scheduling.models import MILLI, Cluster, Workload
from scheduling.services.explain.asking import Case, change_in, draft_in, name_in_plan
from scheduling.services.explain.reading import planned, reading_of
from scheduling.services.starts.futures import Lives
from scheduling.services.starts.known import Known, known_of
from scheduling.services.starts.outcomes import correction_of
from scheduling.services.starts.refresh import KNOWN_RUNS, TOO_YOUNG, rounded, too_vague
from scheduling.simulation.ahead.bands import bands
from scheduling.simulation.ahead.correction import Correction, ForecastKind

FUTURES, LEAST = 10, 4
"""A band is made of all of them, or of the least where there is no time for more."""
NOT_IN_ALL = "In at least one of the futures it does not start within a week, so no time is named."
NO_TIME = "There was no time to live enough of its futures."
LATE = -1


@dataclass(frozen=True, slots=True)
class LikelyStart:
    """P50 and P90 of a start; None where no time is worth telling, and ``why_not`` says why."""

    p50: datetime | None = None
    p90: datetime | None = None
    why_not: str = ""

    @property
    def band(self) -> tuple[datetime, datetime] | None:
        return (self.p50, self.p90) if self.p50 and self.p90 else None


NO_WORD = LikelyStart()


def of_draft(
    cluster: Cluster, draft: Observed, gpu_classes: Sequence[str], goes_on: Callable[[], bool]
) -> dict[str, LikelyStart]:
    """Of ``draft`` as if it were submitted now, on each of ``gpu_classes`` alone (empty: on all that it
    accepts); no further future is lived once it ``goes_on`` no more.

    Raises ServiceError as ``asking.ask`` does.
    """
    with reading_of(cluster) as reading:
        cases = {name: draft_in(reading, draft, name) for name in gpu_classes}
    return _starts(cluster, cases, goes_on)


def of_change(
    work: Workload, changed: Observed, goes_on: Callable[[], bool], *, held: bool
) -> dict[str, LikelyStart]:
    """``before`` and ``after``, of a workload that waits. Raises ServiceError as ``asking.compare`` does."""
    name = name_in_plan(work)
    with reading_of(work.cluster, showing=name) as reading:
        before, after = change_in(reading, name, changed, held=held)
    return _starts(work.cluster, {"before": before, "after": after}, goes_on)


def _starts(
    cluster: Cluster, cases: Mapping[str, Case], goes_on: Callable[[], bool]
) -> dict[str, LikelyStart]:
    now = next(iter(cases.values())).snapshot.now
    known = known_of(cluster, now)
    if known.ended < KNOWN_RUNS:
        return dict.fromkeys(cases, LikelyStart(why_not=TOO_YOUNG))
    futures = {
        key: planned(partial(_Futures, case, known), case.snapshot) for key, case in cases.items()
    }
    # One future of each in turn, so that all rest on as many where the time ends.
    for one in chain.from_iterable(repeat(tuple(futures.values()), FUTURES)):
        if not one.is_late and goes_on():
            one.live()
    correction = correction_of(cluster, now)
    return {key: one.likely_start(correction, known.ended) for key, one in futures.items()}


class _Futures:
    """Those of one case; once the work does not start in one of them, no further one has to be lived."""

    def __init__(self, case: Case, known: Known, snapshot: m.Snapshot) -> None:
        self._lives = Lives(snapshot, known, futures=FUTURES)
        self._work, self._now = case.work, snapshot.now
        self._at = self._lives.opening.names.index(case.work.name)
        self._starts: list[int] = []

    @property
    def is_late(self) -> bool:
        """Whether it did not start within a week. P90 of ten futures is the latest of them."""
        return LATE in self._starts

    def live(self) -> None:
        starts = self._lives.live(np.array([self._at]))
        self._starts.append(int(starts[self._at]))

    def likely_start(self, correction: Correction, known_runs: int) -> LikelyStart:
        if self.is_late:
            return LikelyStart(why_not=NOT_IN_ALL)
        if len(self._starts) < LEAST:
            return LikelyStart(why_not=NO_TIME)
        [raw] = bands(np.array(self._starts)[:, None])
        gpus = self._work.gpus * self._work.members.min / MILLI
        band = correction.correct(raw, ForecastKind.of(gpus, first=True))
        if why_not := too_vague(band, known_runs):
            return LikelyStart(why_not=why_not)
        return LikelyStart(rounded(self._now, band.p50_s), rounded(self._now, band.p90_s))
