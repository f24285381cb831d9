"""Expected work to an end: the Gittins index over the last run times of a class.

A class is a queue and a number of GPUs. Where fewer than ``FEWEST`` run times of it are known the queue
stands in, else everything, else an hour. Only runs that are over count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Floats, Ints, as_struct, declare

KEPT, FEWEST = 64, 3
UNKNOWN_S = 3600.0
LONGER_S = 60.0
"""A run longer than all that are known is expected to take as long again, and so much."""


@declare
class RunTimes(NamedTuple):
    """The last ``KEPT`` run times by row: of a class, of a queue, of all."""

    recent: Floats  # [row, k] in order of their ends, a ring
    ordered: Floats  # [row, k] ascending
    ended: Ints  # [row] how many have
    fresh: Floats  # [row] index of what has not run yet, -1 unknown


def empty_run_times(rows: int) -> RunTimes:
    return RunTimes(
        np.zeros((rows, KEPT)),
        np.zeros((rows, KEPT)),
        np.zeros(rows, np.int64),
        np.full(rows, -1.0),
    )


def struct_of(times: RunTimes) -> Any:
    """What the kernels below take, over the same memory."""
    return as_struct(times)


@inner
def note_run_time(times: Any, row: int, run_s: float) -> None:
    """A run of ``row`` is over; the oldest of ``KEPT`` is forgotten."""
    known = min(times.ended[row], KEPT)
    at = times.ended[row] % KEPT
    if known == KEPT:
        _forget(times, row, times.recent[row, at])
        known -= 1
    k = known
    while k > 0 and times.ordered[row, k - 1] > run_s:
        times.ordered[row, k] = times.ordered[row, k - 1]
        k -= 1
    times.ordered[row, k], times.recent[row, at] = run_s, run_s
    times.ended[row] += 1
    times.fresh[row] = -1.0


@inner
def _forget(times: Any, row: int, run_s: float) -> None:
    k = 0
    while times.ordered[row, k] != run_s:
        k += 1
    while k < KEPT - 1:
        times.ordered[row, k] = times.ordered[row, k + 1]
        k += 1


@inner
def known_row(times: Any, own: int, queue: int, every: int) -> int:
    """The narrowest of the rows that knows enough."""
    if times.ended[own] >= FEWEST:
        return own
    return queue if times.ended[queue] >= FEWEST else every


@inner
def index_at(times: Any, row: int, age_s: float) -> float:
    """Least expected seconds of work per end, over all times to stop at, for a run of ``age_s`` so far."""
    known = min(times.ended[row], KEPT)
    if known < FEWEST:
        return UNKNOWN_S
    if age_s > 0.0:
        return _index(times, row, known, age_s)
    if times.fresh[row] < 0.0:
        times.fresh[row] = _index(times, row, known, 0.0)
    return times.fresh[row]


@inner
def _index(times: Any, row: int, known: int, age_s: float) -> float:
    """Of the remaining times, ascending: to stop at the m-th costs their sum + those left x the m-th."""
    first = 0
    while first < known and times.ordered[row, first] <= age_s:
        first += 1
    if first == known:
        return age_s + LONGER_S
    best, total = np.inf, 0.0
    for k in range(first, known):
        rest = times.ordered[row, k] - age_s
        total += rest
        best = min(best, (total + (known - 1 - k) * rest) / (k - first + 1))
    return best


@kernel
def note_run_times(times: Any, rows: Ints, runs_s: Floats) -> None:
    """Runs that are over, in order of their ends."""
    for i in range(rows.size):
        note_run_time(times, rows[i], runs_s[i])


@kernel
def indices(times: Any, rows: Ints, ages_s: Floats, found: Floats) -> None:
    """``found`` [i]: the index of a run of ``ages_s[i]``; ``rows`` [i]: own class, queue, all."""
    for i in range(ages_s.size):
        found[i] = index_at(times, known_row(times, rows[i, 0], rows[i, 1], rows[i, 2]), ages_s[i])
