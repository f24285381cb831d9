"""Shortest predicted service first: expected GPU-seconds from what ended before, the whole queue walked.

A class is a queue and a number of GPUs; its expectation is that of its last 64 run times (of its queue's, of
everybody's while it has fewer than three). All who wait in a class are expected to take the same, so each
class is a line by arrival, and the lines go by what is expected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.merit.gittins import FEWEST, KEPT, UNKNOWN_S
from scheduling.simulation.traces import Trace
from workshop.simulator.replay import check_size
from workshop.simulator.result import Replay

from .costs import Costs
from .history import Past, known_of, learn, new_past
from .queues import NEVER, Floor, floor_of
from .running import Work, arrive, end, new_work, next_arrival, next_end, replayed, seat, stop


class Rows(NamedTuple):
    """The line of each class, side by side in ``jobs``: who waits stands from its ``head`` to its
    ``tail``."""

    jobs: Ints
    head: Ints
    tail: Ints


def replay_predicted(trace: Trace, nodes: int, costs: Costs) -> Replay:
    """All jobs on ``nodes`` nodes, nobody evicted. Raises TooLargeError."""
    check_size(trace, nodes)
    work, past = new_work(trace, costs), new_past(trace)
    live(work, floor_of(trace, nodes), past, rows_of(past))
    return replayed(trace, nodes, work)


def rows_of(past: Past) -> Rows:
    """Nobody waits."""
    counts = np.bincount(past.own, minlength=past.rows)
    begin = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    return Rows(np.empty(len(past.own), dtype=np.int64), begin, begin.copy())


@kernel
def live(work: Work, floor: Floor, past: Past, rows: Rows) -> None:
    """The event loop."""
    expected = np.empty(len(rows.head), dtype=np.float64)
    now = min(next_arrival(work), next_end(work))
    while now != NEVER:
        job = end(now, work)
        while job >= 0:
            stop(job, now, work, floor)
            learn(job, work, past)
            job = end(now, work)
        job = arrive(now, work)
        while job >= 0:
            row = past.own[job]
            rows.jobs[rows.tail[row]] = job
            rows.tail[row] += 1
            job = arrive(now, work)
        expect(expected, work, past, rows)
        while start_next(now, expected, work, floor, rows):
            pass
        now = min(next_arrival(work), next_end(work))


@inner
def expect(expected: Floats, work: Work, past: Past, rows: Rows) -> None:
    """GPU-seconds that the head of each line is expected to take; infinite of an empty line."""
    for row in range(len(expected)):
        expected[row] = np.inf
        if rows.head[row] < rows.tail[row]:
            job = rows.jobs[rows.head[row]]
            expected[row] = expected_s(past.times, known_of(job, past)) * work.gpus[job]


@inner
def expected_s(times: Any, row: int) -> float:
    """The median of the run times that are known of ``row``."""
    known = min(times.ended[row], KEPT)
    return np.median(times.ordered[row, :known]) if known >= FEWEST else UNKNOWN_S


@inner
def start_next(now: int, expected: Floats, work: Work, floor: Floor, rows: Rows) -> bool:
    """The next who fits leaves its line; a line whose head does not fit is passed over from then on. Whether
    anybody is left to try."""
    row = np.argmin(expected)
    if expected[row] == np.inf:
        return False
    if not seat(rows.jobs[rows.head[row]], now, work, floor):
        expected[row] = np.inf
        return True
    rows.head[row] += 1
    if rows.head[row] == rows.tail[row]:
        expected[row] = np.inf
    return True
