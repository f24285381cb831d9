"""When work would start that nobody has submitted yet, or that waits and would be changed.

The engine lives the same futures that forecasts are made of, fewer of them: somebody waits for the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat

import numpy as np

from scheduling.cluster.adapters import Sighting
from scheduling.engine import model as m
from scheduling.models import MILLI, Cluster, StartForecast, Workload
from scheduling.services.explain.asking import Case, change_in, draft_in, name_in_plan
from scheduling.services.explain.reading import planned, reading_of
from scheduling.services.starts.futures import Lives
from scheduling.services.starts.history import StartHistory, known_of
from scheduling.services.starts.outcomes import correction_of
from scheduling.services.starts.refresh import KNOWN_RUNS, TOO_YOUNG, rounded, too_vague
from scheduling.simulation.ahead.bands import bands
from scheduling.simulation.ahead.correction import Correction, ForecastKind
from scheduling.simulation.run.options import UnsettledError

FUTURES, LEAST = 10, 4
"""A band is made of all of them, or of the least where there is no time for more."""
NOT_IN_ALL = "In at least one of the futures it does not start within a week, so no time is named."
NO_TIME = "Its start takes long to work out, so no time is named."
NO_REST = "The engine finds no rest in one of its futures, so no time is named."
LATE = -1


def of_draft(
    cluster: Cluster, draft: Sighting, gpu_classes: Sequence[str], goes_on: Callable[[], bool]
) -> dict[str, StartForecast]:
    """Of ``draft`` as if it were submitted now, on each of ``gpu_classes`` alone (empty: on all that it
    accepts); no further future is lived once it ``goes_on`` no more. The forecasts are of no workload's row.

    Raises ServiceError as ``asking.ask`` does.
    """
    with reading_of(cluster) as reading:
        cases = {name: draft_in(reading, draft, name) for name in gpu_classes}
    return _starts(cluster, cases, goes_on)


def of_change(
    work: Workload, changed: Sighting, goes_on: Callable[[], bool], *, on_hold: bool
) -> dict[str, StartForecast]:
    """``before`` and ``after``, of a workload that waits. Raises ServiceError as ``asking.compare`` does."""
    name = name_in_plan(work)
    with reading_of(work.cluster, showing=name) as reading:
        before, after = change_in(reading, name, changed, on_hold=on_hold)
    return _starts(work.cluster, {"before": before, "after": after}, goes_on)


def _starts(
    cluster: Cluster, cases: Mapping[str, Case], goes_on: Callable[[], bool]
) -> dict[str, StartForecast]:
    now = next(iter(cases.values())).snapshot.now
    known = known_of(cluster, now)
    if known.ended < KNOWN_RUNS:
        return {key: StartForecast(at=now, why_not=TOO_YOUNG) for key in cases}
    futures = {
        key: planned(partial(_Futures, case, known), case.snapshot) for key, case in cases.items()
    }
    # One future of each in turn, so that all rest on as many where the time ends.
    for one in chain.from_iterable(repeat(tuple(futures.values()), FUTURES)):
        if not one.why_not and goes_on():
            one.live()
    correction = correction_of(cluster, now)
    return {key: one.forecast(correction, known.ended) for key, one in futures.items()}


class _Futures:
    """Those of one case; once the work does not start in one of them, no further one has to be lived."""

    def __init__(self, case: Case, known: StartHistory, snapshot: m.Snapshot) -> None:
        self._lives = Lives(snapshot, known, futures=FUTURES)
        self._work, self._now = case.work, snapshot.now
        self._at = self._lives.opening.names.index(case.work.name)
        self._starts: list[int] = []
        self._is_restless = False

    @property
    def why_not(self) -> str:
        """Why no further future can name a time. P90 of ten is the latest of them."""
        return NO_REST if self._is_restless else NOT_IN_ALL if LATE in self._starts else ""

    def live(self) -> None:
        try:
            starts = self._lives.live(np.array([self._at]))
        except UnsettledError:
            self._is_restless = True
        else:
            self._starts.append(int(starts[self._at]))

    def forecast(self, correction: Correction, known_runs: int) -> StartForecast:
        if why_not := self.why_not or (NO_TIME if len(self._starts) < LEAST else ""):
            return StartForecast(at=self._now, why_not=why_not)
        [raw] = bands(np.array(self._starts)[:, None])
        gpus = self._work.gpus * self._work.members.min / MILLI
        band = correction.correct(raw, ForecastKind.of(gpus, first=True))
        if why_not := too_vague(band, raw, known_runs):
            return StartForecast(at=self._now, why_not=why_not)
        p50_at, p90_at = (rounded(self._now, ahead_s) for ahead_s in (band.p50_s, band.p90_s))
        return StartForecast(at=self._now, p50_at=p50_at, p90_at=p90_at)
