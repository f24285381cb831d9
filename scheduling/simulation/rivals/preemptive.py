"""Rivals that evict: at each decision all work, running or not, is ranked anew, and the best of it runs.

The walk goes down the ranking while GPUs last (by number); who runs and is passed over is evicted, who waits
and is chosen starts where it fits. An eviction keeps the useful work up to the last checkpoint, and coming
back costs a restart. Equal ranks go by arrival, and at equal rank who runs is not told from who waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.merit.gittins import (
    empty_run_times,
    index_at,
    known_row,
    note_run_time,
    struct_of,
)
from scheduling.simulation.result import Replay
from scheduling.simulation.traces import Trace

from .costs import Costs
from .history import Classes, classes_of
from .packing import place, release
from .queues import NEVER, Floor, check_size, floor_of


class Rank(IntEnum):
    """What the ranking goes by, lowest first."""

    REMAINING = 0
    """Known run time that is left."""
    ATTAINED = 1
    """Two queues by GPU-seconds attained, arrival inside each."""
    GITTINS = 2
    """Least expected GPU-seconds per end, from what ended before."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """``every_s``: decides at multiples of it, 0 at each event. ``threshold_gpu_s`` parts queues."""

    rank: Rank
    every_s: int = 0
    threshold_gpu_s: int = 0


class Work(NamedTuple):
    """By job: seconds; ``due`` is -1 while it does not run."""

    saved: Ints  # useful run time behind the last checkpoint that counts
    since: Ints  # start of the run
    warm: Ints  # when the run begins to be useful
    due: Ints
    first: Ints
    end: Ints
    evictions: Ints
    held: Ints  # GPU-seconds


class Rules(NamedTuple):
    rank: int
    every_s: int
    threshold: int
    checkpoint_s: int
    restart_s: int


def replay_preemptive(trace: Trace, nodes: int, rule: Preemption, costs: Costs) -> Replay:
    """All jobs in one queue on ``nodes`` nodes. Raises TooLargeError."""
    check_size(trace, nodes)
    jobs = len(trace)
    work = Work(
        saved=np.zeros(jobs, np.int64),
        since=np.zeros(jobs, np.int64),
        warm=np.zeros(jobs, np.int64),
        due=np.full(jobs, -1, np.int64),
        first=np.full(jobs, -1, np.int64),
        end=np.full(jobs, -1, np.int64),
        evictions=np.zeros(jobs, np.int64),
        held=np.zeros(jobs, np.int64),
    )
    rules = Rules(
        int(rule.rank), rule.every_s, rule.threshold_gpu_s, costs.checkpoint_s, costs.restart_s
    )
    classes = classes_of(trace)
    times = struct_of(empty_run_times(classes.rows))
    live(
        trace.submit_s,
        trace.duration_s,
        trace.gpus,
        work,
        rules,
        floor_of(trace, nodes),
        classes,
        times,
    )
    return Replay.of(
        trace,
        start_s=work.first,
        end_s=work.end,
        capacity_gpus=nodes * trace.gpus_per_node,
        evictions=work.evictions,
        lost_gpu_s=(work.held - trace.gpus * trace.duration_s).astype(np.float64),
    )


@kernel
def live(
    submit_s: Ints,
    duration_s: Ints,
    gpus: Ints,
    work: Work,
    rules: Rules,
    floor: Floor,
    classes: Classes,
    times: Any,
) -> None:
    """The event loop: ends, arrivals, then a decision where one is due and anybody waits."""
    jobs = len(submit_s)
    ends, size = np.empty(4 * jobs + 64, dtype=np.int64), 0
    active, count, waiting = np.empty(jobs, dtype=np.int64), 0, 0
    key = np.empty(jobs, dtype=np.float64)
    next_job, decide = 0, NEVER
    while next_job < jobs or count:
        while size and work.due[ends[0] % jobs] != ends[0] // jobs:
            size = pop(ends, 0, size)
        now = submit_s[next_job] if next_job < jobs else NEVER
        if size:
            now = min(now, ends[0] // jobs)
        if waiting:
            now = min(now, decide)
        ended = 0
        while size and ends[0] // jobs == now:
            job = ends[0] % jobs
            size = pop(ends, 0, size)
            if work.due[job] != now:
                continue
            stop(job, now, gpus, work, floor)
            work.end[job] = now
            learn(job, duration_s, classes, times)
            ended += 1
        if ended:
            count = without_ended(active, count, work)
        while next_job < jobs and submit_s[next_job] == now:
            active[count] = next_job
            count, waiting, next_job = count + 1, waiting + 1, next_job + 1
        if not waiting or (rules.every_s and now % rules.every_s):
            decide = next_multiple(now, rules)
            continue
        for place_ in range(count):
            key[active[place_]] = rank_of(
                active[place_], now, duration_s, gpus, work, rules, classes, times
            )
        if size + count > len(ends):
            ends, size = only_due(ends, size, work, jobs)
        size, waiting = choose(
            active, count, key, now, duration_s, gpus, work, rules, floor, ends, size
        )
        decide = next_multiple(now, rules)


@inner
def next_multiple(now: int, rules: Rules) -> int:
    return (now // rules.every_s + 1) * rules.every_s if rules.every_s else NEVER


@inner
def only_due(ends: Ints, size: int, work: Work, jobs: int) -> Any:
    """The heap without ends that evictions made void, in room for twice as many."""
    kept, left = np.empty(2 * len(ends), dtype=np.int64), 0
    for i in range(size):
        if work.due[ends[i] % jobs] == ends[i] // jobs:
            left = push(kept, 0, left, ends[i])
    return kept, left


@inner
def without_ended(active: Ints, count: int, work: Work) -> int:
    kept = 0
    for i in range(count):
        if work.end[active[i]] < 0:
            active[kept] = active[i]
            kept += 1
    return kept


@inner
def learn(job: int, duration_s: Ints, classes: Classes, times: Any) -> None:
    for row in (classes.own[job], classes.queue[job], classes.rows - 1):
        note_run_time(times, row, float(duration_s[job]))


@inner
def progress(job: int, now: int, work: Work) -> int:
    """Useful run time, that of the present run included."""
    ran = max(0, now - work.warm[job]) if work.due[job] >= 0 else 0
    return work.saved[job] + ran


@inner
def rank_of(
    job: int,
    now: int,
    duration_s: Ints,
    gpus: Ints,
    work: Work,
    rules: Rules,
    classes: Classes,
    times: Any,
) -> float:
    """What was attained is all that was received: counted without lost work, a loss would lift its loser."""
    if rules.rank == 0:
        return float(duration_s[job] - progress(job, now, work))
    attained = work.held[job]
    if work.due[job] >= 0:
        attained += (now - work.since[job]) * gpus[job]
    if rules.rank == 1:
        return 1.0 if attained > rules.threshold else 0.0
    row = known_row(times, classes.own[job], classes.queue[job], classes.rows - 1)
    return index_at(times, row, attained / gpus[job]) * gpus[job]


@inner
def choose(
    active: Ints,
    count: int,
    key: Floats,
    now: int,
    duration_s: Ints,
    gpus: Ints,
    work: Work,
    rules: Rules,
    floor: Floor,
    ends: Ints,
    size: int,
) -> Any:
    """Evicts who is passed over, starts who fits; returns the size of ``ends`` and how many wait."""
    order = np.argsort(key[active[:count]], kind="mergesort")
    left = len(floor.free) * floor.per_node
    chosen = np.zeros(count, dtype=np.bool_)
    for i in range(count):
        job = active[order[i]]
        if gpus[job] <= left:
            left -= gpus[job]
            chosen[i] = True
        elif work.due[job] >= 0:
            evict(job, now, gpus, work, rules, floor)
    waiting, least = 0, NEVER
    for i in range(count):
        job = active[order[i]]
        if work.due[job] >= 0:
            continue
        if not chosen[i] or gpus[job] >= least:
            waiting += 1
            continue
        used = place(floor.free, floor.per_node, gpus[job], floor.nodes[job], floor.held[job])
        if used:
            start(job, now, used, duration_s, work, rules, floor)
            size = push(ends, 0, size, work.due[job] * len(duration_s) + job)
        else:
            waiting += 1
            if gpus[job] <= floor.per_node:
                least = gpus[job]
    return size, waiting


@inner
def start(
    job: int, now: int, used: int, duration_s: Ints, work: Work, rules: Rules, floor: Floor
) -> None:
    floor.used[job] = used
    work.since[job] = now
    work.warm[job] = now + (rules.restart_s if work.evictions[job] else 0)
    work.due[job] = work.warm[job] + duration_s[job] - work.saved[job]
    if work.first[job] < 0:
        work.first[job] = now


@inner
def stop(job: int, now: int, gpus: Ints, work: Work, floor: Floor) -> None:
    release(floor.free, floor.nodes[job], floor.held[job], floor.used[job])
    work.held[job] += (now - work.since[job]) * gpus[job]
    work.due[job] = -1


@inner
def evict(job: int, now: int, gpus: Ints, work: Work, rules: Rules, floor: Floor) -> None:
    done = progress(job, now, work)
    if rules.checkpoint_s > 1:
        done = work.saved[job] + (done - work.saved[job]) // rules.checkpoint_s * rules.checkpoint_s
    work.saved[job] = done
    work.evictions[job] += 1
    stop(job, now, gpus, work, floor)
