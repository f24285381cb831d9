"""The hand-written schedulers ours is measured against: FIFO and SJF, strict and skipping, without eviction.

*Strict*: the head of the queue blocks all behind it. *Skip*: the whole queue is walked in order and whatever
fits starts. SJF knows every duration beforehand, so it is a bound, not a competitor. At an instant, jobs end,
then arrive, then start; equal keys keep arrival order.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from scheduling.engine.compile.heap import pop, push
from scheduling.simulation.traces import Trace
from workshop.simulator.replay import check_size
from workshop.simulator.result import Replay

from .packing import place, release

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NEVER = np.iinfo(np.int64).max


class Rival(StrEnum):
    FIFO = "fifo"
    FIFO_SKIP = "fifo-skip"
    SJF = "sjf"
    SJF_SKIP = "sjf-skip"

    @property
    def skips(self) -> bool:
        return self in (Rival.FIFO_SKIP, Rival.SJF_SKIP)

    @property
    def shortest_first(self) -> bool:
        return self in (Rival.SJF, Rival.SJF_SKIP)


def replay_pooled(trace: Trace, rival: Rival, nodes: int) -> Replay:
    """All jobs in one queue on ``nodes`` nodes of the trace's size. Raises TooLargeError."""
    start_s = starts(trace, rival, nodes)
    return finished(trace, start_s, nodes)


def replay_static(trace: Trace, rival: Rival, queue_nodes: Mapping[str, int]) -> Replay:
    """Each queue alone on its own nodes. Raises TooLargeError; KeyError for a queue without nodes."""
    start_s = np.zeros(len(trace), dtype=np.int64)
    for number, queue in enumerate(trace.queues):
        mine = np.flatnonzero(trace.queue == number)
        if len(mine):
            start_s[mine] = starts(trace.take(mine), rival, queue_nodes[queue])
    return finished(trace, start_s, sum(queue_nodes.values()))


def finished(trace: Trace, start_s: Ints, nodes: int) -> Replay:
    return Replay.of(
        trace,
        start_s=start_s,
        end_s=start_s + trace.duration_s,
        capacity_gpus=nodes * trace.gpus_per_node,
    )


class Line(NamedTuple):
    """Waiting jobs as ranks (their places in the order), in one heap a bucket."""

    bucket: Ints
    """Of each job, as ``rank`` is."""
    rank: Ints
    job_of_rank: Ints
    heaps: Ints
    base: Ints
    """Where a bucket's heap begins in ``heaps``."""
    waits: Ints
    """How many of a bucket wait."""


class Floor(NamedTuple):
    """The nodes: GPUs free on each and, by job, which it is on and how many GPUs it holds there."""

    per_node: int
    free: Ints
    nodes: Ints
    sizes: Ints
    used: Ints
    """Nodes that a job is on."""


def starts(trace: Trace, rival: Rival, nodes: int) -> Ints:
    """Second at which each job starts."""
    key = trace.duration_s if rival.shortest_first else None
    return starts_by(trace, key, nodes, skips=rival.skips)


def starts_by(
    trace: Trace, key: npt.NDArray[np.int64 | np.float64] | None, nodes: int, *, skips: bool
) -> Ints:
    """Second at which each starts, the lowest ``key`` first (by arrival without). Raises TooLargeError."""
    check_size(trace, nodes)
    line = line_of(trace, key, skips=skips)
    return run(trace.submit_s, trace.duration_s, trace.gpus, line, floor_of(trace, nodes))


def line_of(trace: Trace, key: npt.NDArray[np.int64 | np.float64] | None, *, skips: bool) -> Line:
    """Nobody waits yet.

    With one bucket a size, a walk of the whole queue touches a size at most once in vain: free GPUs only
    shrink while jobs start, so what did not fit will not fit. With a single bucket its head blocks, which
    is the strict order.
    """
    jobs = len(trace)
    job_of_rank = np.arange(jobs) if key is None else np.argsort(key, kind="stable")
    rank = np.empty(jobs, dtype=np.int64)
    rank[job_of_rank] = np.arange(jobs)
    sizes, bucket = np.unique(trace.gpus, return_inverse=True)
    if not skips:
        sizes, bucket = sizes[-1:], np.zeros_like(bucket)
    counts = np.bincount(bucket, minlength=len(sizes))
    return Line(
        bucket=bucket.astype(np.int64),
        rank=rank,
        job_of_rank=job_of_rank,
        heaps=np.empty(jobs, dtype=np.int64),
        base=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        waits=np.zeros(len(sizes), dtype=np.int64),
    )


def floor_of(trace: Trace, nodes: int) -> Floor:
    """All free, with room to note every job on as many nodes as the widest can be on."""
    jobs, per_node = len(trace), trace.gpus_per_node
    widest = int(trace.gpus.max()) // per_node + 1 if jobs else 1
    return Floor(
        per_node=per_node,
        free=np.full(nodes, per_node, dtype=np.int64),
        nodes=np.empty((jobs, widest), np.int64),
        sizes=np.empty((jobs, widest), np.int64),
        used=np.zeros(jobs, dtype=np.int64),
    )


@njit(cache=True)
def run(submit_s: Ints, duration_s: Ints, gpus: Ints, line: Line, floor: Floor) -> Ints:
    """The event loop; returns each job's start second. A heap of ends holds ``end second * jobs + job``."""
    jobs = len(submit_s)
    start_s = np.full(jobs, NEVER, dtype=np.int64)
    ends, running = np.empty(jobs, dtype=np.int64), 0
    blocked = np.zeros(len(line.waits), dtype=np.bool_)
    next_job = 0
    while next_job < jobs or running:
        arrival = submit_s[next_job] if next_job < jobs else NEVER
        now = min(arrival, ends[0] // jobs) if running else arrival
        running = end_due(ends, running, now, floor)
        while next_job < jobs and submit_s[next_job] == now:
            join(line, next_job)
            next_job += 1
        blocked[:] = False
        job = seat_next(line, floor, gpus, blocked)
        while job >= 0:
            start_s[job] = now
            running = push(ends, 0, running, (now + duration_s[job]) * jobs + job)
            job = seat_next(line, floor, gpus, blocked)
    return start_s


@njit(cache=True)
def end_due(ends: Ints, running: int, now: int, floor: Floor) -> int:
    """Jobs that end ``now`` leave their nodes; returns how many still run."""
    jobs = len(ends)
    while running and ends[0] // jobs == now:
        job = ends[0] % jobs
        release(floor.free, floor.nodes[job], floor.sizes[job], floor.used[job])
        running = pop(ends, 0, running)
    return running


@njit(cache=True)
def join(line: Line, job: int) -> None:
    b = line.bucket[job]
    line.waits[b] = push(line.heaps, line.base[b], line.waits[b], line.rank[job])


@njit(cache=True)
def seat_next(line: Line, floor: Floor, gpus: Ints, blocked: Flags) -> int:
    """The next job in order that fits leaves the line for its nodes; returns it, -1 when none fits.

    Buckets whose head does not fit are ``blocked``.
    """
    while True:
        b = first(line.heaps, line.base, line.waits, blocked)
        if b < 0:
            return -1
        job = line.job_of_rank[line.heaps[line.base[b]]]
        used = place(floor.free, floor.per_node, gpus[job], floor.nodes[job], floor.sizes[job])
        if used:
            floor.used[job] = used
            line.waits[b] = pop(line.heaps, line.base[b], line.waits[b])
            return job
        blocked[b] = True


@njit(cache=True)
def first(heaps: Ints, base: Ints, waits: Ints, blocked: Flags) -> int:
    """The bucket whose head is first in order among those not blocked; -1 when none is left."""
    best = -1
    for b in range(len(waits)):
        if waits[b] == 0 or blocked[b]:
            continue
        if best < 0 or heaps[base[b]] < heaps[base[best]]:
            best = b
    return best
