"""Backfilling: who is behind may start now if that delays nobody who holds a reservation.

EASY reserves for the head of the queue alone (Lifka, JSSPP 1995); conservative backfilling for everybody
(Mu'alem and Feitelson, IEEE TPDS 12, 2001). Ends are expected by requested times; work that runs longer than
it asked is expected to end in the next second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduling.engine.compile.heap import push
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Ints
from scheduling.simulation.traces import Trace
from workshop.simulator.replay import check_size
from workshop.simulator.result import Replay

from .costs import Costs
from .packing import place, release
from .queues import NEVER, Floor, end_due, finished, floor_of

DEEPEST = 500
"""So many of those who wait hold reservations; Slurm bounds its walk likewise (``bf_max_job_test``)."""


def replay_backfill(
    trace: Trace, nodes: int, conservative: bool, costs: Costs, spare: bool = True
) -> Replay:
    """All jobs in one queue by arrival on ``nodes`` nodes. Without ``spare`` only who ends before the head's
    start may go before it, also beside it (EASY as RLScheduler plays it, SC 2020). Raises TooLargeError."""
    check_size(trace, nodes)
    asked_s = asked_times(trace, costs.asked_factor)
    start_s = live(
        trace.submit_s,
        trace.duration_s,
        asked_s,
        trace.gpus,
        floor_of(trace, nodes),
        conservative,
        DEEPEST,
        spare,
    )
    return finished(trace, start_s, nodes)


def asked_times(trace: Trace, factor: float) -> Ints:
    """Requested seconds by job; where the trace has none, ``factor`` times the real ones."""
    guessed = np.maximum(1, np.rint(trace.duration_s * factor)).astype(np.int64)
    if trace.asked_s is None:
        return guessed
    return np.where(trace.asked_s > 0, trace.asked_s, guessed)


@kernel
def live(
    submit_s: Ints,
    duration_s: Ints,
    asked_s: Ints,
    gpus: Ints,
    floor: Floor,
    conservative: bool,
    deepest: int,
    spare: bool,
) -> Ints:
    """The event loop; returns each job's start second. Waiting work stands in ``queue`` by arrival."""
    jobs = len(submit_s)
    start_s = np.full(jobs, NEVER, dtype=np.int64)
    ends, running = np.empty(jobs, dtype=np.int64), 0
    queue, waiting, next_job = np.empty(jobs, dtype=np.int64), 0, 0
    while next_job < jobs or running:
        now = submit_s[next_job] if next_job < jobs else NEVER
        if running:
            now = min(now, ends[0] // jobs)
        running = end_due(ends, running, now, floor)
        while next_job < jobs and submit_s[next_job] == now:
            queue[waiting] = next_job
            waiting, next_job = waiting + 1, next_job + 1
        if not waiting or floor.free.sum() == 0:
            continue
        if conservative:
            reserve_all(
                queue[: min(waiting, deepest)], now, asked_s, gpus, start_s, floor, ends[:running]
            )
        else:
            fill_behind_head(
                queue[:waiting], now, asked_s, gpus, start_s, floor, ends[:running], spare
            )
        waiting, running = leave_line(queue[:waiting], now, duration_s, start_s, ends, running)
    return start_s


@inner
def leave_line(
    queue: Ints, now: int, duration_s: Ints, start_s: Ints, ends: Ints, running: int
) -> Any:
    """When work that has started ``now`` is expected to end; how many still wait, and how many run."""
    left = 0
    for job in queue:
        if start_s[job] == now:
            running = push(ends, 0, running, (now + duration_s[job]) * len(duration_s) + job)
        else:
            queue[left] = job
            left += 1
    return left, running


@inner
def seat(job: int, now: int, gpus: Ints, start_s: Ints, floor: Floor) -> bool:
    used = place(floor.free, floor.per_node, gpus[job], floor.nodes[job], floor.sizes[job])
    if not used:
        return False
    floor.used[job] = used
    start_s[job] = now
    return True


@inner
def expected_ends(now: int, asked_s: Ints, start_s: Ints, ends: Ints, seated: Ints) -> Any:
    """Work that holds GPUs and when each is expected to let go, soonest first. ``seated`` have started just
    now."""
    jobs, running = len(asked_s), len(ends)
    who = np.empty(running + len(seated), dtype=np.int64)
    for i in range(running):
        who[i] = ends[i] % jobs
    who[running:] = seated
    at = np.maximum(start_s[who] + asked_s[who], now + 1)
    order = np.argsort(at, kind="mergesort")
    return who[order], at[order]


@inner
def fill_behind_head(
    queue: Ints,
    now: int,
    asked_s: Ints,
    gpus: Ints,
    start_s: Ints,
    floor: Floor,
    ends: Ints,
    spare: bool,
) -> None:
    """EASY: heads start while they fit; who is behind starts if the head's reservation stands."""
    head = 0
    while head < len(queue) and seat(queue[head], now, gpus, start_s, floor):
        head += 1
    if head >= len(queue) - 1:
        return
    later = floor.free.copy()
    shadow = shadow_of(queue, head, now, asked_s, gpus, start_s, floor, ends, later)
    least = NEVER
    for i in range(head + 1, len(queue)):
        job = queue[i]
        if gpus[job] >= least:
            continue
        if not seat(job, now, gpus, start_s, floor):
            if gpus[job] <= floor.per_node:
                least = gpus[job]
        elif spare:
            late = now + asked_s[job] > shadow
            if late and not fits_beside(later, job, gpus[queue[head]], floor):
                unseat(job, start_s, floor)
        elif now + asked_s[job] >= shadow:
            unseat(job, start_s, floor)


@inner
def shadow_of(
    queue: Ints,
    head: int,
    now: int,
    asked_s: Ints,
    gpus: Ints,
    start_s: Ints,
    floor: Floor,
    ends: Ints,
    later: Ints,
) -> int:
    """When the head can start as ends are expected; ``later`` becomes what is free then, without it."""
    who, at = expected_ends(now, asked_s, start_s, ends, queue[:head])
    for i in range(len(who)):
        release(later, floor.nodes[who[i]], floor.sizes[who[i]], floor.used[who[i]])
        if i + 1 < len(who) and at[i + 1] == at[i]:
            continue
        if could_place(later, gpus[queue[head]], floor):
            return at[i]
    return NEVER


@inner
def could_place(free: Ints, gpus: int, floor: Floor) -> bool:
    nodes, sizes = np.empty_like(floor.nodes[0]), np.empty_like(floor.sizes[0])
    used = place(free, floor.per_node, gpus, nodes, sizes)
    release(free, nodes, sizes, used)
    return used > 0


@inner
def fits_beside(later: Ints, job: int, head_gpus: int, floor: Floor) -> bool:
    """Whether the head still has its place ``later`` with ``job`` beside it; if so, ``job`` is taken off."""
    take(later, floor, job)
    if could_place(later, head_gpus, floor):
        return True
    release(later, floor.nodes[job], floor.sizes[job], floor.used[job])
    return False


@inner
def unseat(job: int, start_s: Ints, floor: Floor) -> None:
    release(floor.free, floor.nodes[job], floor.sizes[job], floor.used[job])
    start_s[job] = NEVER


@inner
def take(free: Ints, floor: Floor, job: int) -> None:
    for k in range(floor.used[job]):
        free[floor.nodes[job, k]] -= floor.sizes[job, k]


@inner
def reserve_all(
    queue: Ints, now: int, asked_s: Ints, gpus: Ints, start_s: Ints, floor: Floor, ends: Ints
) -> None:
    """Conservative: by arrival each gets the earliest time that those before it leave; ``now`` is a start.

    Reservations are made anew from what runs, so early ends move everybody up. They count GPUs: who does not
    fit on the nodes at its turn is tried again at the next end.
    """
    who, at = expected_ends(now, asked_s, start_s, ends, queue[:0])
    steps = len(who) + 2 * len(queue) + 2
    when, free = np.empty(steps, dtype=np.int64), np.empty(steps, dtype=np.int64)
    when[0], free[0], size = now, floor.free.sum(), 1
    for i in range(len(who)):
        if when[size - 1] != at[i]:
            when[size], free[size] = at[i], free[size - 1]
            size += 1
        free[size - 1] += gpus[who[i]]
    for i in range(len(queue)):
        job, first = queue[i], 0
        while True:
            first = earliest(when, free, size, first, gpus[job], asked_s[job])
            if when[first] > now or seat(job, now, gpus, start_s, floor):
                break
            first += 1
        size = book(when, free, size, first, gpus[job], when[first] + asked_s[job])
        if free[0] == 0:
            return


@inner
def earliest(when: Ints, free: Ints, size: int, first: int, gpus: int, asked_s: int) -> int:
    """The first step from ``first`` on at which so many GPUs stay free for so long; the last always does."""
    while True:
        clash = -1
        step = first
        while step < size and when[step] < when[first] + asked_s:
            if free[step] < gpus:
                clash = step
            step += 1
        if clash < 0:
            return first
        first = clash + 1


@inner
def book(when: Ints, free: Ints, size: int, first: int, gpus: int, until: int) -> int:
    """Takes GPUs from step ``first`` until the second ``until``; returns how many steps there are then."""
    step = first
    while step < size and when[step] < until:
        step += 1
    if step == size or when[step] != until:
        for k in range(size, step, -1):
            when[k], free[k] = when[k - 1], free[k - 1]
        when[step], free[step] = until, free[step - 1]
        size += 1
    for k in range(first, step):
        free[k] -= gpus
    return size
