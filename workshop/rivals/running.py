"""Work that runs, is evicted and ends: what every rival that starts a job more than once does with it.

An eviction keeps the useful work up to the last checkpoint, and coming back costs a restart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.simulation.traces import Trace
from workshop.simulator.result import Replay

from .costs import Costs
from .packing import place, release
from .queues import NEVER, Floor


class Work(NamedTuple):
    """By job, in seconds where nothing else is said; ``due`` is -1 while it does not run."""

    submit_s: Ints
    duration_s: Ints
    gpus: Ints
    saved: Ints  # useful run time behind the last checkpoint that counts
    since: Ints  # start of the run
    warm: Ints  # when the run begins to be useful
    free_at: Ints
    first: Ints
    end: Ints
    evictions: Ints
    gpu_s: Ints  # GPU-seconds
    ends: Ints  # heap of ``due * jobs + job``; what evictions made void goes when it fills or comes up
    counts: Ints  # [entries of ``ends``, jobs that have arrived]
    checkpoint_s: int
    restart_s: int


def new_work(trace: Trace, costs: Costs) -> Work:
    """Nothing has arrived."""
    jobs = len(trace)
    saved, since, warm, evictions, gpu_s = (np.zeros(jobs, np.int64) for _ in range(5))
    free_at, first, end = (np.full(jobs, -1, np.int64) for _ in range(3))
    return Work(
        submit_s=trace.submit_s,
        duration_s=trace.duration_s,
        gpus=trace.gpus,
        saved=saved,
        since=since,
        warm=warm,
        free_at=free_at,
        first=first,
        end=end,
        evictions=evictions,
        gpu_s=gpu_s,
        ends=np.empty(2 * jobs + 64, np.int64),
        counts=np.zeros(2, np.int64),
        checkpoint_s=costs.checkpoint_s,
        restart_s=costs.restart_s,
    )


def replayed(trace: Trace, nodes: int, work: Work) -> Replay:
    """What became of ``work`` once all has ended."""
    return Replay.of(
        trace,
        start_s=work.first,
        end_s=work.end,
        capacity_gpus=nodes * trace.gpus_per_node,
        evictions=work.evictions,
        lost_gpu_s=(work.gpu_s - trace.gpus * trace.duration_s).astype(np.float64),
    )


@inner
def next_arrival(work: Work) -> int:
    arrived = work.counts[1]
    return work.submit_s[arrived] if arrived < len(work.submit_s) else NEVER


@inner
def next_end(work: Work) -> int:
    jobs = len(work.gpus)
    while work.counts[0] and work.free_at[work.ends[0] % jobs] != work.ends[0] // jobs:
        work.counts[0] = pop(work.ends, 0, work.counts[0])
    return work.ends[0] // jobs if work.counts[0] else NEVER


@inner
def arrive(now: int, work: Work) -> int:
    """The next job that arrives ``now``, or -1."""
    if next_arrival(work) != now:
        return -1
    work.counts[1] += 1
    return work.counts[1] - 1


@inner
def end(now: int, work: Work) -> int:
    """The next job that ends ``now``, or -1; it is for the caller to free its GPUs."""
    if next_end(work) != now:
        return -1
    job = work.ends[0] % len(work.gpus)
    work.counts[0] = pop(work.ends, 0, work.counts[0])
    work.end[job] = now
    return job


@inner
def seat(job: int, now: int, work: Work, floor: Floor) -> bool:
    """Starts it if it fits; whether it did."""
    used = place(floor.free, floor.per_node, work.gpus[job], floor.nodes[job], floor.sizes[job])
    if used == 0:
        return False
    floor.used[job] = used
    work.since[job] = now
    work.warm[job] = now + (work.restart_s if work.evictions[job] else 0)
    await_end(job, now, work.warm[job] + work.duration_s[job] - work.saved[job], work)
    return True


@inner
def await_end(job: int, now: int, at: int, work: Work) -> None:
    work.free_at[job] = at
    if work.first[job] < 0:
        work.first[job] = now
    if work.counts[0] == len(work.ends):
        drop_void(work)
    work.counts[0] = push(work.ends, 0, work.counts[0], at * len(work.gpus) + job)


@inner
def drop_void(work: Work) -> None:
    """In place: an entry that is kept moves to where one was read before."""
    jobs, count = len(work.gpus), 0
    for i in range(work.counts[0]):
        entry = work.ends[i]
        if work.free_at[entry % jobs] == entry // jobs:
            count = push(work.ends, 0, count, entry)
    work.counts[0] = count


@inner
def stop(job: int, now: int, work: Work, floor: Floor) -> None:
    release(floor.free, floor.nodes[job], floor.sizes[job], floor.used[job])
    work.gpu_s[job] += (now - work.since[job]) * work.gpus[job]
    work.free_at[job] = -1


@inner
def evict(job: int, now: int, work: Work, floor: Floor) -> None:
    done = progress(job, now, work)
    if work.checkpoint_s > 1:
        saved_s = (done - work.saved[job]) // work.checkpoint_s * work.checkpoint_s
        done = work.saved[job] + saved_s
    work.saved[job] = done
    work.evictions[job] += 1
    stop(job, now, work, floor)


@inner
def progress(job: int, now: int, work: Work) -> int:
    """Useful run time, that of the present run included."""
    ran = max(0, now - work.warm[job]) if work.free_at[job] >= 0 else 0
    return work.saved[job] + ran
