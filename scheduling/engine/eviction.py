"""The act on one victim: what it costs, whether the rules allow it, what it gives back.

Reclaim takes from another queue only what lies above fair share in every queue between the victim and
the common ancestor. Preempt takes lower priority inside the same leaf. Both spare work inside its min
run time, queues whose eviction budget is spent, and what would pass the eviction cap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.arrays import EPS, GPUS, RUNNING, UNLIMITED, Holds, Ranks, Rules, Work
from scheduling.engine.compiled import inner, once
from scheduling.engine.seating import leave, stay
from scheduling.engine.sorting import order_of
from scheduling.engine.standing import charge, common_ancestor
from scheduling.engine.world import Prey, World

RECLAIM, PREEMPT = 0, 1
STRICT, PROTECTED, BUDGET, CAP = 0, 1, 2, 3
"""What a search overlooks: nothing, protection by time, the queues' budgets, the eviction cap."""


class Hunt(NamedTuple):
    """One search: for workload ``w`` on class ``c``, by ``rule``, below queue ``top``.

    ``straddle``: gangs that lie partly inside the victim's fair share may be taken. ``need``: milli-GPU
    the workload asks for.
    """

    w: int
    c: int
    rule: int
    top: int
    straddle: bool
    overlook: int
    need: int


@once
def gpus_of(work: Work, v: int) -> int:
    return work.need[GPUS, v] * work.members[v]


@inner
def work_lost(work: Work, v: int, now: float) -> float:
    """GPU-seconds an eviction throws away: GPUs x (time since the last checkpoint + restart)."""
    since = max(work.checkpointed[v], work.started[v])
    return gpus_of(work, v) / 1000.0 * (max(0.0, now - since) + work.restart[v])


@inner
def find_prey(work: Work, ranks: Ranks, holds: Holds, rules: Rules, prey: Prey) -> None:
    """Fill ``prey``. Ladder: least work lost, started last, lowest name."""
    count = 0
    for q in range(prey.lowest.size):
        prey.lowest[q] = UNLIMITED
    for w in range(work.phase.size):
        prey.chosen[w] = False
        if work.phase[w] != RUNNING or work.leaving[w] or work.queue[w] < 0:
            continue
        if work.priority[w] < 0 or not ranks.preemptible[work.priority[w]]:
            continue
        prey.lost[w] = work_lost(work, w, rules.now)
        prey.ranked[count] = w
        count += 1
    key = np.empty(count)
    for column in range(3):
        for k in range(count):
            w = prey.ranked[k]
            key[k] = (float(work.tie[w]), -work.started[w], prey.lost[w])[column]
        order = order_of(key)
        for k in range(count):
            prey.on_node[k] = prey.ranked[order[k]]
        for k in range(count):
            prey.ranked[k] = prey.on_node[k]
    for k in range(count, prey.ranked.size):
        prey.ranked[k] = -1
    _list_by_node(holds, prey, count)
    for k in range(count):
        w = prey.ranked[k]
        q = work.queue[w]
        prey.lowest[q] = min(prey.lowest[q], ranks.value[work.priority[w]])


@inner
def _list_by_node(holds: Holds, prey: Prey, count: int) -> None:
    """Counting sort of the victims' holds by node; it keeps their order."""
    for n in range(prey.start.size):
        prey.start[n] = 0
    for k in range(count):
        h = holds.head[prey.ranked[k]]
        while h >= 0:
            prey.start[holds.node[h] + 2] += 1
            h = holds.next[h]
    for n in range(2, prey.start.size):
        prey.start[n] += prey.start[n - 1]
    for k in range(count):
        h = holds.head[prey.ranked[k]]
        while h >= 0:
            at = holds.node[h] + 1
            prey.on_node[prey.start[at]] = prey.ranked[k]
            prey.start[at] += 1
            h = holds.next[h]


@once
def release(world: World, v: int) -> None:
    """Reckon with ``v`` gone: its room is free later, its queues hold less, their budgets shrink."""
    _let(world, v, 1)


@once
def restore(world: World, v: int) -> None:
    """Undo ``release``."""
    _let(world, v, -1)


@inner
def _let(world: World, v: int, sign: int) -> None:
    work, holds, book, tree = world.work, world.holds, world.book, world.tree
    h = holds.head[v]
    while h >= 0:
        if sign > 0:
            leave(world.room, work, v, holds.node[h], holds.device[h], holds.members[h])
        else:
            stay(world.room, work, v, holds.node[h], holds.device[h], holds.members[h])
        h = holds.next[h]
    fixed = work.priority[v] >= 0 and not world.ranks.preemptible[work.priority[v]]
    charge(world, v, work.gpu_class[v], -sign * work.members[v], fixed)
    gpus = sign * gpus_of(work, v)
    book.spent[0] += gpus
    q = work.queue[v]
    while q > 0:
        book.budget[q] -= gpus
        q = tree.parent[q]


@inner
def choose(world: World, v: int) -> None:
    release(world, v)
    prey = world.prey
    prey.chosen[v] = True
    prey.picked[prey.count[0]] = v
    prey.count[0] += 1


@inner
def drop(world: World, keep: int) -> None:
    """Put back all of the chosen but the first ``keep``."""
    prey = world.prey
    while prey.count[0] > keep:
        prey.count[0] -= 1
        v = prey.picked[prey.count[0]]
        prey.chosen[v] = False
        restore(world, v)


@once
def protected_until(world: World, v: int) -> float:
    return world.work.started[v] + world.ranks.min_run[world.work.priority[v]]


@inner
def allowed(world: World, hunt: Hunt, v: int) -> bool:
    """Whether the rules let ``v`` go for the workload, as things stand now.

    What forbids it though the rule would take it is noted in ``book.forbidden``. The eviction cap is
    asked for ``v`` alone here, and for all victims together once nobody needless is among them.
    """
    work = world.work
    if work.gpu_class[v] != hunt.c or not _is_fair_game(world, hunt, v):
        return False
    gpus, forbidden = gpus_of(work, v), STRICT
    if hunt.overlook != PROTECTED and world.rules.now < protected_until(world, v):
        forbidden = PROTECTED
    elif hunt.overlook != BUDGET and not _in_budget(world, work.queue[v], gpus):
        forbidden = BUDGET
    elif hunt.overlook != CAP and gpus > world.rules.eviction_cap * hunt.need:
        forbidden = CAP
    world.book.forbidden[forbidden] = 1
    return forbidden == STRICT


@once
def _is_fair_game(world: World, hunt: Hunt, v: int) -> bool:
    """Lower priority in the same leaf, or above fair share in another."""
    if hunt.rule == RECLAIM:
        return _reclaimable(world, hunt, v, gpus_of(world.work, v))
    value, rank = world.ranks.value, world.work.priority
    return world.work.queue[v] == world.work.queue[hunt.w] and value[rank[v]] < value[rank[hunt.w]]


@inner
def is_promising(world: World, hunt: Hunt) -> bool:
    """Whether all whom the rules let go hold enough together: cheap, and rarely so in vain."""
    gpus = world.room.open[hunt.c] + world.room.coming[hunt.c]
    some = False
    for v in world.prey.ranked:
        if v < 0 or (some and gpus >= hunt.need):
            break
        if not world.prey.chosen[v] and allowed(world, hunt, v):
            gpus += gpus_of(world.work, v)
            some = True
    return some and gpus >= hunt.need


@once
def _in_budget(world: World, q: int, gpus: int) -> bool:
    while q > 0:
        if world.book.budget[q] < gpus:
            return False
        q = world.tree.parent[q]
    return True


@inner
def _reclaimable(world: World, hunt: Hunt, v: int, gpus: int) -> bool:
    """Every queue of the victim below the common ancestor is above its fair share."""
    tree, book, fair = world.tree, world.book, world.division.fair
    q = world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    if meet == q or tree.depth[meet] < tree.depth[hunt.top]:
        return False
    while q != meet:
        above = book.held[hunt.c, q] - fair[hunt.c, q]
        if above <= EPS or (not hunt.straddle and above < gpus - EPS):
            return False
        q = tree.parent[q]
    return True


@inner
def still_above(world: World, hunt: Hunt, v: int) -> bool:
    """With ``v`` alone kept, each of its queues would be above its fair share."""
    tree, book, fair = world.tree, world.book, world.division.fair
    gpus = gpus_of(world.work, v)
    q = world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    while q != meet:
        if book.held[hunt.c, q] + gpus <= fair[hunt.c, q] + EPS:
            return False
        q = tree.parent[q]
    return True
