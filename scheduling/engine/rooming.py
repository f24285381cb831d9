"""Making room for one workload: move others, reclaim, preempt, or say what forbids it."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of, only_reserved, passes_nominal, start_or_promise
from scheduling.engine.arrays import GPUS, UNLIMITED, Ints
from scheduling.engine.compiled import inner, once
from scheduling.engine.consolidation import consolidate
from scheduling.engine.eviction import (
    BOTH,
    BOTH_OWED,
    BUDGET,
    CAP,
    DELAY,
    PREEMPT,
    PROTECTED,
    RECLAIM,
    STRICT,
    Hunt,
    core_of,
    is_own,
)
from scheduling.engine.prey import list_prey
from scheduling.engine.prospects import (
    fails_like_another,
    first_of_both,
    forget_failures,
    is_promising,
    note_failure,
    note_loss,
)
from scheduling.engine.record import decide, evict_for, is_shrunk, quote, shrink_for
from scheduling.engine.standing import (
    branch_of,
    grace_over,
    inside_nominal,
    is_below,
    reach,
)
from scheduling.engine.victims import give_up, hunt_down, last_release
from scheduling.engine.world import World

NOBODY, RESERVED_FREE = 0, -1
"""In place of what a hunt needs: it failed, or free GPUs that are kept for another would do."""


MIN_RUN_TIME, GRACE, COOLDOWN = 0, 1, 2
"""What protects victims until a moment."""


@inner
def move_others(world: World, w: int, c: int) -> bool:
    """Step c, without evictions: others move on class ``c`` where that gives ``w`` room."""
    return world.rules.max_moves > 0 and _may_gain(world, w, c) and consolidate(world, w, c)


@inner
def make_room(world: World, w: int, c: int) -> bool:
    """Step c: reclaim, preempt. Where only time, budget or cap forbid it, that is the reason."""
    return _may_gain(world, w, c) and _hunt(world, w, c, need_of(world, w))


@inner
def make_room_below(world: World, w: int, c: int, meet: int) -> bool:
    """``make_room`` where that brings ``w`` inside its share in every queue below ``meet``."""
    if not _may_gain(world, w, c):
        return False
    need, q = need_of(world, w), world.work.queue[w]
    top = reach(world.tree, world.book, world.division, q, c, need)
    if world.tree.depth[meet] < world.tree.depth[top]:
        top = meet
    hunt = _search_both(world, w, c, top, need, STRICT, True)
    if hunt.need > 0:
        _carry_out(world, hunt)
    return hunt.need > 0


@inner
def see_prey(world: World) -> None:
    """List it if nobody did so in this cycle."""
    if not world.prey.listed[0]:
        list_prey(
            world.work,
            world.ranks,
            world.rules,
            world.tree,
            world.line,
            world.out.action,
            world.prey,
        )


@inner
def _may_gain(world: World, w: int, c: int) -> bool:
    """Whether anybody runs on class ``c`` who might make room; then the prey is listed."""
    if passes_nominal(world, w, c):
        return False
    see_prey(world)
    if world.prey.of_class[c] == 0:
        return False
    return not fails_like_another(world, w, c)


@once
def _hunt(world: World, w: int, c: int, need: int) -> bool:
    top = reach(world.tree, world.book, world.division, world.work.queue[w], c, need)
    forbidden = world.book.forbidden
    for overlook in (STRICT, DELAY, PROTECTED, BUDGET, CAP):
        forbidden[overlook] = 0
    for overlook in (STRICT, DELAY, PROTECTED, BUDGET, CAP):
        if overlook != STRICT and forbidden[overlook] == 0:
            continue
        hunt = _search(world, w, c, top, need, overlook)
        if hunt.need == RESERVED_FREE:
            return False
        if hunt.need == NOBODY:
            continue
        if overlook == STRICT:
            _carry_out(world, hunt)
            return True
        if world.out.action[w] == codes.UNDECIDED:
            _blame_protection(world, hunt)
        give_up(world, hunt)
        break
    if world.rules.now >= world.work.evicted[w] + world.rules.cooldown:
        note_failure(world, w, c)
    return False


@once
def _search(world: World, w: int, c: int, top: int, need: int, overlook: int) -> Hunt:
    """The first search that succeeds; its ``need`` is NOBODY if none does.

    Reclaim sparing gangs that lie partly inside their queue's fair share or were evicted often; reclaim
    them too, for a workload inside its nominal; preempt, unless free GPUs would do, were they not kept
    for another; do both.
    """
    nominal = _inside_nominal(world, w, c, top, need)
    for attempt in range(3):
        rule = PREEMPT if attempt == 2 else RECLAIM
        if rule == RECLAIM and (top == world.work.queue[w] or (attempt == 1 and not nominal)):
            continue
        if overlook == STRICT and world.rules.now < _patient_until(world, w, rule, nominal):
            world.book.forbidden[DELAY] = 1
            continue
        hunt = Hunt(w, c, rule, top, attempt > 0, overlook, need)
        if not is_promising(world, hunt):
            continue
        if rule == PREEMPT and only_reserved(world, w, c):
            return Hunt(w, c, PREEMPT, top, True, overlook, RESERVED_FREE)
        if hunt_down(world, hunt):
            return hunt
    top = first_of_both(world, Hunt(w, c, BOTH, top, False, overlook, need))
    return _search_both(world, w, c, top, need, overlook, False)


@inner
def _search_both(
    world: World, w: int, c: int, top: int, need: int, overlook: int, entitled: bool
) -> Hunt:
    """The search that succeeds among those that reclaim and preempt, from ``top`` up to the root: what
    leaves below a queue may bring ``w`` inside the share there, and so entitle it to what others hold
    above theirs. Sparing first, as ``_search``.
    """
    while top >= 0:
        for owed in (False, True):
            hunt = Hunt(w, c, BOTH_OWED if owed else BOTH, top, owed, overlook, need)
            if not is_promising(world, hunt):
                continue
            if overlook == STRICT and world.rules.now < _patient_until(world, w, BOTH, owed):
                world.book.forbidden[DELAY] = 1
                if world.rules.now < _patient_until(world, w, BOTH, True):
                    continue
                hunt = Hunt(w, c, BOTH_OWED, top, owed, overlook, need)
            if not entitled and only_reserved(world, w, c):
                return Hunt(w, c, BOTH, top, True, overlook, RESERVED_FREE)
            if hunt_down(world, hunt):
                return hunt
        top = world.tree.parent[top]
    return Hunt(w, c, BOTH, top, True, overlook, NOBODY)


@inner
def _patient_until(world: World, w: int, rule: int, nominal: bool) -> float:
    """Until when ``w`` has to wait before others leave for it: longer for what it would borrow."""
    rules = world.rules
    wait = rules.delay if rule == PREEMPT or nominal else max(rules.delay, rules.fair_delay)
    return world.work.submitted[w] + wait


@inner
def _inside_nominal(world: World, w: int, c: int, top: int, need: int) -> bool:
    """In every queue below ``top``."""
    q, kid = world.work.queue[w], -1
    while q != top:
        if not inside_nominal(world, q, kid, c, need):
            return False
        q, kid = world.tree.parent[q], q
    return True


@inner
def _carry_out(world: World, hunt: Hunt) -> None:
    """The chosen leave, the workload keeps the seats it has claimed.

    They may be free already, held for a gang that goes first: that one gets what the victims leave.
    """
    prey, out, gone = world.prey, world.out, 0
    leaves = _leaves_by_queue(world, hunt)
    for k in range(prey.count[0]):
        v = prey.picked[k]
        note_loss(world, k)
        if prey.part[k] < 0:
            reason = codes.PREEMPTED if is_own(world, hunt, v) else codes.RECLAIMED
            evict_for(world, hunt, v, reason, leaves)
            gone += 1
        elif not prey.chosen[v] and not is_shrunk(world, v):
            shrink_for(world, hunt, v, leaves)
            gone += 1
    forget_failures(world, hunt.c)
    start_or_promise(world, hunt.w, hunt.c, world.work.least[hunt.w])
    if out.action[hunt.w] == codes.RESERVE:
        out.figures[hunt.w, 4] = gone


@once
def _leaves_by_queue(world: World, hunt: Hunt) -> Ints:
    """Milli-GPU of the chosen, by their queue just below the common ancestor."""
    prey, leaves = world.prey, np.zeros(world.tree.parent.size, np.int64)
    for k in range(prey.count[0]):
        v = prey.picked[k]
        members = 1 if prey.part[k] >= 0 else world.work.members[v] - prey.given[v]
        leaves[branch_of(world.tree, world.work.queue[v], world.work.queue[hunt.w])] += (
            members * world.work.need[GPUS, v]
        )
    return leaves


@inner
def _blame_protection(world: World, hunt: Hunt) -> None:
    """Quote the first victim that would go, its queue, and until when it is safe."""
    w, v, out = hunt.w, world.prey.picked[0], world.out
    reason = codes.VICTIMS_PROTECTED
    if hunt.overlook == DELAY:
        nominal = hunt.rule == BOTH_OWED or _inside_nominal(world, w, hunt.c, hunt.top, hunt.need)
        out.until[w] = _patient_until(world, w, hunt.rule, nominal)
    elif hunt.overlook == PROTECTED:
        out.until[w] = last_release(world, hunt)
    elif hunt.overlook == BUDGET:
        reason = codes.BUDGET_SPENT
        out.until[w] = _budgets_until(world)
    else:
        reason = codes.EVICTION_CAP
    decide(out, w, codes.WAIT, reason, hunt.c, 0)
    q = world.work.queue[v]
    fair = world.division.fair[hunt.c, q]
    held = world.book.held[hunt.c, q] + _chosen_of(world, q)
    quote(out, w, q, held, fair, hunt.need, world.book.spent[0])
    out.rival[w] = v
    out.figures[w, 4] = 0 if hunt.overlook == DELAY else hunt.overlook
    if hunt.overlook == PROTECTED:
        out.figures[w, 5] = _what_protects(world, hunt, out.until[w])
    elif hunt.overlook == BUDGET:
        out.figures[w, 5] = _budget_left(world)
    else:
        out.figures[w, 5] = world.rules.eviction_cap * hunt.need if hunt.overlook == CAP else 0.0


@once
def _what_protects(world: World, hunt: Hunt, until: float) -> int:
    """Which protection of the chosen ends last, at ``until``."""
    work, prey = world.work, world.prey
    for k in range(prey.count[0]):
        v = prey.picked[k]
        if grace_over(world, hunt.c, work.queue[v]) == until:
            return GRACE
        spared = work.evicted_for[hunt.w] == work.tie[v]
        if spared and work.evicted[hunt.w] + world.rules.cooldown == until:
            return COOLDOWN
    return MIN_RUN_TIME


@inner
def _budgets_until(world: World) -> float:
    """When the last of the budgets that the chosen would overdraw may be drawn on again, 0 unknown."""
    until = 0.0
    for k in range(world.prey.count[0]):
        q = world.work.queue[world.prey.picked[k]]
        while q > 0 and world.prey.part[k] < 0:
            if world.book.budget[q] < 0:
                until = max(until, world.tree.budget_until[q])
            q = world.tree.parent[q]
    return until if until > world.rules.now else 0.0


@once
def _budget_left(world: World) -> int:
    """What the smallest of the budgets that the chosen would overdraw still had."""
    prey, least = world.prey, UNLIMITED
    for k in range(prey.count[0]):
        q = world.work.queue[prey.picked[k]]
        while q > 0:
            if world.book.budget[q] < 0:
                least = min(least, world.book.budget[q] + _cores_below(world, q))
            q = world.tree.parent[q]
    return least


@once
def _cores_below(world: World, top: int) -> int:
    """Milli-GPU that count as evicted of the chosen in ``top`` and below it."""
    gpus = 0
    for k in range(world.prey.count[0]):
        v = world.prey.picked[k]
        inside = is_below(world.tree, world.work.queue[v], top)
        gpus += core_of(world.work, v) if inside and world.prey.part[k] < 0 else 0
    return gpus


@once
def _chosen_of(world: World, q: int) -> int:
    """Milli-GPU of the chosen in ``q``, without what they have given up before."""
    prey, gpus = world.prey, 0
    for k in range(prey.count[0]):
        v = prey.picked[k]
        if world.work.queue[v] == q:
            members = 1 if prey.part[k] >= 0 else world.work.members[v] - prey.given[v]
            gpus += members * world.work.need[GPUS, v]
    return gpus
