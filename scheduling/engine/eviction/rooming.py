"""Making room for one workload: move others, reclaim, preempt, or say what forbids it."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.admission.allocate import (
    need_of,
    only_reserved,
    passes_nominal,
)
from scheduling.engine.admission.reserve import forget_reservation, hold_nodes_again, let_nodes_of
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.eviction.bounds import (
    fails_like_another,
    first_of_both,
    is_promising,
    lent_at_most,
    note_failure,
)
from scheduling.engine.eviction.candidates import list_candidates
from scheduling.engine.eviction.carry_out import carry_out
from scheduling.engine.eviction.consolidation import consolidate, move_beside_victims, moving
from scheduling.engine.eviction.free_seats import find_victims, give_up, lost_so_far
from scheduling.engine.eviction.protection import (
    blame_protection,
    ends_sooner,
    is_lawful,
    patient_until,
)
from scheduling.engine.eviction.rules import (
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
    VictimRequest,
    note_owed,
)
from scheduling.engine.quota.fair_share import LENT, PLAIN, ROUNDED, reach
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS
from scheduling.engine.statement.changed import EVERY, REACH, changed
from scheduling.engine.statement.lines import note_bound
from scheduling.engine.statement.statement import how_many

NOBODY, RESERVED_FREE = 0, -1
"""In place of what a search needs: it failed, or free GPUs that are kept for another would do."""
WAITS, DONE = 1, 2
"""Else how a search ended: a protection is what it waits for, or others leave."""
MOST_STRETCHED = 32
"""Searches in a cycle that go further than to fair shares; this bounds its time."""
MOST_MIXED = 32
"""Searches in a cycle for moves beside evictions, likewise."""


@inner
def move_others(world: Session, w: int, c: int) -> bool:
    """Step c, without evictions: others move on class ``c`` where that gives ``w`` room."""
    if world.rules.max_moves == 0 or not _may_gain(world, w, c) or not consolidate(world, w, c):
        return False
    carry_out(world, moving(world, w, c))
    return True


@inner
def make_room(world: Session, w: int, c: int) -> bool:
    """Step c: reclaim, preempt. Where only time, budget or cap forbid it, that is the reason.

    Nodes that a gang keeps for a share above nominal are kept from nobody to whom nominal is owed.
    """
    if not _may_gain(world, w, c):
        return False
    yields = _yields(world, w, c)
    if yields:
        let_nodes_of(world, c)
    if _search_victims(world, w, c, need_of(world, w)):
        if yields:
            _give_nodes_up(world, c)
        return True
    if yields:
        hold_nodes_again(world, c)
    return False


@once
def _yields(world: Session, w: int, c: int) -> bool:
    """Whether nominal is owed to ``w`` and not to who keeps nodes of class ``c``."""
    holder = world.queues.reservations.slot[c]
    return holder >= 0 and not _is_owed(world, holder, c) and _is_owed(world, w, c)


@inner
def _is_owed(world: Session, w: int, c: int) -> bool:
    need = need_of(world, w)
    top = reach(world.tree, world.queues, world.division, world.work.queue[w], c, need)
    return bool(
        note_owed(world, VictimRequest(w, c, RECLAIM, top, True, STRICT, need, False, PLAIN))
        != NOTHING
    )


@once
def _give_nodes_up(world: Session, c: int) -> None:
    """Who kept them waits; it is asked again, since somebody left."""
    holder = world.queues.reservations.slot[c]
    world.out.action[holder] = codes.WAIT
    forget_reservation(world, c)


@inner
def make_room_below(world: Session, w: int, c: int, meet: int) -> bool:
    """``make_room`` where that brings ``w`` inside its share in every queue below ``meet``."""
    if not _may_gain(world, w, c):
        return False
    need, q = need_of(world, w), world.work.queue[w]
    top = reach(world.tree, world.queues, world.division, q, c, need)
    if world.tree.depth[meet] < world.tree.depth[top]:
        top = meet
    request = _search_both(
        world, VictimRequest(w, c, BOTH, top, True, STRICT, need, False, PLAIN), True
    )
    if request.need > 0:
        carry_out(world, request)
    return request.need > 0


@inner
def ensure_candidates(world: Session) -> None:
    """List it if nobody did so in this cycle."""
    if not world.candidates.ready[0]:
        list_candidates(
            world.work,
            world.ranks,
            world.rules,
            world.tree,
            world.ordering,
            world.out.action,
            world.candidates,
        )


@inner
def _may_gain(world: Session, w: int, c: int) -> bool:
    """Whether anybody runs on class ``c`` who might make room; then the candidates is listed."""
    if passes_nominal(world, w, c):
        return False
    ensure_candidates(world)
    if world.candidates.size_of_class[c] == 0:
        return False
    return not fails_like_another(world, w, c)


@once
def _search_victims(world: Session, w: int, c: int, need: int) -> bool:
    ended = _search_overlooking(world, w, c, need, PLAIN)
    stretch = _stretch_for(world, w, c, need) if ended == NOBODY else PLAIN
    if stretch != PLAIN:
        world.queues.round.stretched += 1
        ended = _search_overlooking(world, w, c, need, stretch)
    if ended == DONE:
        return True
    if ended == RESERVED_FREE:
        return False
    if world.rules.now >= world.work.evicted[w] + world.rules.cooldown:
        note_failure(world, w, c)
    return False


@inner
def _search_overlooking(world: Session, w: int, c: int, need: int, stretch: int) -> int:
    """DONE; RESERVED_FREE; WAITS where a protection is told; NOBODY."""
    forbidden = world.queues.search.forbidden
    for overlook in (STRICT, DELAY, PROTECTED, BUDGET, CAP):
        forbidden[overlook] = 0
    for overlook in (STRICT, DELAY, PROTECTED, BUDGET, CAP):
        if overlook != STRICT and forbidden[overlook] == 0:
            continue
        request = _search_by(world, w, c, need, overlook, stretch)
        if request.need == RESERVED_FREE:
            return RESERVED_FREE
        if request.need == NOBODY:
            continue
        if overlook == STRICT or is_lawful(world, request):
            carry_out(world, request)
            return DONE
        if world.out.action[w] == codes.UNDECIDED:
            blame_protection(world, request)
        give_up(world, request)
        if overlook == DELAY and forbidden[PROTECTED] == 1:
            _tell_of_sooner(world, request)
        return WAITS
    return NOBODY


@once
def _tell_of_sooner(world: Session, told: VictimRequest) -> None:
    """Who waits for what others hold may preempt in its own queue before, once a protection ends."""
    w, c, need, top = told.w, told.c, told.need, told.top
    request = VictimRequest(w, c, PREEMPT, top, True, PROTECTED, need, False, PLAIN)
    if is_promising(world, request) and find_victims(world, request):
        if ends_sooner(world, request):
            blame_protection(world, request)
        give_up(world, request)


@once
def _search_by(
    world: Session, w: int, c: int, need: int, overlook: int, stretch: int
) -> VictimRequest:
    q = world.work.queue[w]
    if stretch == PLAIN:
        top = reach(world.tree, world.queues, world.division, q, c, need)
        return _search(world, w, c, top, need, overlook)
    return _search_further(world, w, c, need, overlook, stretch)


@once
def _stretch_for(world: Session, w: int, c: int, need: int) -> int:
    """How far a reclaim for ``w`` may go where no other search succeeds, whatever it overlooks."""
    queues, q, stretch = world.queues, world.work.queue[w], PLAIN
    if queues.redivision.grace_until_s[c] > 0.0:
        return PLAIN
    if _is_owed(world, w, c):
        stretch = LENT
    elif _rounded_reach(world, q, c, need) != q:
        stretch = ROUNDED
    if stretch != PLAIN and queues.round.stretched == MOST_STRETCHED:
        note_bound(world.out, w, MOST_STRETCHED)
        return PLAIN
    return stretch


@inner
def _rounded_reach(world: Session, q: int, c: int, need: int) -> int:
    """The highest queue below which ``need`` more brings each queue on the way closer to its share."""
    held, fair = world.queues.usage.held, world.division.fair
    while q > 0 and need < 2.0 * (fair[c, q] - held[c, q]) - EPS:
        q = world.tree.parent[q]
    return q


@once
def _search_further(
    world: Session, w: int, c: int, need: int, overlook: int, stretch: int
) -> VictimRequest:
    q = world.work.queue[w]
    top = _rounded_reach(world, q, c, need)
    if stretch == LENT:
        top = reach(world.tree, world.queues, world.division, q, c, need)
    patient = world.rules.now >= patient_until(world, w, RECLAIM, stretch == LENT)
    request = VictimRequest(w, c, RECLAIM, top, True, overlook, need, stretch == LENT, stretch)
    if overlook == STRICT and not patient:
        world.queues.search.forbidden[DELAY] = 1
    elif is_promising(world, request) and _find_victims_afresh(world, request):
        return request
    return VictimRequest(w, c, RECLAIM, top, True, overlook, NOBODY, False, stretch)


@once
def _find_victims_afresh(world: Session, request: VictimRequest) -> bool:
    """Nodes are rated anew for what is LENT, and again for whoever searches next."""
    lent = request.stretch == LENT
    if lent:
        changed(world, REACH, request.c, EVERY)
    found = find_victims(world, request)
    if lent:
        changed(world, REACH, request.c, EVERY)
    return bool(found)


@once
def _search(world: Session, w: int, c: int, top: int, need: int, overlook: int) -> VictimRequest:
    """The first search that succeeds; its ``need`` is NOBODY if none does.

    Reclaim sparing gangs that lie partly inside their queue's fair share or were evicted often; reclaim
    them too, as far as nominal is owed to the workload; preempt, unless free GPUs would do, were they not
    kept for another; do both.
    """
    owed = note_owed(world, VictimRequest(w, c, RECLAIM, top, True, overlook, need, False, PLAIN))
    for attempt in range(3):
        rule = PREEMPT if attempt == 2 else RECLAIM
        if rule == RECLAIM and (top == world.work.queue[w] or (attempt == 1 and owed == NOTHING)):
            continue
        hasty = False
        if overlook == STRICT and world.rules.now < patient_until(world, w, rule, owed == ALL):
            world.queues.search.forbidden[DELAY] = 1
            hasty = rule == RECLAIM and owed == SOME
            if not hasty or world.rules.now < patient_until(world, w, rule, True):
                continue
        request = VictimRequest(w, c, rule, top, attempt > 0, overlook, need, hasty, PLAIN)
        if not is_promising(world, request):
            continue
        if rule == PREEMPT and only_reserved(world, w, c):
            return VictimRequest(w, c, PREEMPT, top, True, overlook, RESERVED_FREE, False, PLAIN)
        if find_victims(world, request):
            return (
                _or_cheaper(world, request) if rule == PREEMPT and overlook == STRICT else request
            )
        if attempt == 0 and _moves_some_beside(world, request):
            return request
    return _search_beyond(
        world, VictimRequest(w, c, BOTH, top, False, overlook, need, False, PLAIN)
    )


@once
def _moves_some_beside(world: Session, request: VictimRequest) -> bool:
    """Before gangs go that lie partly inside their queue's share, others move beside those that do not."""
    rounds = world.queues.round
    if request.overlook != STRICT or world.rules.max_moves == 0:
        return False
    if rounds.mixed == MOST_MIXED:
        note_bound(world.out, request.w, MOST_MIXED)
        return False
    rounds.mixed += 1
    return bool(move_beside_victims(world, request))


@once
def _or_cheaper(world: Session, request: VictimRequest) -> VictimRequest:
    """The preemption that succeeded, or the search of both kinds where others who hold too much lose less:
    they would leave next, for those of the own queue who left.
    """
    w, c = request.w, request.c
    if how_many(world.candidates) < 2 or lent_at_most(world, w, c) == 0:
        return request
    price = lost_so_far(world)
    give_up(world, request)
    both = _search_beyond(
        world, VictimRequest(w, c, BOTH, request.top, False, STRICT, request.need, False, PLAIN)
    )
    if both.need > 0:
        if lost_so_far(world) < price:
            return both
        give_up(world, both)
    found = find_victims(world, request)
    none = VictimRequest(w, c, PREEMPT, request.top, True, STRICT, NOBODY, False, PLAIN)
    return request if found else none


@inner
def _search_beyond(world: Session, request: VictimRequest) -> VictimRequest:
    """Both, where reclaim below the top of ``search`` and preempt failed each for itself."""
    w, c, need, top = request.w, request.c, request.need, first_of_both(world, request)
    ask = VictimRequest(w, c, BOTH, top, False, request.overlook, need, False, PLAIN)
    return _search_both(world, ask, False)


@inner
def _search_both(world: Session, ask: VictimRequest, entitled: bool) -> VictimRequest:
    """The search that succeeds among those that reclaim and preempt, from the top of ``ask`` up to the root:
    what leaves below a queue may bring the workload inside the share there, and so entitle it to what others
    hold above theirs. Sparing first, as ``_search``.
    """
    w, c, need, overlook, top = ask.w, ask.c, ask.need, ask.overlook, ask.top
    while top >= 0:
        for owed in (False, True):
            request = VictimRequest(
                w, c, BOTH_OWED if owed else BOTH, top, owed, overlook, need, False, PLAIN
            )
            if not is_promising(world, request):
                continue
            if overlook == STRICT and world.rules.now < patient_until(world, w, BOTH, owed):
                world.queues.search.forbidden[DELAY] = 1
                if world.rules.now < patient_until(world, w, BOTH, True):
                    continue
                request = VictimRequest(w, c, BOTH_OWED, top, owed, overlook, need, False, PLAIN)
            if not entitled and only_reserved(world, w, c):
                return VictimRequest(w, c, BOTH, top, True, overlook, RESERVED_FREE, False, PLAIN)
            if find_victims(world, request):
                return request
        top = world.tree.parent[top]
    return VictimRequest(w, c, BOTH, top, True, overlook, NOBODY, False, PLAIN)
