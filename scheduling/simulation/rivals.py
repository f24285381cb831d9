"""The hand-written schedulers ours is measured against: FIFO and SJF, strict and skipping, without eviction.

*Strict*: the head of the queue blocks all behind it. *Skip*: the whole queue is walked in order and whatever
fits starts. SJF knows every duration beforehand, so it is a bound, not a competitor. At an instant, jobs end,
then arrive, then start; equal keys keep arrival order.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from numba import njit

from .heaps import pop, push
from .packing import place, release
from .result import Replay
from .traces import Trace

Ints = npt.NDArray[np.int64]
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


class TooLargeError(ValueError):
    """A job that no amount of waiting would start: it asks for more than its nodes have."""


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


def check_size(trace: Trace, nodes: int) -> None:
    """Raises TooLargeError when a job is larger than the whole."""
    capacity = nodes * trace.gpus_per_node
    if len(trace) and trace.gpus.max() > capacity:
        job = trace[int(trace.gpus.argmax())]
        raise TooLargeError(
            f"{job.name} of queue {job.queue} asks for {job.gpus} GPUs, its {nodes} nodes have "
            f"{capacity}: replay it on more nodes"
        )


def starts(trace: Trace, rival: Rival, nodes: int) -> Ints:
    """Second at which each job starts."""
    per_node = trace.gpus_per_node
    check_size(trace, nodes)
    by_key = np.argsort(trace.duration_s, kind="stable") if rival.shortest_first else None
    job_of_rank = np.arange(len(trace)) if by_key is None else by_key
    rank = np.empty(len(trace), dtype=np.int64)
    rank[job_of_rank] = np.arange(len(trace))
    sizes, bucket = np.unique(trace.gpus, return_inverse=True)
    if not rival.skips:
        sizes, bucket = sizes[-1:], np.zeros_like(bucket)
    counts = np.bincount(bucket, minlength=len(sizes))
    base = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    free = np.full(nodes, per_node, dtype=np.int64)
    arrivals = (trace.submit_s, trace.duration_s, trace.gpus)
    return run(*arrivals, rank, job_of_rank, bucket.astype(np.int64), base, free, per_node)


@njit(cache=True)
def run(
    submit_s: Ints,
    duration_s: Ints,
    gpus: Ints,
    rank: Ints,
    job_of_rank: Ints,
    bucket: Ints,
    base: Ints,
    free: Ints,
    per_node: int,
) -> Ints:
    """The event loop; returns each job's start second.

    Waiting jobs lie in one heap per ``bucket``. With one bucket per size, a walk of the whole queue touches a
    size at most once in vain: free GPUs only shrink while jobs start, so what did not fit will not fit.
    With a single bucket its head blocks, which is the strict order.
    """
    jobs, buckets = len(submit_s), len(base) - 1
    start_s = np.full(jobs, NEVER, dtype=np.int64)
    waiting, waits = np.empty(jobs, dtype=np.int64), np.zeros(buckets, dtype=np.int64)
    ends, running = np.empty(jobs, dtype=np.int64), 0
    widest = int(gpus.max()) // per_node + 1 if jobs else 1
    nodes, held = np.empty((jobs, widest), np.int64), np.empty((jobs, widest), np.int64)
    used = np.zeros(jobs, dtype=np.int64)
    blocked = np.zeros(buckets, dtype=np.bool_)
    next_job = 0
    while next_job < jobs or running:
        arrival = submit_s[next_job] if next_job < jobs else NEVER
        now = min(arrival, ends[0] // jobs) if running else arrival
        while running and ends[0] // jobs == now:
            job = ends[0] % jobs
            release(free, nodes[job], held[job], used[job])
            running = pop(ends, 0, running)
        while next_job < jobs and submit_s[next_job] == now:
            b = bucket[next_job]
            waits[b] = push(waiting, base[b], waits[b], rank[next_job])
            next_job += 1
        blocked[:] = False
        while True:
            b = first(waiting, base, waits, blocked)
            if b < 0:
                break
            job = job_of_rank[waiting[base[b]]]
            used[job] = place(free, per_node, gpus[job], nodes[job], held[job])
            if used[job] == 0:
                blocked[b] = True
                continue
            waits[b] = pop(waiting, base[b], waits[b])
            start_s[job] = now
            running = push(ends, 0, running, (now + duration_s[job]) * jobs + job)
    return start_s


@njit(cache=True)
def first(waiting: Ints, base: Ints, waits: Ints, blocked: npt.NDArray[np.bool_]) -> int:
    """The bucket whose head is first in order among those not blocked; -1 when none is left."""
    best = -1
    for b in range(len(waits)):
        if waits[b] == 0 or blocked[b]:
            continue
        if best < 0 or waiting[base[b]] < waiting[base[best]]:
            best = b
    return best
