"""Shortest predicted service first: expected GPU-seconds from what ended before, the whole queue walked.

A class is a queue and a number of GPUs; its expectation is that of its last 64 run times (of its queue's, of
everybody's while it has fewer than three). All who wait in a class are expected to take the same, so each
class is a line by arrival, and the lines go by what is expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.merit.gittins import (
    FEWEST,
    KEPT,
    UNKNOWN_S,
    empty_run_times,
    known_row,
    note_run_time,
    struct_of,
)
from scheduling.simulation.result import Replay
from scheduling.simulation.traces import Trace

from .costs import Costs
from .history import Classes, classes_of
from .packing import place, release
from .queues import NEVER, Floor, check_size, finished, floor_of


def replay_predicted(trace: Trace, nodes: int, _costs: Costs) -> Replay:
    """All jobs on ``nodes`` nodes, nobody evicted. Raises TooLargeError."""
    check_size(trace, nodes)
    classes = classes_of(trace)
    times = struct_of(empty_run_times(classes.rows))
    start_s = live(
        trace.submit_s,
        trace.duration_s,
        trace.gpus,
        floor_of(trace, nodes),
        classes,
        times,
        members_of(classes),
    )
    return finished(trace, start_s, nodes)


def members_of(classes: Classes) -> Ints:
    """Where each class's line begins, in a table of all jobs by class."""
    counts = np.bincount(classes.own, minlength=classes.rows)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@kernel
def live(
    submit_s: Ints,
    duration_s: Ints,
    gpus: Ints,
    floor: Floor,
    classes: Classes,
    times: Any,
    begin: Ints,
) -> Ints:
    """The event loop; returns each job's start second."""
    jobs, lines = len(submit_s), len(begin) - 1
    start_s = np.full(jobs, NEVER, dtype=np.int64)
    ends, running, next_job = np.empty(jobs, dtype=np.int64), 0, 0
    line, head, tail = np.empty(jobs, dtype=np.int64), begin[:-1].copy(), begin[:-1].copy()
    expected = np.empty(lines, dtype=np.float64)
    while next_job < jobs or running:
        now = submit_s[next_job] if next_job < jobs else NEVER
        if running:
            now = min(now, ends[0] // jobs)
        while running and ends[0] // jobs == now:
            job = ends[0] % jobs
            running = pop(ends, 0, running)
            release(floor.free, floor.nodes[job], floor.held[job], floor.used[job])
            for row in (classes.own[job], classes.queue[job], classes.rows - 1):
                note_run_time(times, row, float(duration_s[job]))
        while next_job < jobs and submit_s[next_job] == now:
            row = classes.own[next_job]
            line[tail[row]] = next_job
            tail[row], next_job = tail[row] + 1, next_job + 1
        for row in range(lines):
            expected[row] = np.inf
            if head[row] < tail[row]:
                job = line[head[row]]
                known = known_row(times, row, classes.queue[job], classes.rows - 1)
                expected[row] = expected_s(times, known) * gpus[job]
        while True:
            job = seat_next(expected, line, head, tail, gpus, floor)
            if job < 0:
                break
            start_s[job] = now
            running = push(ends, 0, running, (now + duration_s[job]) * jobs + job)
    return start_s


@inner
def expected_s(times: Any, row: int) -> float:
    """The median of the run times that are known of ``row``."""
    known = min(times.ended[row], KEPT)
    return np.median(times.ordered[row, :known]) if known >= FEWEST else UNKNOWN_S


@inner
def seat_next(
    expected: Floats, line: Ints, head: Ints, tail: Ints, gpus: Ints, floor: Floor
) -> int:
    """The next who fits leaves its line; a line whose head does not fit is passed over from then on."""
    while True:
        row = np.argmin(expected)
        if expected[row] == np.inf:
            return -1
        job = line[head[row]]
        used = place(floor.free, floor.per_node, gpus[job], floor.nodes[job], floor.held[job])
        if used:
            floor.used[job] = used
            head[row] += 1
            if head[row] == tail[row]:
                expected[row] = np.inf
            return job
        expected[row] = np.inf
