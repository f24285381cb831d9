"""Making room for one workload: move others, reclaim, preempt, or say what forbids it."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of, only_reserved, passes_nominal, start_or_promise
from scheduling.engine.arrays import GPUS, MIXED, MOVED, STRETCHED, Ints
from scheduling.engine.changed import EVERY, REACH, ROOM, changed
from scheduling.engine.compiled import inner, once
from scheduling.engine.consolidation import consolidate, move_beside_victims, moving
from scheduling.engine.eviction import (
    ALL,
    BOTH,
    BOTH_OWED,
    BUDGET,
    CAP,
    DELAY,
    NOTHING,
    PREEMPT,
    PROTECTED,
    RECLAIM,
    SOME,
    STRICT,
    Hunt,
    is_own,
    note_owed,
)
from scheduling.engine.lifted import steps_back_instead
from scheduling.engine.prey import END, FIRST, how_many, list_prey
from scheduling.engine.prospects import (
    fails_like_another,
    first_of_both,
    is_promising,
    lent_at_most,
    note_failure,
    note_loss,
)
from scheduling.engine.protection import blame_protection, is_lawful, patient_until
from scheduling.engine.record import evict_for, is_shrunk, move_for, note_bound, shrink_for
from scheduling.engine.reserve import hold_nodes_again, let_nodes_of
from scheduling.engine.standing import (
    LENT,
    PLAIN,
    ROUNDED,
    branch_of,
    reach,
    rounded_reach,
)
from scheduling.engine.statement import LEAVES, MOVES
from scheduling.engine.victims import give_up, hunt_down, lost_so_far
from scheduling.engine.world import World

NOBODY, RESERVED_FREE = 0, -1
"""In place of what a hunt needs: it failed, or free GPUs that are kept for another would do."""
WAITS, DONE = 1, 2
"""Else how a hunt ended: a protection is what it waits for, or others leave."""
MOST_STRETCHED = 32
"""Hunts in a cycle that go further than to fair shares; this bounds its time."""
MOST_MIXED = 32
"""Searches in a cycle for moves beside evictions, likewise."""


@inner
def move_others(world: World, w: int, c: int) -> bool:
    """Step c, without evictions: others move on class ``c`` where that gives ``w`` room."""
    if world.rules.max_moves == 0 or not _may_gain(world, w, c) or not consolidate(world, w, c):
        return False
    _carry_out(world, moving(world, w, c))
    return True


@inner
def make_room(world: World, w: int, c: int) -> bool:
    """Step c: reclaim, preempt. Where only time, budget or cap forbid it, that is the reason.

    Nodes that a gang keeps for a share above nominal are kept from nobody to whom nominal is owed.
    """
    if not _may_gain(world, w, c):
        return False
    yields = _yields(world, w, c)
    if yields:
        let_nodes_of(world, c)
    if _hunt(world, w, c, need_of(world, w)):
        if yields:
            _give_nodes_up(world, c)
        return True
    if yields:
        hold_nodes_again(world, c)
    return False


@once
def _yields(world: World, w: int, c: int) -> bool:
    """Whether nominal is owed to ``w`` and not to who keeps nodes of class ``c``."""
    holder = world.book.holder[c]
    return holder >= 0 and not _is_owed(world, holder, c) and _is_owed(world, w, c)


@inner
def _is_owed(world: World, w: int, c: int) -> bool:
    need = need_of(world, w)
    top = reach(world.tree, world.book, world.division, world.work.queue[w], c, need)
    return bool(
        note_owed(world, Hunt(w, c, RECLAIM, top, True, STRICT, need, False, PLAIN)) != NOTHING
    )


@once
def _give_nodes_up(world: World, c: int) -> None:
    """Who kept them waits; it is asked again, since somebody left."""
    holder = world.book.holder[c]
    world.out.action[holder], world.book.holder[c] = codes.WAIT, -1


@inner
def make_room_below(world: World, w: int, c: int, meet: int) -> bool:
    """``make_room`` where that brings ``w`` inside its share in every queue below ``meet``."""
    if not _may_gain(world, w, c):
        return False
    need, q = need_of(world, w), world.work.queue[w]
    top = reach(world.tree, world.book, world.division, q, c, need)
    if world.tree.depth[meet] < world.tree.depth[top]:
        top = meet
    hunt = _search_both(world, Hunt(w, c, BOTH, top, True, STRICT, need, False, PLAIN), True)
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
    ended = _hunt_by(world, w, c, need, PLAIN)
    stretch = _stretch_for(world, w, c, need) if ended == NOBODY else PLAIN
    if stretch != PLAIN:
        world.book.rounds[STRETCHED] += 1
        ended = _hunt_by(world, w, c, need, stretch)
    if ended == DONE:
        return True
    if ended == RESERVED_FREE:
        return False
    if world.rules.now >= world.work.evicted[w] + world.rules.cooldown:
        note_failure(world, w, c)
    return False


@inner
def _hunt_by(world: World, w: int, c: int, need: int, stretch: int) -> int:
    """DONE; RESERVED_FREE; WAITS where a protection is told; NOBODY."""
    forbidden = world.book.forbidden
    for overlook in (STRICT, DELAY, PROTECTED, BUDGET, CAP):
        forbidden[overlook] = 0
    for overlook in (STRICT, DELAY, PROTECTED, BUDGET, CAP):
        if overlook != STRICT and forbidden[overlook] == 0:
            continue
        hunt = _search_by(world, w, c, need, overlook, stretch)
        if hunt.need == RESERVED_FREE:
            return RESERVED_FREE
        if hunt.need == NOBODY:
            continue
        if overlook == STRICT or is_lawful(world, hunt):
            if steps_back_instead(world, hunt):
                return NOBODY
            _carry_out(world, hunt)
            return DONE
        if world.out.action[w] == codes.UNDECIDED:
            blame_protection(world, hunt)
        give_up(world, hunt)
        return WAITS
    return NOBODY


@once
def _search_by(world: World, w: int, c: int, need: int, overlook: int, stretch: int) -> Hunt:
    q = world.work.queue[w]
    if stretch == PLAIN:
        top = reach(world.tree, world.book, world.division, q, c, need)
        return _search(world, w, c, top, need, overlook)
    return _search_further(world, w, c, need, overlook, stretch)


@once
def _stretch_for(world: World, w: int, c: int, need: int) -> int:
    """How far a reclaim for ``w`` may go where no other search succeeds, whatever it overlooks."""
    book, q, stretch = world.book, world.work.queue[w], PLAIN
    if book.graced[c] > 0.0:
        return PLAIN
    if _is_owed(world, w, c):
        stretch = LENT
    elif rounded_reach(world, q, c, need) != q:
        stretch = ROUNDED
    if stretch != PLAIN and book.rounds[STRETCHED] == MOST_STRETCHED:
        note_bound(world.out, w, MOST_STRETCHED)
        return PLAIN
    return stretch


@once
def _search_further(world: World, w: int, c: int, need: int, overlook: int, stretch: int) -> Hunt:
    q = world.work.queue[w]
    top = rounded_reach(world, q, c, need)
    if stretch == LENT:
        top = reach(world.tree, world.book, world.division, q, c, need)
    patient = world.rules.now >= patient_until(world, w, RECLAIM, stretch == LENT)
    hunt = Hunt(w, c, RECLAIM, top, True, overlook, need, stretch == LENT, stretch)
    if overlook == STRICT and not patient:
        world.book.forbidden[DELAY] = 1
    elif is_promising(world, hunt) and _hunt_down_afresh(world, hunt):
        return hunt
    return Hunt(w, c, RECLAIM, top, True, overlook, NOBODY, False, stretch)


@once
def _hunt_down_afresh(world: World, hunt: Hunt) -> bool:
    """Nodes are rated anew for what is LENT, and again for whoever hunts next."""
    lent = hunt.stretch == LENT
    if lent:
        changed(world, REACH, hunt.c, EVERY)
    found = hunt_down(world, hunt)
    if lent:
        changed(world, REACH, hunt.c, EVERY)
    return bool(found)


@once
def _search(world: World, w: int, c: int, top: int, need: int, overlook: int) -> Hunt:
    """The first search that succeeds; its ``need`` is NOBODY if none does.

    Reclaim sparing gangs that lie partly inside their queue's fair share or were evicted often; reclaim
    them too, as far as nominal is owed to the workload; preempt, unless free GPUs would do, were they not
    kept for another; do both.
    """
    owed = note_owed(world, Hunt(w, c, RECLAIM, top, True, overlook, need, False, PLAIN))
    for attempt in range(3):
        rule = PREEMPT if attempt == 2 else RECLAIM
        if rule == RECLAIM and (top == world.work.queue[w] or (attempt == 1 and owed == NOTHING)):
            continue
        hasty = False
        if overlook == STRICT and world.rules.now < patient_until(world, w, rule, owed == ALL):
            world.book.forbidden[DELAY] = 1
            hasty = rule == RECLAIM and owed == SOME
            if not hasty or world.rules.now < patient_until(world, w, rule, True):
                continue
        hunt = Hunt(w, c, rule, top, attempt > 0, overlook, need, hasty, PLAIN)
        if not is_promising(world, hunt):
            continue
        if rule == PREEMPT and only_reserved(world, w, c):
            return Hunt(w, c, PREEMPT, top, True, overlook, RESERVED_FREE, False, PLAIN)
        if hunt_down(world, hunt):
            return _or_cheaper(world, hunt) if rule == PREEMPT and overlook == STRICT else hunt
        if attempt == 0 and _moves_some_beside(world, hunt):
            return hunt
    return _search_beyond(world, Hunt(w, c, BOTH, top, False, overlook, need, False, PLAIN))


@once
def _moves_some_beside(world: World, hunt: Hunt) -> bool:
    """Before gangs go that lie partly inside their queue's share, others move beside those that do not."""
    rounds = world.book.rounds
    if hunt.overlook != STRICT or world.rules.max_moves == 0:
        return False
    if rounds[MIXED] == MOST_MIXED:
        note_bound(world.out, hunt.w, MOST_MIXED)
        return False
    rounds[MIXED] += 1
    return bool(move_beside_victims(world, hunt))


@once
def _or_cheaper(world: World, hunt: Hunt) -> Hunt:
    """The preemption that succeeded, or the search of both kinds where others who hold too much lose less:
    they would leave next, for those of the own queue who left.
    """
    w, c = hunt.w, hunt.c
    if how_many(world.prey) < 2 or lent_at_most(world, w, c) == 0:
        return hunt
    price = lost_so_far(world)
    give_up(world, hunt)
    both = _search_beyond(world, Hunt(w, c, BOTH, hunt.top, False, STRICT, hunt.need, False, PLAIN))
    if both.need > 0:
        if lost_so_far(world) < price:
            return both
        give_up(world, both)
    found = hunt_down(world, hunt)
    none = Hunt(w, c, PREEMPT, hunt.top, True, STRICT, NOBODY, False, PLAIN)
    return hunt if found else none


@inner
def _search_beyond(world: World, hunt: Hunt) -> Hunt:
    """Both, where reclaim below the top of ``hunt`` and preempt failed each for itself."""
    w, c, need, top = hunt.w, hunt.c, hunt.need, first_of_both(world, hunt)
    ask = Hunt(w, c, BOTH, top, False, hunt.overlook, need, False, PLAIN)
    return _search_both(world, ask, False)


@inner
def _search_both(world: World, ask: Hunt, entitled: bool) -> Hunt:
    """The search that succeeds among those that reclaim and preempt, from the top of ``ask`` up to the root:
    what leaves below a queue may bring the workload inside the share there, and so entitle it to what others
    hold above theirs. Sparing first, as ``_search``.
    """
    w, c, need, overlook, top = ask.w, ask.c, ask.need, ask.overlook, ask.top
    while top >= 0:
        for owed in (False, True):
            hunt = Hunt(w, c, BOTH_OWED if owed else BOTH, top, owed, overlook, need, False, PLAIN)
            if not is_promising(world, hunt):
                continue
            if overlook == STRICT and world.rules.now < patient_until(world, w, BOTH, owed):
                world.book.forbidden[DELAY] = 1
                if world.rules.now < patient_until(world, w, BOTH, True):
                    continue
                hunt = Hunt(w, c, BOTH_OWED, top, owed, overlook, need, False, PLAIN)
            if not entitled and only_reserved(world, w, c):
                return Hunt(w, c, BOTH, top, True, overlook, RESERVED_FREE, False, PLAIN)
            if hunt_down(world, hunt):
                return hunt
        top = world.tree.parent[top]
    return Hunt(w, c, BOTH, top, True, overlook, NOBODY, False, PLAIN)


@inner
def _carry_out(world: World, hunt: Hunt) -> None:
    """The chosen leave, the workload keeps the seats it has claimed.

    They may be free already, held for a gang that goes first: that one gets what the victims leave.
    """
    prey, out, gone = world.prey, world.out, 0
    leaves = leaves_by_queue(world, hunt)
    for k in range(prey.count[FIRST], prey.count[END]):
        v = prey.picked[k]
        note_loss(world, k)
        if prey.part[k] == MOVES:
            move_for(world, hunt, v)
            world.book.rounds[MOVED] += 1
            gone += 1
        elif prey.part[k] == LEAVES:
            reason = codes.PREEMPTED if is_own(world, hunt, v) else codes.RECLAIMED
            evict_for(world, hunt, v, reason, leaves)
            gone += 1
        elif not prey.chosen[v] and not is_shrunk(world, v):
            shrink_for(world, hunt, v, leaves)
            gone += 1
    changed(world, ROOM, hunt.c, EVERY)
    start_or_promise(world, hunt.w, hunt.c, world.work.least[hunt.w])
    if out.action[hunt.w] == codes.RESERVE:
        out.figures[hunt.w, 4] = gone


@inner
def leaves_by_queue(world: World, hunt: Hunt) -> Ints:
    """Milli-GPU of the chosen, by their queue just below the common ancestor."""
    prey, leaves = world.prey, np.zeros(world.tree.parent.size, np.int64)
    for k in range(prey.count[FIRST], prey.count[END]):
        v = prey.picked[k]
        if prey.part[k] == MOVES:
            continue
        members = 1 if prey.part[k] >= 0 else world.work.members[v] - prey.given[v]
        leaves[branch_of(world.tree, world.work.queue[v], world.work.queue[hunt.w])] += (
            members * world.work.need[GPUS, v]
        )
    return leaves
