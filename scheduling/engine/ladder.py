"""In which order victims are looked at: least work lost first. Each part of the prey is put in order when
first somebody looks there.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import GPUS, Ints, Work
from scheduling.engine.compiled import inner, once
from scheduling.engine.prey import Prey, extra_of, gpus_of
from scheduling.engine.world import World


@inner
def order_leaf(world: World, q: int) -> None:
    """Puts ``prey.in_leaf`` in order for leaf ``q``."""
    prey = world.prey
    if not prey.leaf_done[q]:
        prey.leaf_done[q] = True
        _order(world.work, prey, prey.in_leaf, prey.leaf_start[q], prey.leaf_start[q + 1])


@inner
def order_class(world: World, c: int) -> None:
    """Fills ``prey.ranked`` for class ``c``, in order."""
    work, prey = world.work, world.prey
    if prey.class_done[c]:
        return
    prey.class_done[c] = True
    at = prey.begin[c]
    for k in range(prey.leaf_start[-1]):
        if work.gpu_class[prey.in_leaf[k]] == c:
            prey.ranked[at] = prey.in_leaf[k]
            at += 1
    _order(work, prey, prey.ranked, prey.begin[c], at)


@inner
def order_node(world: World, n: int) -> None:
    """Fills ``prey.on_node`` for node ``n``, in order; a gang is there once for each of its holds."""
    prey, room = world.prey, world.room
    if prey.node_done[n]:
        return
    prey.node_done[n] = True
    at = prey.start[n] = prey.filled[0]
    h = room.first[n]
    while h >= 0:
        v = room.owner[h]
        if prey.listing[v] == prey.listing[-1]:
            prey.on_node[at] = v
            at += 1
        h = room.after[h]
    prey.stop[n] = prey.filled[0] = at
    _order(world.work, prey, prey.on_node, prey.start[n], at)


@inner
def rate_nodes(world: World) -> None:
    """What a milli-GPU on each node costs at least, whoever there leaves."""
    prey, holds = world.prey, world.holds
    if prey.rated[0]:
        return
    prey.rated[0] = True
    for n in range(prey.rate.size):
        prey.rate[n] = np.inf
    for k in range(prey.leaf_start[-1]):
        v = prey.in_leaf[k]
        h = holds.head[v]
        while h >= 0:
            n = holds.node[h]
            prey.rate[n] = min(prey.rate[n], rate_of(world, v, h))
            h = holds.next[h]


@once
def rate_of(world: World, v: int, h: int) -> float:
    """What a milli-GPU of hold ``h`` costs at least. Members that a gang can do without cost next to
    nothing, so they bound nothing.
    """
    work, gpus = world.work, world.holds.members[h] * world.work.need[GPUS, v]
    free = gpus == 0 or extra_of(work, v) > 0
    return 0.0 if free else (world.prey.lost[v] + gpus_of(work, v) / 1000.0) / gpus


@inner
def _order(work: Work, prey: Prey, table: Ints, first: int, last: int) -> None:
    """Bottom-up merge sort of ``table[first:last]``."""
    width, spare = 1, prey.spare
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and not _after(work, prey, table[i], table[j])):
                    spare[k - first] = table[i]
                    i += 1
                else:
                    spare[k - first] = table[j]
                    j += 1
        for k in range(first, last):
            table[k] = spare[k - first]
        width *= 2


@inner
def _after(work: Work, prey: Prey, a: int, b: int) -> bool:
    """Ladder: least work lost, started last, lowest name."""
    if prey.lost[a] != prey.lost[b]:
        return prey.lost[a] > prey.lost[b]
    if work.started[a] != work.started[b]:
        return work.started[a] < work.started[b]
    return work.tie[a] > work.tie[b]
