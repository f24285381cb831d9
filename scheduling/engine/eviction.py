"""The act on one victim: whether the rules allow it, what it gives back. Elastic gangs above their least
members give members up before anybody is evicted.

Reclaim takes from another queue only what lies above fair share in every queue between the victim and
the common ancestor. Preempt takes lower priority inside the same leaf. Where neither is enough alone, one
search does both. All spare work inside its min run time, whoever was served by evicting the hunter a while
ago, queues whose eviction budget is spent, and what would pass the eviction cap.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.arrays import EPS, GPUS, Work
from scheduling.engine.codes import SHRINK
from scheduling.engine.compiled import inner, once
from scheduling.engine.limits import book_start
from scheduling.engine.prey import extra_of
from scheduling.engine.seating import leave, stay
from scheduling.engine.standing import (
    branch_of,
    charge,
    common_ancestor,
    grace_over,
    guarded,
    is_worn,
)
from scheduling.engine.world import World

RECLAIM, PREEMPT, BOTH, BOTH_OWED = 0, 1, 2, 3
STRICT, DELAY, PROTECTED, BUDGET, CAP = 0, 1, 2, 3, 4
"""What a search overlooks: nothing; how long the workload has to wait before; beyond that, protection of
victims by time, the queues' budgets, or the eviction cap.
"""


class Hunt(NamedTuple):
    """One search: for workload ``w`` on class ``c``, by ``rule``, below queue ``top``.

    For BOTH the victims have to leave the queues of ``w`` below ``top`` inside their shares, for BOTH_OWED
    inside their nominal. ``owed``: it asks for nominal quota, so gangs that lie partly inside the victim's
    fair share, and those evicted often, may be taken. ``need``: milli-GPU the workload asks for.
    """

    w: int
    c: int
    rule: int
    top: int
    owed: bool
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
    """What ``v`` gave up before has left already."""
    work, holds, prey = world.work, world.holds, world.prey
    h = holds.head[v]
    while h >= 0:
        members = holds.members[h] - prey.gone[h]
        if sign > 0:
            leave(world.room, work, v, holds.node[h], holds.device[h], members)
        else:
            stay(world.room, work, v, holds.node[h], holds.device[h], members)
        h = holds.next[h]
    members = work.members[v] - prey.given[v]
    fixed = work.priority[v] >= 0 and not world.ranks.preemptible[work.priority[v]]
    charge(world, v, work.gpu_class[v], -sign * members, fixed)
    book_start(world, v, -sign)
    spend(world, v, sign * core_of(work, v))


@inner
def spend(world: World, v: int, gpus: int) -> None:
    """Take ``gpus`` from the eviction budgets above ``v`` and count them in the cap."""
    world.book.spent[0] += gpus
    q = world.work.queue[v]
    while q > 0:
        world.book.budget[q] -= gpus
        q = world.tree.parent[q]


@once
def core_of(work: Work, v: int) -> int:
    """Milli-GPU that count as evicted when ``v`` is: not the members it can do without, which it would
    give up first.
    """
    return (work.members[v] - extra_of(work, v)) * work.need[GPUS, v]


@once
def held_by(world: World, v: int) -> int:
    """Milli-GPU of ``v`` but for what it has given up for others in this cycle."""
    shrunk = world.out.action[v] == SHRINK
    members = world.out.members[v] if shrunk else world.work.members[v]
    return members * world.work.need[GPUS, v]


@inner
def give(world: World, v: int, h: int, sign: int) -> None:
    """Reckon with one member of hold ``h`` given up (1), or with it back (-1)."""
    work, holds, prey = world.work, world.holds, world.prey
    leave(world.room, work, v, holds.node[h], holds.device[h], sign)
    charge(world, v, work.gpu_class[v], -sign, False)
    prey.gone[h] += sign
    prey.given[v] += sign


@inner
def choose(world: World, v: int) -> None:
    release(world, v)
    world.prey.chosen[v] = True
    _pick(world, v, -1)


@inner
def choose_member(world: World, v: int, h: int) -> None:
    """One member of hold ``h`` is given up."""
    give(world, v, h, 1)
    _pick(world, v, h)


@once
def _pick(world: World, v: int, h: int) -> None:
    prey, at = world.prey, world.prey.count[0]
    prey.picked[at], prey.part[at] = v, h
    prey.count[0] += 1


@inner
def drop(world: World, keep: int) -> None:
    """Put back all of the chosen but the first ``keep``."""
    while world.prey.count[0] > keep:
        world.prey.count[0] -= 1
        put_back(world, world.prey.count[0])


@inner
def put_back(world: World, k: int) -> None:
    """The ``k``-th of the chosen stays after all."""
    prey = world.prey
    v, h = prey.picked[k], prey.part[k]
    if h >= 0:
        give(world, v, h, -1)
    else:
        prey.chosen[v] = False
        restore(world, v)


@inner
def take_again(world: World, k: int) -> None:
    """Undo ``put_back``."""
    prey = world.prey
    v, h = prey.picked[k], prey.part[k]
    if h >= 0:
        give(world, v, h, 1)
    else:
        release(world, v)
        prey.chosen[v] = True


@inner
def protected_until(world: World, hunt: Hunt, v: int) -> float:
    """When ``v`` may go for the workload: no shield left, and the grace of a lowered quota over."""
    return max(shielded_until(world, hunt, v), grace_over(world, hunt.c, world.work.queue[v]))


@inner
def shielded_until(world: World, hunt: Hunt, v: int) -> float:
    """Until the end of its min run time, and of the cooldown if the workload was evicted for ``v``."""
    work = world.work
    until = work.started[v] + min_run_of(world, hunt, v)
    if work.evicted_for[hunt.w] == work.tie[v]:
        until = max(until, work.evicted[hunt.w] + world.rules.cooldown)
    return until


@inner
def min_run_of(world: World, hunt: Hunt, v: int) -> float:
    """That of the queue in which both part, on the side of ``v`` (its leaf inside one queue), else that of
    the priority class.
    """
    work, tree = world.work, world.tree
    q = branch_of(tree, work.queue[v], work.queue[hunt.w])
    return tree.min_run[q] if tree.min_run[q] >= 0.0 else world.ranks.min_run[work.priority[v]]


@inner
def allowed(world: World, hunt: Hunt, v: int) -> bool:
    """Whether the rules let ``v`` go for the workload, as things stand now.

    What forbids it though the rule would take it is noted in ``book.forbidden``. The eviction cap is
    asked for ``v`` alone here, and for all victims together once nobody needless is among them.
    """
    work, spares = world.work, not hunt.owed and not is_own(world, hunt, v)
    gpus, forbidden = core_of(work, v), STRICT
    if spares and world.prey.take[work.queue[v]] < gpus:
        return False  # What stands in its way was noted when its queue was summed up.
    worn = spares and is_worn(world, v)
    if work.gpu_class[v] != hunt.c or worn or not is_fair_game(world, hunt, v, gpus):
        return False
    if hunt.overlook != PROTECTED and _is_protected(world, hunt, v):
        forbidden = PROTECTED
    elif hunt.overlook != BUDGET and not in_budget(world, work.queue[v], gpus):
        forbidden = BUDGET
    elif hunt.overlook != CAP and gpus > world.rules.eviction_cap * hunt.need:
        forbidden = CAP
    world.book.forbidden[forbidden] = 1
    return forbidden == STRICT


@inner
def _is_protected(world: World, hunt: Hunt, v: int) -> bool:
    """By time; or by the grace of a lowered quota, which no reclaim may break."""
    if world.rules.now < shielded_until(world, hunt, v):
        return True
    graced = world.book.graced[hunt.c] > 0.0 and not is_own(world, hunt, v)
    return graced and not _reclaimable(world, hunt, v, core_of(world.work, v), True)


@inner
def may_give(world: World, hunt: Hunt, v: int) -> bool:
    """Whether ``v`` can do without one more member, and the rules would let as much of it go.

    No min run time, budget or cap speaks for the extra members of an elastic gang: it goes on.
    """
    work, prey = world.work, world.prey
    if prey.chosen[v] or work.gpu_class[v] != hunt.c or prey.given[v] >= extra_of(work, v):
        return False
    if prey.count[0] + prey.chosen.size >= prey.picked.size or not is_fair_game(
        world, hunt, v, work.need[GPUS, v]
    ):
        return False
    graced = hunt.overlook != PROTECTED and world.book.graced[hunt.c] > 0.0
    return (
        not graced
        or is_own(world, hunt, v)
        or _reclaimable(world, hunt, v, work.need[GPUS, v], True)
    )


@once
def is_own(world: World, hunt: Hunt, v: int) -> bool:
    """Whether ``v`` is in the queue of the workload: preempted, not reclaimed."""
    return bool(world.work.queue[v] == world.work.queue[hunt.w])


@inner
def is_fair_game(world: World, hunt: Hunt, v: int, gpus: int) -> bool:
    """Lower priority in the same leaf that had not risen above it, or above fair share in another."""
    if not is_own(world, hunt, v):
        return hunt.rule != PREEMPT and _reclaimable(world, hunt, v, gpus, False)
    value, rank = world.ranks.value, world.work.priority
    if hunt.rule == RECLAIM or _had_risen(world, v):
        return False
    return value[rank[v]] < value[rank[hunt.w]]


@once
def _had_risen(world: World, v: int) -> bool:
    """It had waited past the bound of its class when it started, so it went before any priority."""
    waited = world.work.started[v] - world.work.submitted[v]
    return waited >= world.ranks.max_wait[world.work.priority[v]]


@inner
def in_budget(world: World, q: int, gpus: int) -> bool:
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
    if book.held[hunt.c, q] <= fair[hunt.c, q] + EPS:
        return False
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    if meet == q or tree.depth[meet] < tree.depth[hunt.top]:
        return False
    while q != meet:
        keeps = guarded(world, hunt.c, q) if graced else fair[hunt.c, q]
        above = book.held[hunt.c, q] - keeps
        if above <= EPS or (not hunt.owed and above < gpus - EPS):
            return False
        q = tree.parent[q]
    return True


@inner
def still_above(world: World, hunt: Hunt, k: int) -> bool:
    """With the ``k``-th of the chosen alone kept, each of its queues would be above what it keeps."""
    tree, book = world.tree, world.book
    v = world.prey.picked[k]
    gpus = held_by(world, v) if world.prey.part[k] < 0 else world.work.need[GPUS, v]
    q = world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    while q != meet:
        fair = world.division.fair[hunt.c, q]
        keeps = fair if hunt.overlook == PROTECTED else guarded(world, hunt.c, q)
        if book.held[hunt.c, q] + gpus <= keeps + EPS:
            return False
        q = tree.parent[q]
    return True
