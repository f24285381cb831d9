"""Lower priority of the victim's own leaf leaves first, wherever it sits: higher priority would take its room
in the next plan.
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.rules import VictimRequest, protected_until
from scheduling.engine.state.session import Session
from scheduling.engine.statement.statement import LEAVES


@inner
def with_lower_beside(world: Session, request: VictimRequest) -> int:
    """Of the chosen one of the highest priority in whose leaf lower priority may leave that is not chosen,
    -1 if there is none.
    """
    work, log, value = world.work, world.candidates.log, world.ranks.value
    best = -1
    for k in range(log.first, log.size):
        v = log.slot[k]
        if log.part[k] != LEAVES or not _leaves_lower(world, request, v):
            continue
        if best < 0 or value[work.priority[v]] > value[work.priority[best]]:
            best = v
    return best


@inner
def _leaves_lower(world: Session, request: VictimRequest, v: int) -> bool:
    """Whether the leaf of ``v`` runs lower priority that is neither chosen nor barred nor young."""
    work, candidates, value = world.work, world.candidates, world.ranks.value
    q, number = work.queue[v], candidates.bounds.search_number[0]
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        x = candidates.slot[k]
        lower = value[work.priority[x]] < value[work.priority[v]] and work.gpu_class[x] == request.c
        stays = not candidates.log.leaves[x] and candidates.barred[x] != number
        if lower and stays and world.rules.now >= protected_until(world, request, x):
            return True
    return False


@inner
def takes_lower(world: Session, v: int) -> bool:
    """Whether lower priority of the leaf of ``v`` is among the chosen."""
    work, log, value = world.work, world.candidates.log, world.ranks.value
    for k in range(log.first, log.size):
        x = log.slot[k]
        if work.queue[x] == work.queue[v] and value[work.priority[x]] < value[work.priority[v]]:
            return True
    return False


@inner
def bar_from(world: Session, request: VictimRequest, v: int) -> None:
    """The search that follows takes nobody of the leaf of ``v`` whose priority is as high, or higher."""
    work, candidates, value = world.work, world.candidates, world.ranks.value
    q = work.queue[v]
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        x = candidates.slot[k]
        if value[work.priority[x]] >= value[work.priority[v]]:
            candidates.barred[x] = candidates.bounds.search_number[0]
