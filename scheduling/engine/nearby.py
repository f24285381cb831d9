"""Where a hunt has to look: nodes with work that its rule might take, and what they lose at least."""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import EPS, GPUS, LATER
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import RECLAIM, Hunt
from scheduling.engine.prey import extra_of, gpus_of
from scheduling.engine.seating import free_of
from scheduling.engine.world import World


@inner
def mark_nodes(world: World, hunt: Hunt) -> None:
    """Number the hunt and mark its nodes: those of the own leaf, or of all leaves above fair share."""
    world.prey.listed[1] += 1
    if hunt.rule != RECLAIM:
        _mark_queue(world, hunt, world.work.queue[hunt.w])
        return
    held, fair = world.book.held, world.division.fair
    for q in range(1, world.tree.parent.size):
        if held[hunt.c, q] > fair[hunt.c, q] + EPS:
            _mark_queue(world, hunt, q)


@inner
def _mark_queue(world: World, hunt: Hunt, q: int) -> None:
    """The nodes of what runs in ``q`` itself on the class of ``hunt`` and has not been chosen yet."""
    work, line, prey, holds = world.work, world.line, world.prey, world.holds
    for k in range(line.runs[q + 1], line.runs[q + 2]):
        v = line.running[k]
        if work.gpu_class[v] != hunt.c or prey.chosen[v] or work.leaving[v]:
            continue
        if work.priority[v] < 0 or not world.ranks.preemptible[work.priority[v]]:
            continue
        lost = 0.0 if extra_of(work, v) > 0 else prey.lost[v] + gpus_of(work, v) / 1000.0
        h = holds.head[v]
        while h >= 0:
            _mark(world, holds.node[h], lost, holds.members[h] * work.need[GPUS, v])
            h = holds.next[h]


@once
def _mark(world: World, n: int, lost: float, gpus: int) -> None:
    """Work on ``n`` that holds ``gpus`` there loses ``lost`` if it goes."""
    prey = world.prey
    if prey.near[n] != prey.listed[1]:
        prey.near[n], prey.rate[n] = prey.listed[1], np.inf
    prey.rate[n] = min(prey.rate[n], lost / gpus if gpus > 0 else 0.0)


@once
def least_cost(world: World, w: int, n: int) -> float:
    """A lower bound of what a seat of ``w`` on ``n`` loses; 0 where whole GPUs are not what it lacks."""
    need = world.work.need[GPUS, w]
    lacks = need - free_of(world.room, GPUS, n, LATER)
    return world.prey.rate[n] * lacks if need >= 1000 and lacks > 0 else 0.0
