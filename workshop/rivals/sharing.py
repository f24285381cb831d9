"""What rivals that share among queues have in common: quotas, who waits, who runs, who would have to leave.

Both are given what Weir is given: each queue's share of the static partition as quota and as weight. What is
idle anybody may borrow. Gangs start whole or not at all; who is evicted makes room at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.simulation.traces import Trace
from workshop.simulator.partition import nominal_gpus, static_nodes
from workshop.simulator.replay import check_size
from workshop.simulator.result import Replay

from .costs import Costs
from .packing import place, release
from .queues import NEVER, Floor, floor_of
from .running import (
    Work,
    arrive,
    end,
    evict,
    new_work,
    next_arrival,
    next_end,
    replayed,
    seat,
    stop,
)


class Quotas(NamedTuple):
    """By queue: milli-GPU that it is guaranteed, and its weight when what is idle is divided."""

    nominal: Ints
    weight: Floats


class WaitLines(NamedTuple):
    """Jobs that wait: by queue and size a heap of jobs, which are numbered by arrival."""

    bucket: Ints  # of each job
    heaps: Ints
    base: Ints  # where a bucket's heap begins
    waits: Ints  # how many of a bucket wait
    parked: Ints  # 1: this queue's work of this size was tried and does not fit
    first: Ints  # a queue's buckets are first[q] to first[q + 1]


class World(NamedTuple):
    """``used`` and ``asked`` by queue: GPUs that its work holds, and those that all of its work wants.

    ``runs`` are the jobs that run, by start; ``picked`` those of them that would leave, which ``leaves`` says
    by job; their GPUs count as free. ``counts``: how many run, how many are picked.
    """

    work: Work
    floor: Floor
    lines: WaitLines
    quotas: Quotas
    queue: Ints
    used: Ints
    demand: Ints
    runs: Ints
    picked: Ints
    leaves: Ints
    counts: Ints


def quotas_of(trace: Trace, nodes: int) -> Quotas:
    """Of ``nodes`` pooled nodes, in the order of the trace's queues."""
    nominal, weight = nominal_gpus(trace, nodes), static_nodes(trace)
    return Quotas(
        np.array([nominal[queue] for queue in trace.queues], np.int64),
        np.array([weight[queue] for queue in trace.queues], np.float64),
    )


def played(
    trace: Trace, nodes: int, costs: Costs, quotas: Quotas | None, live: Callable[[World], None]
) -> Replay:
    """All jobs of ``trace`` as ``live`` has them live. Raises TooLargeError."""
    check_size(trace, nodes)
    world = new_world(trace, nodes, quotas or quotas_of(trace, nodes), costs)
    live(world)
    return replayed(trace, nodes, world.work)


def new_world(trace: Trace, nodes: int, quotas: Quotas, costs: Costs) -> World:
    """All is free and nobody has arrived."""
    jobs, queues = len(trace), len(trace.queues)
    used, demand = np.zeros(queues, np.int64), np.zeros(queues, np.int64)
    runs, picked = np.empty(jobs, np.int64), np.empty(jobs, np.int64)
    return World(
        new_work(trace, costs),
        floor_of(trace, nodes),
        lines_of(trace),
        quotas,
        trace.queue.astype(np.int64),
        used,
        demand,
        runs,
        picked,
        np.zeros(jobs, np.int64),
        np.zeros(2, np.int64),
    )


def lines_of(trace: Trace) -> WaitLines:
    sizes, size = np.unique(trace.gpus, return_inverse=True)
    kinds, bucket = np.unique(trace.queue * len(sizes) + size, return_inverse=True)
    counts = np.bincount(bucket, minlength=len(kinds))
    return WaitLines(
        bucket=bucket.astype(np.int64),
        heaps=np.empty(len(trace), np.int64),
        base=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        waits=np.zeros(len(kinds), np.int64),
        parked=np.zeros(len(kinds), np.int64),
        first=np.searchsorted(kinds // len(sizes), np.arange(len(trace.queues) + 1)),
    )


@inner
def advance(world: World) -> int:
    """To the next second at which work ends or arrives, which is returned; NEVER once all is over."""
    work, lines = world.work, world.lines
    now = min(next_arrival(work), next_end(work))
    if now == NEVER:
        return now
    job, before = end(now, work), world.counts[0]
    while job >= 0:
        stop(job, now, work, world.floor)
        world.used[world.queue[job]] -= work.gpus[job]
        world.demand[world.queue[job]] -= work.gpus[job]
        world.counts[0] -= 1
        job = end(now, work)
    if world.counts[0] < before:
        drop_stopped(before, world)
        lines.parked[:] = 0
    job = arrive(now, work)
    while job >= 0:
        join(job, lines)
        lines.parked[lines.bucket[job]] = 0
        world.demand[world.queue[job]] += work.gpus[job]
        job = arrive(now, work)
    return now


@inner
def drop_stopped(before: int, world: World) -> None:
    count = 0
    for i in range(before):
        if world.work.free_at[world.runs[i]] >= 0:
            world.runs[count] = world.runs[i]
            count += 1
    world.counts[0] = count


@inner
def join(job: int, lines: WaitLines) -> None:
    bucket = lines.bucket[job]
    lines.waits[bucket] = push(lines.heaps, lines.base[bucket], lines.waits[bucket], job)


@inner
def head(queue: int, lines: WaitLines) -> int:
    """The first of those that wait in ``queue`` and are not parked, or -1."""
    found = -1
    for bucket in range(lines.first[queue], lines.first[queue + 1]):
        if lines.waits[bucket] == 0 or lines.parked[bucket]:
            continue
        job = lines.heaps[lines.base[bucket]]
        if found < 0 or job < found:
            found = job
    return found


@inner
def start(job: int, now: int, world: World) -> bool:
    """The head of its line takes nodes if it fits; whether it did."""
    if not seat(job, now, world.work, world.floor):
        return False
    lines, bucket = world.lines, world.lines.bucket[job]
    lines.waits[bucket] = pop(lines.heaps, lines.base[bucket], lines.waits[bucket])
    world.used[world.queue[job]] += world.work.gpus[job]
    world.runs[world.counts[0]] = job
    world.counts[0] += 1
    return True


@inner
def fits(job: int, world: World) -> bool:
    floor = world.floor
    used = place(
        floor.free, floor.per_node, world.work.gpus[job], floor.nodes[job], floor.sizes[job]
    )
    release(floor.free, floor.nodes[job], floor.sizes[job], used)
    return used > 0


@inner
def youngest(queue: int, below: int, now: int, world: World) -> int:
    """Where in ``runs``, below a position, the last of ``queue`` to start stands that could leave, or -1.

    A job that has started this second stays: else two could evict each other for ever within it.
    """
    for i in range(below - 1, -1, -1):
        job = world.runs[i]
        if world.queue[job] == queue and not world.leaves[job] and world.work.since[job] < now:
            return i
    return -1


@inner
def pick(job: int, world: World) -> None:
    floor = world.floor
    release(floor.free, floor.nodes[job], floor.sizes[job], floor.used[job])
    world.used[world.queue[job]] -= world.work.gpus[job]
    world.picked[world.counts[1]] = job
    world.counts[1] += 1
    world.leaves[job] = 1


@inner
def put_back(at: int, world: World) -> None:
    """The job picked at this place stays; the last of the picked takes its place."""
    job, floor = world.picked[at], world.floor
    for k in range(floor.used[job]):
        floor.free[floor.nodes[job, k]] -= floor.sizes[job, k]
    world.used[world.queue[job]] += world.work.gpus[job]
    world.leaves[job] = 0
    world.counts[1] -= 1
    world.picked[at] = world.picked[world.counts[1]]


@inner
def keep_all(world: World) -> None:
    while world.counts[1]:
        put_back(world.counts[1] - 1, world)


@inner
def spare(job: int, world: World) -> None:
    """A job that need not leave for ``job`` stays, from the last but one to the first picked."""
    for at in range(world.counts[1] - 2, -1, -1):
        other = world.picked[at]
        put_back(at, world)
        if not fits(job, world):
            pick(other, world)


@inner
def evict_picked(now: int, world: World) -> None:
    """They wait again, in their old place; what is parked may try anew."""
    before = world.counts[0]
    while world.counts[1]:
        job = world.picked[world.counts[1] - 1]
        put_back(world.counts[1] - 1, world)
        world.used[world.queue[job]] -= world.work.gpus[job]
        evict(job, now, world.work, world.floor)
        join(job, world.lines)
    drop_stopped(before, world)
    world.lines.parked[:] = 0
