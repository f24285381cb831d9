"""The act on one victim: what it costs, whether the rules allow it, what it gives back.

Reclaim takes from another queue only what lies above fair share in every queue between the victim and
the common ancestor. Preempt takes lower priority inside the same leaf. Both spare work inside its min
run time, queues whose eviction budget is spent, and what would pass the eviction cap.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.arrays import EPS
from scheduling.engine.compiled import inner, once
from scheduling.engine.limits import book_start
from scheduling.engine.prey import gpus_of
from scheduling.engine.seating import leave, stay
from scheduling.engine.standing import charge, common_ancestor, grace_over, guarded
from scheduling.engine.world import World

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
    book_start(world, v, -sign)
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
    """Until when min run time, or the grace of a lowered quota, protects ``v``."""
    min_run = world.work.started[v] + world.ranks.min_run[world.work.priority[v]]
    return max(min_run, grace_over(world, world.work.gpu_class[v], world.work.queue[v]))


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
    if hunt.overlook != PROTECTED and _is_protected(world, hunt, v):
        forbidden = PROTECTED
    elif hunt.overlook != BUDGET and not _in_budget(world, work.queue[v], gpus):
        forbidden = BUDGET
    elif hunt.overlook != CAP and gpus > world.rules.eviction_cap * hunt.need:
        forbidden = CAP
    world.book.forbidden[forbidden] = 1
    return forbidden == STRICT


@inner
def _is_protected(world: World, hunt: Hunt, v: int) -> bool:
    """By min run time; or by the grace of a lowered quota, which no reclaim may break."""
    if world.rules.now < world.work.started[v] + world.ranks.min_run[world.work.priority[v]]:
        return True
    graced = hunt.rule == RECLAIM and world.book.graced[hunt.c] > 0.0
    return graced and not _reclaimable(world, hunt, v, gpus_of(world.work, v), True)


@once
def _is_fair_game(world: World, hunt: Hunt, v: int) -> bool:
    """Lower priority in the same leaf, or above fair share in another."""
    if hunt.rule == RECLAIM:
        return _reclaimable(world, hunt, v, gpus_of(world.work, v), False)
    value, rank = world.ranks.value, world.work.priority
    return world.work.queue[v] == world.work.queue[hunt.w] and value[rank[v]] < value[rank[hunt.w]]


@once
def _in_budget(world: World, q: int, gpus: int) -> bool:
    while q > 0:
        if world.book.budget[q] < gpus:
            return False
        q = world.tree.parent[q]
    return True


@inner
def _reclaimable(world: World, hunt: Hunt, v: int, gpus: int, graced: bool) -> bool:
    """Every queue of the victim below the common ancestor is above its fair share, or, ``graced``,
    above what a grace leaves it.
    """
    tree, book, fair = world.tree, world.book, world.division.fair
    q = world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    if meet == q or tree.depth[meet] < tree.depth[hunt.top]:
        return False
    while q != meet:
        keeps = guarded(world, hunt.c, q) if graced else fair[hunt.c, q]
        above = book.held[hunt.c, q] - keeps
        if above <= EPS or (not hunt.straddle and above < gpus - EPS):
            return False
        q = tree.parent[q]
    return True


@inner
def still_above(world: World, hunt: Hunt, v: int) -> bool:
    """With ``v`` alone kept, each of its queues would be above what it keeps."""
    tree, book = world.tree, world.book
    gpus = gpus_of(world.work, v)
    q = world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    while q != meet:
        fair = world.division.fair[hunt.c, q]
        keeps = fair if hunt.overlook == PROTECTED else guarded(world, hunt.c, q)
        if book.held[hunt.c, q] + gpus <= keeps + EPS:
            return False
        q = tree.parent[q]
    return True
