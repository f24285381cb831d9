"""What is known of a hunt before it starts: what could be gained at most, and whose hunt failed already."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of
from scheduling.engine.arrays import ANYWHERE, BEGUN, EPS, GPUS
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import (
    BOTH,
    BUDGET,
    PROTECTED,
    RECLAIM,
    Hunt,
)
from scheduling.engine.limits import spent_hours
from scheduling.engine.needed import is_entitled
from scheduling.engine.prey import BOUND, LOOSE, drop_weight
from scheduling.engine.record import decide
from scheduling.engine.standing import LENT, PLAIN, guarded, left_by
from scheduling.engine.world import World


@inner
def is_promising(world: World, hunt: Hunt) -> bool:
    """Whether what the rules let go, summed by queue, and what is free would be enough.

    An upper bound at the cost of a walk over the queues. What it leaves out because time or a budget
    forbids it is noted in ``book.forbidden``.
    """
    if spent_hours(world, world.work.queue[hunt.w], hunt.c) >= 0:
        return False
    if hunt.rule >= BOTH:
        gain = _gain_of_both(world, hunt)
    else:
        gain = _reclaimable(world, hunt) if hunt.rule == RECLAIM else displaceable(world, hunt)
    free = world.room.open[hunt.c] + world.room.coming[hunt.c]
    return bool(gain > 0 and free + gain >= hunt.need)


@inner
def displaceable(world: World, hunt: Hunt) -> int:
    """Milli-GPU of lower priority in the leaf."""
    q, value = world.work.queue[hunt.w], world.ranks.value
    mine, gain = value[world.work.priority[hunt.w]], 0
    for p in range(value.size):
        if value[p] < mine:
            gain += _mass(world, hunt, q, p)
    return gain


@inner
def _reclaimable(world: World, hunt: Hunt) -> int:
    """Milli-GPU above fair share beside the way from the leaf up to ``hunt.top``, that included."""
    tree = world.tree
    _sum_up(world, hunt)
    gain, q = 0, world.work.queue[hunt.w]
    while q != hunt.top:
        q, kid = tree.parent[q], q
        gain += world.prey.below[q] - world.prey.take[kid]
    return gain


@once
def _gain_of_both(world: World, hunt: Hunt) -> int:
    """Milli-GPU of lower priority in the leaf and above fair share beside the way up to ``hunt.top``; 0
    where they would leave a queue below it short of what the workload needs.
    """
    q, gain = world.work.queue[hunt.w], displaceable(world, hunt)
    if not is_entitled(world, hunt, q, gain):
        return 0
    _sum_up(world, hunt)
    while q != hunt.top:
        q, kid = world.tree.parent[q], q
        gain += world.prey.below[q] - world.prey.take[kid]
        if not is_entitled(world, hunt, q, gain):
            return 0
    return gain


@inner
def lent_at_most(world: World, w: int, c: int) -> int:
    """Milli-GPU of class ``c`` that queues beside the way from the leaf of ``w`` up to the root could lose to
    it of what lies above their shares, were nothing protected.
    """
    return _reclaimable(world, Hunt(w, c, BOTH, 0, True, PROTECTED, 0, False, PLAIN))


@inner
def first_of_both(world: World, hunt: Hunt) -> int:
    """The lowest queue below which both together may take what reclaim below ``hunt.top`` and preempt
    could not; -1 if there is none.
    """
    q, own = world.work.queue[hunt.w], displaceable(world, hunt)
    if own == 0:
        return int(world.tree.parent[hunt.top]) if hunt.top != q else -1
    if not may_be_entitled(world, hunt, 0):
        return -1
    return int(hunt.top if hunt.top != q else world.tree.parent[hunt.top])


@inner
def may_be_entitled(world: World, hunt: Hunt, begun: int) -> bool:
    """Whether its leaf would be inside its share with the workload, and with none of lower priority that ran
    nor ``begun`` milli-GPU of those who start in this cycle.
    """
    return bool(hunt.need <= left_for(world, hunt, begun) + EPS)


@inner
def left_for(world: World, hunt: Hunt, begun: int) -> float:
    """What the share of its leaf leaves to the workload beside all but those."""
    q = world.work.queue[hunt.w]
    beside = world.book.held[hunt.c, q] - displaceable(world, hunt) - begun
    return float(world.division.fair[hunt.c, q] - beside)


@inner
def _sum_up(world: World, hunt: Hunt) -> None:
    """What each subtree could lose: its work, but no more than its excess and, where a gang may lie
    partly inside the share, one gang beyond; nor more than its budget.
    """
    tree, book, prey, c = world.tree, world.book, world.prey, hunt.c
    elastic = world.line.count[5] > 0
    for q in range(tree.parent.size):
        prey.below[q] = prey.take[q] = 0
    for q in range(tree.parent.size - 1, 0, -1):
        above = book.held[c, q] - _kept_by(world, hunt, q)
        if above <= EPS:
            continue
        gain = prey.below[q]
        if tree.kid_start[q] == tree.kid_start[q + 1]:
            for p in range(world.ranks.value.size):
                gain += _mass(world, hunt, q, p)
        most = int(above) + 1 + (prey.biggest[c, q] if hunt.owed else 0)
        gain = min(gain, most)
        if hunt.overlook != BUDGET and book.budget[q] < gain:
            book.forbidden[BUDGET] = 1
            # What elastic gangs can do without is not evicted, and no budget speaks for it.
            gain = gain if elastic else max(0, book.budget[q])
        prey.take[q] = gain
        prey.below[tree.parent[q]] += gain


@once
def _kept_by(world: World, hunt: Hunt, q: int) -> float:
    """What a reclaim leaves to queue ``q``; where only a grace protects it, that is noted."""
    if hunt.stretch == LENT:
        return left_by(world, hunt.c, q, LENT)
    fair, keeps = world.division.fair[hunt.c, q], guarded(world, hunt.c, q)
    if hunt.overlook == PROTECTED:
        return fair
    if world.book.held[hunt.c, q] > fair + EPS and keeps > fair:
        world.book.forbidden[PROTECTED] = 1
    return keeps


@once
def _mass(world: World, hunt: Hunt, q: int, p: int) -> int:
    """What leaf ``q`` could lose of priority class ``p``."""
    mass, c = world.prey.mass, hunt.c
    safe = mass[BOUND, c, q, p]
    if hunt.overlook == PROTECTED:
        return mass[LOOSE, c, q, p] + safe
    if safe > 0:
        world.book.forbidden[PROTECTED] = 1
    return mass[LOOSE, c, q, p]


@inner
def fails_like_another(world: World, w: int, c: int) -> bool:
    """Whether a hunt failed, and nobody was evicted since, for one that asked for no more than ``w``
    does. If that one waits for a protection, ``w`` must ask for the same, and waits for it too.
    """
    out, before = world.out, world.prey.refused[c, world.work.queue[w]]
    if before < 0 or out.action[before] not in (codes.WAIT, codes.RESERVE):
        return False
    if not _speaks_for(world, before, w):
        return False
    told = out.reason[before]
    if out.gpu_class[before] != c or told not in (
        codes.VICTIMS_PROTECTED,
        codes.BUDGET_SPENT,
        codes.EVICTION_CAP,
    ):
        return True
    until = out.until[before]
    if out.figures[before, 4] == 0:
        until += world.work.submitted[w] - world.work.submitted[before]
        if until <= world.rules.now:
            return False
    if not asks_for_more(world, before, w):
        return False
    if out.action[w] == codes.UNDECIDED:
        _tell_the_same(world, w, before)
        out.until[w] = until
    return True


@once
def note_failure(world: World, w: int, c: int) -> None:
    """The hunt for ``w`` on class ``c`` failed."""
    q = world.work.queue[w]
    world.prey.refused[c, q], world.prey.refused_at[c, q] = w, world.book.rounds[BEGUN]


@inner
def began_to_its_cost(world: World, w: int, c: int) -> int:
    """How many of those who have started in this cycle, the first so many, may stand in the way of ``w``: who
    started after the like of it hunted in vain does not.
    """
    q, begun = world.work.queue[w], world.book.rounds[BEGUN]
    before = world.prey.refused[c, q]
    if before < 0 or world.out.action[before] == codes.ADMIT or not _speaks_for(world, before, w):
        return begun
    return min(begun, world.prey.refused_at[c, q])


@once
def _speaks_for(world: World, before: int, w: int) -> bool:
    """Whether ``w`` hunts in vain where ``before`` did: not if what was coming free made victims needless for
    that one, and it was promised it since.
    """
    promised = world.out.reason[before] == codes.AWAITS_VICTIMS
    return not promised and asks_for_more(world, w, before)


@inner
def asks_for_more(world: World, w: int, than: int) -> bool:
    """``w`` could not start by any eviction that does not let ``than`` start as well, or is its equal.

    A larger workload may evict more where the eviction cap counts what is asked for.
    """
    work, value = world.work, world.ranks.value
    if world.rules.eviction_cap < np.inf and need_of(world, w) != need_of(world, than):
        return False
    for r in range(3):
        if work.need[r, w] < work.need[r, than]:
            return False
    if work.required[than] != ANYWHERE and work.required[w] != work.required[than]:
        return False
    if work.where[than] >= 0 and work.where[w] != work.where[than]:
        return False
    lower = value[work.priority[w]] <= value[work.priority[than]]
    return bool(lower and work.least[w] >= work.least[than])


@inner
def _tell_the_same(world: World, w: int, before: int) -> None:
    out = world.out
    decide(out, w, codes.WAIT, out.reason[before], out.gpu_class[before], 0)
    out.blame[w], out.rival[w] = out.blame[before], out.rival[before]
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = out.figures[before, i]


@inner
def note_loss(world: World, k: int) -> None:
    """What the ``k``-th of the chosen takes away no later hunt of this cycle can take again."""
    work, prey = world.work, world.prey
    v = prey.picked[k]
    if prey.part[k] < 0:
        weigh_out(world, v)
    else:
        prey.mass[LOOSE, work.gpu_class[v], work.queue[v], work.priority[v]] -= work.need[GPUS, v]


@inner
def weigh_out(world: World, v: int) -> None:
    """No later hunt of this cycle can take ``v``."""
    drop_weight(world.work, world.ranks, world.rules, world.tree, world.prey, v, 1)
