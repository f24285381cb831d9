"""Kueue's fair sharing among queues of one cohort (KEP-1714), without priorities.

The *share* of a queue is what it borrows over what the cohort could lend it, by its weight. In a cycle each
queue names the head of its line; the one whose queue has the least share with it goes first
(``runTournament`` in ``pkg/scheduler/fair_sharing_iterator.go``). Work that does not fit is parked until
work ends or is evicted, and the next of its line is tried in the next cycle (BestEffortFIFO).

Work that does not fit may evict (``reclaimWithinCohort: Any``): again and again the queue with the greatest
share loses what it started last, as long as a rule allows it (``pkg/scheduler/preemption/fair_strategy.go``).
Inside its own quota the newcomer may evict all that is borrowed. Beyond it, its share with the new work has
to be at most the other's without the victim (LessThanOrEqualToFinalShare); what that leaves over is asked
once a queue whether the newcomer's share is below the other's with the victim (LessThanInitialShare). Victims
without whom it fits as well are spared. Fitting means nodes too, as with topology-aware scheduling.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Ints
from scheduling.simulation.traces import Trace
from workshop.simulator.result import Replay

from .costs import Costs
from .queues import NEVER
from .sharing import (
    Quotas,
    World,
    advance,
    evict_picked,
    fits,
    head,
    keep_all,
    pick,
    played,
    spare,
    start,
    youngest,
)


def replay_kueue(trace: Trace, nodes: int, costs: Costs, quotas: Quotas | None = None) -> Replay:
    """All jobs on ``nodes`` pooled nodes; without ``quotas`` those of the static partition. Raises
    TooLargeError."""
    return played(trace, nodes, costs, quotas, live)


@kernel
def live(world: World) -> None:
    now = advance(world)
    while now != NEVER:
        while cycle(now, world):
            pass
        now = advance(world)


@inner
def cycle(now: int, world: World) -> bool:
    """Each queue's head once; whether any queue had one."""
    queues = len(world.used)
    named = np.empty(queues, np.int64)
    for queue in range(queues):
        named[queue] = head(queue, world.lines)
    found = winner(named, world)
    any_named = found >= 0
    while found >= 0:
        # Work that was evicted from this line meanwhile may stand before whom it named.
        bucket = world.lines.bucket[named[found]]
        job, named[found] = world.lines.heaps[world.lines.base[bucket]], -1
        if not start(job, now, world):
            if make_room(job, now, world):
                evict_picked(now, world)
                start(job, now, world)
            else:
                world.lines.parked[bucket] = 1
        found = winner(named, world)
    return any_named


@inner
def winner(named: Ints, world: World) -> int:
    """The queue with the least share once its head has started; at a tie whose head came first; or -1."""
    best, least = -1, 0.0
    for queue in range(len(named)):
        if named[queue] < 0:
            continue
        with_it = share(queue, world.work.gpus[named[queue]], world)
        if best < 0 or with_it < least or (with_it == least and named[queue] < named[best]):
            best, least = queue, with_it
    return best


@inner
def share(queue: int, more: int, world: World) -> float:
    """What the queue borrows with ``more`` GPUs, over what the cohort has to lend and its weight."""
    quotas = world.quotas
    borrowed = (world.used[queue] + more) * 1000 - quotas.nominal[queue]
    if borrowed <= 0:
        return 0.0
    if quotas.weight[queue] == 0:
        return np.inf
    return borrowed * 1000.0 / quotas.nominal.sum() / quotas.weight[queue]


@inner
def make_room(job: int, now: int, world: World) -> bool:
    """Picks who leaves so that ``job`` fits; whether that is possible (else nobody is picked)."""
    mine = world.queue[job]
    new = share(mine, world.work.gpus[job], world)
    tried = np.zeros(world.counts[0], np.int64)
    if finally_less(job, new, now, tried, world) or initially_less(job, new, now, tried, world):
        spare(job, world)
        return True
    keep_all(world)
    return False


@inner
def finally_less(job: int, new: float, now: int, tried: Ints, world: World) -> bool:
    """Rule S2-a; ``tried`` becomes 1 where it spared who runs there. Whether ``job`` fits now."""
    below = np.full(len(world.used), world.counts[0])
    queue = greatest(job, below, world)
    while queue >= 0:
        hopeless = new > share(queue, 0, world)  # so it is by S2-b
        at = -1 if hopeless else youngest(queue, below[queue], now, world)
        below[queue] = max(at, 0)
        if at >= 0:
            other = world.runs[at]
            if new == 0 or new <= share(queue, -world.work.gpus[other], world):
                pick(other, world)
                if fits(job, world):
                    return True
            else:
                tried[at] = 1
        queue = greatest(job, below, world)
    return False


@inner
def initially_less(job: int, new: float, now: int, tried: Ints, world: World) -> bool:
    """Rule S2-b, once a queue, on those whom S2-a spared. Whether ``job`` fits now."""
    below = np.full(len(world.used), world.counts[0])
    queue = greatest(job, below, world)
    while queue >= 0:
        below[queue] = 0
        if new < share(queue, 0, world):
            for at in range(world.counts[0] - 1, -1, -1):
                if tried[at] and world.queue[world.runs[at]] == queue:
                    pick(world.runs[at], world)
                    if fits(job, world):
                        return True
                    break
        queue = greatest(job, below, world)
    return False


@inner
def greatest(job: int, below: Ints, world: World) -> int:
    """The queue with the greatest share of those that borrow and have somebody left to ask, or -1."""
    best, most = -1, 0.0
    for queue in range(len(below)):
        if queue == world.queue[job] or below[queue] == 0:
            continue
        its = share(queue, 0, world)
        if its > most:
            best, most = queue, its
    return best
