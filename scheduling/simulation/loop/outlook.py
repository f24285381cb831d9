"""What is foreseen of a life as it is lived: own partitions played along, expected work from what is over.

Nothing of a job is read here before its end but when and for what it was submitted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine import Frame
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Floats, Ints, declare
from scheduling.engine.merit.gittins import (
    RunTimes,
    empty_run_times,
    index_at,
    known_row,
    note_run_time,
)
from scheduling.engine.merit.lead import EVICTIONS_PER_ARRIVAL, due_at
from scheduling.engine.merit.partitions import (
    BITS,
    HEAP,
    STARTED,
    Partitions,
    empty_partitions,
    play_until,
    submit,
    tell_run_time,
)
from scheduling.engine.state.input import Work
from scheduling.engine.state.order import note_pending
from scheduling.engine.state.units import FREE, GPUS, PENDING, RUNNING
from scheduling.simulation.loop.life import NEVER, Jobs

AGES_S, AGES_SHARE = 60.0, 0.05
"""The index of a run is found anew when it has run longer by both since."""


@declare
class Outlook(NamedTuple):
    """``on``: anybody looks at it. Rows are those of ``times``."""

    on: bool
    by_rank: bool  # leaves go by expected work
    own: Partitions
    times: RunTimes
    row: Ints  # [job] of its class
    queues: int  # row of the first queue
    every: int  # row of all
    alone_s: Ints  # [job] run time with its least members
    aged: Floats  # [job] age at which the index was found, -1 never
    evicted: Ints  # [1]


def no_outlook() -> Outlook:
    nothing = np.zeros((1, 1), np.int64)
    return Outlook(
        False, False, empty_partitions(nothing, nothing[0], 1, 1, 1), empty_run_times(3),
        nothing[0].copy(), 1, 2, nothing[0].copy(), np.zeros(1), np.zeros(1, np.int64),
    )  # fmt: skip


def outlook_on(frame: Frame, cast: Work, jobs: Jobs, own: Ints, by_rank: bool) -> Outlook:
    """``own`` [class, queue]: milli-GPU of each queue's own partition."""
    count, queues = jobs.submit.size, frame.tree.parent.size
    gpus = cast.need[GPUS] * cast.least
    _, row = np.unique(np.stack([cast.queue, gpus]), axis=1, return_inverse=True)
    row = row.reshape(-1).astype(np.int64)
    classes = int(row.max(initial=0)) + 1
    sizes = np.array([_node_size(frame, c) for c in range(own.shape[0])], np.int64)
    parts = empty_partitions(own, sizes, count, cast.wish.shape[0], _most_seats(cast, sizes))
    parts.queue[:], parts.need[:], parts.members[:] = cast.queue, cast.need[GPUS], cast.least
    parts.wish[:] = cast.wish
    frame.tree.sharing.played[:] = True
    return Outlook(
        True, by_rank, parts, empty_run_times(classes + queues + 1), row, classes, classes + queues,
        jobs.duration * cast.most // np.maximum(1, cast.least), np.full(count + 1, -1.0),
        np.zeros(1, np.int64),
    )  # fmt: skip


def _node_size(frame: Frame, c: int) -> int:
    """Milli-GPU of the largest node of class ``c``."""
    return int(frame.nodes.size[GPUS, frame.nodes.gpu_class == c].max(initial=0))


def _most_seats(cast: Work, sizes: Ints) -> int:
    """Nodes of ``sizes`` by class that any gang sits on: the tables have so many places for every job."""
    fits = sizes[:, None] // np.maximum(1, cast.need[GPUS])
    nodes = np.where(fits > 0, -(-cast.least // np.maximum(1, fits)), 0)
    return max(1, int(nodes.max(initial=0)))


@inner
def next_virtual_end(outlook: Any) -> int:
    if not outlook.on or outlook.own.count[HEAP] == 0:
        return NEVER
    return int(outlook.own.heap[0] >> BITS)


@inner
def play_before(outlook: Any, now: int) -> None:
    """All that happens in the partitions before the events of ``now``."""
    if outlook.on:
        play_until(outlook.own, now - 1)


@inner
def note_arrival(outlook: Any, job: int) -> None:
    if outlook.on:
        outlook.aged[job] = -1.0
        submit(outlook.own, job)


@inner
def note_end(world: Any, outlook: Any, job: int, w: int, run_s: int, now: int) -> None:
    """The run time of ``job``, in slot ``w``, is known."""
    if not outlook.on:
        return
    rows = outlook.row[job], outlook.queues + world.work.queue[w], outlook.every
    for row in rows:
        note_run_time(outlook.times, row, float(run_s))
    tell_run_time(outlook.own, job, outlook.alone_s[job], now)


@inner
def play_on(world: Any, jobs: Any, outlook: Any, origin: float, now: int) -> int:
    """What happens in the partitions at ``now``; returns when the first of those who start there is due."""
    first = NEVER
    if not outlook.on:
        return first
    own, work = outlook.own, world.work
    play_until(own, now)
    for i in range(own.count[STARTED]):
        job = own.started[i]
        w = jobs.slot[job]
        if w < 0:
            continue
        work.virtual[w] = origin + own.start[job]
        if work.phase[w] == PENDING:
            evicted = work.evictions[w] > 0
            at = due_at(work.submitted[w], work.virtual[w], work.saved[w], evicted) - origin
            first = min(first, max(now, -int(-at // 1)))
    own.count[STARTED] = 0
    return first


@inner
def foresee(
    world: Any, jobs: Any, outlook: Any, origin: float, now: int, arrived: int, job_in: Ints
) -> None:
    """Before a plan: the index of all that wait and run, and what may still be evicted."""
    work = world.work
    world.tree.sharing.evictions_left[0] = EVICTIONS_PER_ARRIVAL * arrived - outlook.evicted[0]
    for w in range(work.phase.size):
        if work.phase[w] == FREE or job_in[w] < 0:
            continue
        job = job_in[w]
        age = work.saved[w]
        if work.phase[w] == RUNNING:
            age += max(0, now - jobs.warm[job])
            before = outlook.aged[job]
            if before >= 0.0 and before <= age <= before + max(AGES_S, AGES_SHARE * before):
                continue
        outlook.aged[job] = age
        row = known_row(
            outlook.times, outlook.row[job], outlook.queues + work.queue[w], outlook.every
        )
        rank = index_at(outlook.times, row, age)
        if outlook.by_rank and rank != work.rank[w]:
            work.predicted[w] = rank * max(1, work.need[GPUS, w] * work.least[w])
            if work.phase[w] == PENDING:
                note_pending(world.ordering, w)
        work.rank[w] = rank
