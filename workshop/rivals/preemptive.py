"""Rivals that evict: at each decision all work, running or not, is ranked anew, and the best of it runs.

The walk goes down the ranking while GPUs last (by number); who runs and is passed over is evicted, who waits
and is chosen starts where it fits. Equal ranks go by arrival, and at equal rank who runs is not told from who
waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.merit.gittins import index_at
from scheduling.simulation.traces import Trace
from workshop.simulator.replay import check_size
from workshop.simulator.result import Replay

from .costs import Costs
from .history import Past, known_of, learn, new_past
from .queues import NEVER, Floor, floor_of
from .running import (
    Work,
    arrive,
    end,
    evict,
    new_work,
    next_arrival,
    next_end,
    progress,
    replayed,
    seat,
    stop,
)


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


class Rules(NamedTuple):
    rank: int
    every_s: int
    threshold: int


class Present(NamedTuple):
    """Jobs that have arrived and not ended, in ``jobs``; ``counts``: so many of them, so many that wait."""

    jobs: Ints
    key: Floats  # rank, by job of the trace
    counts: Ints


def replay_preemptive(trace: Trace, nodes: int, rule: Preemption, costs: Costs) -> Replay:
    """All jobs in one queue on ``nodes`` nodes. Raises TooLargeError."""
    check_size(trace, nodes)
    work = new_work(trace, costs)
    rules = Rules(int(rule.rank), rule.every_s, rule.threshold_gpu_s)
    live(work, rules, floor_of(trace, nodes), new_past(trace))
    return replayed(trace, nodes, work)


@kernel
def live(work: Work, rules: Rules, floor: Floor, past: Past) -> None:
    """The event loop: ends, arrivals, then a decision where one is due and anybody waits."""
    jobs = len(work.gpus)
    present = Present(np.empty(jobs, np.int64), np.empty(jobs), np.zeros(2, np.int64))
    decide = NEVER
    while present.counts[0] or next_arrival(work) != NEVER:
        now = min(next_arrival(work), next_end(work))
        if present.counts[1]:
            now = min(now, decide)
        let_end(now, work, floor, past, present)
        let_arrive(now, work, present)
        decide = next_multiple(now, rules)
        if present.counts[1] and (rules.every_s == 0 or now % rules.every_s == 0):
            for i in range(present.counts[0]):
                job = present.jobs[i]
                present.key[job] = rank_of(job, now, work, rules, past)
            choose(now, work, floor, present)


@inner
def next_multiple(now: int, rules: Rules) -> int:
    return (now // rules.every_s + 1) * rules.every_s if rules.every_s else NEVER


@inner
def let_end(now: int, work: Work, floor: Floor, past: Past, present: Present) -> None:
    job = end(now, work)
    if job < 0:
        return
    while job >= 0:
        stop(job, now, work, floor)
        learn(job, work, past)
        job = end(now, work)
    count = 0
    for i in range(present.counts[0]):
        if work.end[present.jobs[i]] < 0:
            present.jobs[count] = present.jobs[i]
            count += 1
    present.counts[0] = count


@inner
def let_arrive(now: int, work: Work, present: Present) -> None:
    job = arrive(now, work)
    while job >= 0:
        present.jobs[present.counts[0]] = job
        present.counts[:] += 1
        job = arrive(now, work)


@inner
def rank_of(job: int, now: int, work: Work, rules: Rules, past: Past) -> float:
    """What was attained is all that was received: counted without lost work, a loss would lift its loser."""
    if rules.rank == 0:
        return float(work.duration_s[job] - progress(job, now, work))
    attained = work.gpu_s[job]
    if work.free_at[job] >= 0:
        attained += (now - work.since[job]) * work.gpus[job]
    if rules.rank == 1:
        return 1.0 if attained > rules.threshold else 0.0
    row = known_of(job, past)
    return index_at(past.times, row, stepped(attained / work.gpus[job])) * work.gpus[job]


@inner
def stepped(age_s: float) -> float:
    """Down to a power of two minutes: a rank that moved all the time would evict back and forth."""
    return 60.0 * 2.0 ** np.floor(np.log2(age_s / 60.0)) if age_s >= 60.0 else 0.0


@inner
def choose(now: int, work: Work, floor: Floor, present: Present) -> None:
    """Evicts who is passed over, starts who fits."""
    count = present.counts[0]
    order = np.argsort(present.key[present.jobs[:count]], kind="mergesort")
    ranked = present.jobs[:count][order]
    chosen = passed_over(ranked, now, work, floor)
    waiting, least = 0, NEVER
    for i in range(count):
        job = ranked[i]
        if work.free_at[job] >= 0:
            continue
        if chosen[i] and work.gpus[job] < least:
            if seat(job, now, work, floor):
                continue
            if work.gpus[job] <= floor.per_node:
                least = work.gpus[job]
        waiting += 1
    present.counts[1] = waiting


@inner
def passed_over(ranked: Ints, now: int, work: Work, floor: Floor) -> Any:
    """Jobs by rank while GPUs last; those that run and are not among them are evicted."""
    left = len(floor.free) * floor.per_node
    chosen = np.zeros(len(ranked), dtype=np.bool_)
    for i in range(len(ranked)):
        job = ranked[i]
        if work.gpus[job] <= left:
            left -= work.gpus[job]
            chosen[i] = True
        elif work.free_at[job] >= 0:
            evict(job, now, work, floor)
    return chosen
