"""Where a hunt has to look: nodes with work that its rule might take, and what they lose at least."""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import GPUS, LATER
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import RECLAIM, Hunt
from scheduling.engine.seating import free_of
from scheduling.engine.world import World


@inner
def mark_nodes(world: World, hunt: Hunt) -> None:
    """Number the hunt; inside one queue only the nodes of its own work can give anything."""
    work, line, prey, holds = world.work, world.line, world.prey, world.holds
    prey.hunts[0] += 1
    if hunt.rule == RECLAIM:
        return
    q = work.queue[hunt.w]
    for k in range(line.runs[q + 1], line.runs[q + 2]):
        v = line.running[k]
        if work.gpu_class[v] != hunt.c or prey.chosen[v] or work.leaving[v]:
            continue
        h = holds.head[v]
        while h >= 0:
            prey.near[holds.node[h]] = prey.hunts[0]
            h = holds.next[h]


@once
def is_near(world: World, hunt: Hunt, n: int) -> bool:
    """Whether node ``n`` has work that the rule of ``hunt`` might take."""
    prey = world.prey
    if hunt.rule == RECLAIM:
        return prey.rate[n] < np.inf
    return prey.near[n] == prey.hunts[0]


@once
def least_cost(world: World, w: int, n: int) -> float:
    """A lower bound of what a seat of ``w`` on ``n`` loses; 0 where whole GPUs are not what it lacks."""
    need = world.work.need[GPUS, w]
    lacks = need - free_of(world.room, GPUS, n, LATER)
    rate = world.prey.rate[n]
    return rate * lacks if need >= 1000 and lacks > 0 and rate < np.inf else 0.0
