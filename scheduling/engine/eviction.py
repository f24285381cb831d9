"""The act on one victim: whether the rules allow it, what it gives back. Elastic gangs above their least
members give members up before anybody is evicted.

Reclaim takes from another queue only what lies above fair share in every queue between the victim and
the common ancestor. Preempt takes lower priority inside the same leaf. Where neither is enough alone, one
search does both. All spare work inside its min run time, whoever was served by evicting the hunter a while
ago, queues whose eviction budget is spent, and what would pass the eviction cap.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.arrays import EPS, GPUS
from scheduling.engine.codes import SHRINK
from scheduling.engine.compiled import inner, once
from scheduling.engine.prey import END, FIRST, core_of, extra_of
from scheduling.engine.standing import (
    LENT,
    ROUNDED,
    branch_of,
    common_ancestor,
    grace_over,
    guarded,
    inside_nominal,
    is_worn,
    left_by,
)
from scheduling.engine.world import World

RECLAIM, PREEMPT, BOTH, BOTH_OWED = 0, 1, 2, 3
STRICT, DELAY, PROTECTED, BUDGET, CAP = 0, 1, 2, 3, 4
"""What a search overlooks: nothing; how long the workload has to wait before; beyond that, protection of
victims by time, the queues' budgets, or the eviction cap.
"""


NOTHING, SOME, ALL = 0, 1, 2
"""At how many meeting points with others what they hold above their shares is owed to the workload."""


class Hunt(NamedTuple):
    """One search: for workload ``w`` on class ``c``, by ``rule``, below queue ``top``.

    For BOTH the victims have to leave the queues of ``w`` below ``top`` inside their shares, for BOTH_OWED
    inside their nominal. ``owed``: where its nominal covers what it asks for (``prey.owing``), gangs that lie
    partly inside the victim's fair share may be taken. ``need``: milli-GPU the
    workload asks for. ``hasty``: it has waited long enough only for what is owed to it. ``stretch``: what a
    reclaim may do where nothing else does, see above.
    """

    w: int
    c: int
    rule: int
    top: int
    owed: bool
    overlook: int
    need: int
    hasty: bool
    stretch: int


@once
def held_by(world: World, v: int) -> int:
    """Milli-GPU of ``v`` but for what it has given up for others in this cycle."""
    shrunk = world.out.action[v] == SHRINK
    members = world.out.members[v] if shrunk else world.work.members[v]
    return members * world.work.need[GPUS, v]


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
    work, gpus, forbidden = world.work, core_of(world.work, v), STRICT
    if world.prey.barred[v] == world.prey.hunts[0]:
        return False
    spares = not is_own(world, hunt, v) and not _is_owed(world, hunt, v)
    if spares and world.prey.take[work.queue[v]] < gpus:
        return False  # What stands in its way was noted when its queue was summed up.
    if work.gpu_class[v] != hunt.c or is_worn(world, v) or not is_fair_game(world, hunt, v, gpus):
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
    grows = world.out.action[v] != SHRINK and world.out.members[v] > 0
    if grows or prey.barred[v] == prey.hunts[0]:
        return False
    if prey.count[END] + prey.chosen.size >= prey.picked.size or not is_fair_game(
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
    if hunt.rule == RECLAIM or had_risen(world, v):
        return False
    return value[rank[v]] < value[rank[hunt.w]]


@inner
def had_risen(world: World, v: int) -> bool:
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
    tree, book = world.tree, world.book
    q = world.work.queue[v]
    if book.held[hunt.c, q] <= left_by(world, hunt.c, q, hunt.stretch) + EPS:
        return False
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    if meet == q or tree.depth[meet] < tree.depth[hunt.top]:
        return False
    owed = world.prey.owing[meet]
    by_merit = tree.top[meet] >= 0
    if ((hunt.hasty or by_merit) and not owed) or (by_merit and world.merit.calm[hunt.w]):
        return False
    while q != meet:
        keeps = left_by(world, hunt.c, q, hunt.stretch)
        keeps = max(keeps, guarded(world, hunt.c, q)) if graced else keeps
        above = book.held[hunt.c, q] - keeps
        if above <= EPS or (not (hunt.owed and owed) and above < gpus - EPS):
            return False
        q = tree.parent[q]
    return True


@inner
def _is_owed(world: World, hunt: Hunt, v: int) -> bool:
    """Whether the workload may take from ``v`` what is owed to it."""
    if not hunt.owed:
        return False
    meet = common_ancestor(world.tree, world.work.queue[v], world.work.queue[hunt.w])
    return bool(world.prey.owing[meet])


@inner
def takes_only_owed(world: World, hunt: Hunt) -> bool:
    """Whether all that the chosen give is owed to the workload."""
    for k in range(world.prey.count[FIRST], world.prey.count[END]):
        v = world.prey.picked[k]
        meet = common_ancestor(world.tree, world.work.queue[v], world.work.queue[hunt.w])
        if not is_own(world, hunt, v) and not world.prey.owing[meet]:
            return False
    return True


@inner
def note_owed(world: World, hunt: Hunt) -> int:
    """Note in ``prey.owing``, for each queue from ``hunt.top`` down, whether what others hold in it above
    their shares is owed to the queue below it on the way to the workload: its nominal covers the workload.
    Returns in how many of them: NOTHING, SOME or ALL.
    """
    q, kid, covered, passed = world.work.queue[hunt.w], -1, 0, 0
    while q != hunt.top:
        owed = hunt.rule == BOTH_OWED or hunt.stretch == ROUNDED
        owed = owed or inside_nominal(world, q, kid, hunt.c, hunt.need)
        q, kid = world.tree.parent[q], q if owed else -1
        world.prey.owing[q] = owed
        covered += owed
        passed += 1
    return NOTHING if covered == 0 else (ALL if covered == passed else SOME)


@inner
def still_above(world: World, hunt: Hunt, k: int) -> bool:
    """With the ``k``-th of the chosen alone kept, each of its queues would be above what it keeps."""
    tree, book = world.tree, world.book
    v = world.prey.picked[k]
    gpus = held_by(world, v) if world.prey.part[k] < 0 else world.work.need[GPUS, v]
    q = world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    while q != meet:
        keeps = left_by(world, hunt.c, q, hunt.stretch)
        if hunt.stretch != LENT and hunt.overlook != PROTECTED:
            keeps = guarded(world, hunt.c, q)
        if book.held[hunt.c, q] + gpus <= keeps + EPS:
            return False
        q = tree.parent[q]
    return True
