"""Holding free GPUs for the first gang that is owed them and does not fit yet.

It claims seats on the nodes that are nearest to having room for it, so nothing that comes after it
can delay it there; everything else may start elsewhere. One gang a GPU class holds nodes in a cycle.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.arrays import ANYWHERE, GPUS, LATER, NOW
from scheduling.engine.compiled import inner
from scheduling.engine.fitness import slots_when_empty
from scheduling.engine.seating import free_of, sit
from scheduling.engine.world import World


@inner
def hold_nodes(world: World, w: int, c: int) -> None:
    """Claim the least members of ``w`` on the emptiest nodes, inside its required domain if any.

    Its wait becomes a reservation, unless a protection is what it waits for.
    """
    out, work, seats = world.out, world.work, world.seats
    level = work.required[w]
    domain = _emptiest_domain(world, w, c, level) if level != ANYWHERE else 0
    sat, held = 0, 0
    for i in range(world.nodes.class_start[c], world.nodes.class_start[c + 1]):
        n = world.nodes.of_class[i]
        inside = level == ANYWHERE or world.nodes.domain[level, n] == domain
        seats.slots[n] = slots_when_empty(world.nodes, work, w, n) if inside else 0
    while sat < work.least[w]:
        n = _emptiest(world, c)
        if n < 0:
            return
        take = min(work.least[w] - sat, seats.slots[n])
        held += max(0, min(free_of(world.room, GPUS, n, NOW), take * work.need[GPUS, w]))
        seats.slots[n] = 0
        for _ in range(take):
            sit(world.room, work, w, n, -1, LATER)
        sat += take
    world.book.holder[c] = w
    out.action[w] = codes.RESERVE
    if out.reason[w] in (codes.NO_FREE_GPUS, codes.FRAGMENTED, codes.NO_ROOM_IN_TOPOLOGY):
        out.figures[w, 4] = held
        out.reason[w] = codes.RESERVED


@inner
def _emptiest(world: World, c: int) -> int:
    best, most = -1, 0
    for i in range(world.nodes.class_start[c], world.nodes.class_start[c + 1]):
        n = world.nodes.of_class[i]
        free = world.room.later[GPUS, n]
        if world.seats.slots[n] > 0 and (best < 0 or free > most):
            best, most = n, free
    return best


@inner
def _emptiest_domain(world: World, w: int, c: int, level: int) -> int:
    """The domain that could hold the gang and has most free GPUs, lowest name on ties."""
    nodes, work = world.nodes, world.work
    first, last = nodes.class_start[c], nodes.class_start[c + 1]
    size = nodes.domain[level].max() + 1
    free, slots = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for i in range(first, last):
        n = nodes.of_class[i]
        free[nodes.domain[level, n]] += world.room.later[GPUS, n]
        slots[nodes.domain[level, n]] += slots_when_empty(nodes, work, w, n)
    best = -1
    for d in range(size):
        if slots[d] >= work.least[w] and (best < 0 or free[d] > free[best]):
            best = d
    return best
