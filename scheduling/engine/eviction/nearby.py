"""Where a hunt has to look: nodes with work that its rule might take, and what they lose at least."""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.eviction.rules import DELAY, PREEMPT, RECLAIM, STRICT, Hunt
from scheduling.engine.eviction.victim_order import rate_nodes, rate_of
from scheduling.engine.placement.node_room import ONE, free_of, may_use
from scheduling.engine.state.session import World
from scheduling.engine.state.units import GPUS, LATER
from scheduling.engine.state.victims import ANY, READY


@inner
def mark_nodes(world: World, hunt: Hunt) -> None:
    """Number the hunt; for a preemption note the nodes of its queue's own work."""
    work, prey, holds = world.work, world.prey, world.holds
    prey.hunts[0] += 1
    if hunt.rule != PREEMPT:
        rate_nodes(world, hunt.stretch)
    if hunt.rule == RECLAIM:
        return
    q = work.queue[hunt.w]
    for k in range(prey.leaf_start[q], prey.leaf_start[q + 1]):
        v = prey.in_leaf[k]
        if work.gpu_class[v] != hunt.c or prey.chosen[v]:
            continue
        h = holds.head[v]
        while h >= 0:
            n, rate = holds.node[h], rate_of(world, v, h)
            if prey.near[n] == prey.hunts[0]:
                rate = min(rate, prey.own_rate[n])
            prey.near[n], prey.own_rate[n] = prey.hunts[0], rate
            h = holds.next[h]


@once
def _row_of(hunt: Hunt) -> int:
    """Whom a reclaim may take: who spares gangs that lie partly inside their queue's share, and no min run
    time, looks at those that are ready only.
    """
    return READY if not hunt.owed and hunt.overlook in (STRICT, DELAY) else ANY


@once
def is_near(world: World, hunt: Hunt, n: int) -> bool:
    """Whether node ``n``, on which the workload may run, has work that the rule of ``hunt`` might take, for a
    reclaim enough for a seat.
    """
    if not may_use(world.room, world.work, hunt.w, n):
        return False
    prey, need = world.prey, world.work.need[GPUS, hunt.w]
    own = prey.near[n] == prey.hunts[0]
    if own or hunt.rule == PREEMPT:
        return bool(own)
    row = _row_of(hunt)
    if prey.rate[row, n] == np.inf:
        return False
    return need < ONE or free_of(world.room, GPUS, n, LATER) + prey.yields[row, n] >= need


@once
def least_cost(world: World, hunt: Hunt, n: int) -> float:
    """A lower bound of what a seat on ``n`` loses; 0 where whole GPUs are not what the workload lacks."""
    need = world.work.need[GPUS, hunt.w]
    lacks = need - free_of(world.room, GPUS, n, LATER)
    rate = world.prey.rate[_row_of(hunt), n] if hunt.rule != PREEMPT else np.inf
    if world.prey.near[n] == world.prey.hunts[0]:
        rate = min(rate, world.prey.own_rate[n])
    return rate * lacks if need >= 1000 and lacks > 0 and rate < np.inf else 0.0
