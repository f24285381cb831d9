"""Lower priority of the victim's own leaf leaves first, wherever it sits: higher priority would take its room
in the next plan.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.rules import VictimRequest, protected_until
from scheduling.engine.state.input import Ranks, Work
from scheduling.engine.state.session import Session
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import LEAVES

UNSEEN, NONE_LOWER = -(1 << 62), 1 << 62
"""In place of the value of a priority: no leaf was looked through yet; nobody of it may leave."""


@inner
def with_lower_beside(world: Session, request: VictimRequest) -> int:
    """Of the chosen one of the highest priority in whose leaf lower priority may leave that is not chosen,
    -1 if there is none.
    """
    work, log, value = world.work, world.candidates.log, world.ranks.value
    lowest = np.full(world.candidates.leaf_begin.size, UNSEEN)
    best, highest = -1, UNSEEN
    for k in range(log.first, log.size):
        v = log.slot[k]
        q, mine = work.queue[v], value[work.priority[v]]
        if log.part[k] != LEAVES or mine <= highest:
            continue
        if lowest[q] == UNSEEN:
            lowest[q] = _lowest_that_may_leave(world, request, q)
        if lowest[q] < mine:
            best, highest = v, mine
    return best


@inner
def _lowest_that_may_leave(world: Session, request: VictimRequest, q: int) -> int:
    """The lowest value of a priority that runs in leaf ``q`` and is neither chosen nor barred nor young;
    NONE_LOWER if there is none.
    """
    work, candidates, value = world.work, world.candidates, world.ranks.value
    number, lowest = candidates.bounds.search_number[0], NONE_LOWER
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        x = candidates.slot[k]
        mine = value[work.priority[x]]
        if mine >= lowest or work.gpu_class[x] != request.c:
            continue
        stays = not candidates.log.leaves[x] and candidates.barred[x] != number
        if stays and world.rules.now >= protected_until(world, request, x):
            lowest = mine
    return int(lowest)


@inner
def takes_lower(work: Work, candidates: Candidates, ranks: Ranks, v: int) -> bool:
    """Whether lower priority of the leaf of ``v`` is among the chosen."""
    log, value = candidates.log, ranks.value
    for k in range(log.first, log.size):
        x = log.slot[k]
        if work.queue[x] == work.queue[v] and value[work.priority[x]] < value[work.priority[v]]:
            return True
    return False


@inner
def bar_from(work: Work, candidates: Candidates, ranks: Ranks, v: int) -> None:
    """The search that follows takes nobody of the leaf of ``v`` whose priority is as high, or higher."""
    q, value = work.queue[v], ranks.value
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        x = candidates.slot[k]
        if value[work.priority[x]] >= value[work.priority[v]]:
            candidates.barred[x] = candidates.bounds.search_number[0]
