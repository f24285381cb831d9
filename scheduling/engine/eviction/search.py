"""The one search for room that is not free: every attempt at it, in order, in one table.

All attempts up to fair shares come before those that go further. Where none succeeds, the same table with a
rule waived says what a workload waits for (``what_bars``).
"""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine import codes
from scheduling.engine.admission.reserve import forget_reservation, hold_nodes_again, let_nodes_of
from scheduling.engine.admission.trial import only_reserved, passes_nominal
from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.bounds import (
    bars,
    fails_like_another,
    first_of_both,
    is_promising,
    lent_at_most,
    note_failure,
    note_search_in_vain,
    searched_in_vain,
)
from scheduling.engine.eviction.candidates import ensure_candidates
from scheduling.engine.eviction.carry_out import carry_out
from scheduling.engine.eviction.consolidation import consolidate, move_beside_victims
from scheduling.engine.eviction.find_victims import find_victims, give_up
from scheduling.engine.eviction.free_seats import lost_since
from scheduling.engine.eviction.protection import patient_until
from scheduling.engine.eviction.rules import (
    ALL,
    BOTH,
    BOTH_OWED,
    DELAY,
    MIXED,
    MOVES,
    NOTHING,
    OWN_TOO,
    PREEMPT,
    RECLAIM,
    SOME,
    STRICT,
    VictimRequest,
    asking,
    hasty,
    note_owed,
)
from scheduling.engine.quota.fair_share import LENT, PLAIN, ROUNDED
from scheduling.engine.quota.standing import STARTS, Standing, past_shares_of, standing
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import need_of
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.statement.lines import EVERY, REACH, changed, note_bound
from scheduling.engine.statement.statement import how_many


class Attempt(NamedTuple):
    """One attempt: ``by`` whom room is made; whether gangs may go that lie partly inside the share of their
    queue, or were evicted often, as far as nominal is ``owed``; how far it stretches.
    """

    by: int
    owed: bool
    stretch: int


WAYS = (
    # Nobody leaves and nobody's share changes, so each class of the wish is asked this before any other row.
    Attempt(MOVES, False, PLAIN),
    # Apart from OWN_TOO: lower priority of the own queue stays while others hold more than their shares.
    Attempt(RECLAIM, False, PLAIN),
    # Apart from RECLAIM: a mover is seated elsewhere at once, on GPUs that are free now, so nodes are cleared
    # one by one; at most MOST_MIXED times in a cycle.
    Attempt(MIXED, False, PLAIN),
    Attempt(RECLAIM, True, PLAIN),
    # First inside the leaf alone, where nobody has to be entitled; then from where reclaim ended to the root.
    Attempt(OWN_TOO, False, PLAIN),
    # Apart from that: the queues of the workload have to end inside their nominal, not inside their shares.
    Attempt(OWN_TOO, True, PLAIN),
    # Inside the shares of others, so only once nothing else does; this and the next at most MOST_STRETCHED
    # times in a cycle.
    Attempt(RECLAIM, True, LENT),
    Attempt(RECLAIM, True, ROUNDED),
)

MOST_STRETCHED = 32
"""Searches in a cycle that go further than to fair shares; this bounds its time."""
MOST_MIXED = 32
"""Searches in a cycle for moves beside evictions, likewise."""

MADE, RESERVED_FREE, NOBODY = 0, 1, 2
"""How a search ends: others leave or move; free GPUs that are kept for another would do; it failed."""
ALL_TO_LEAVE = -1
"""In place of one kind of attempt: all in which somebody leaves."""


class Ask(NamedTuple):
    """``w`` asks for room on class ``c``, ``by`` one kind of attempt or ALL_TO_LEAVE; if ``meet`` is not -1,
    it has to end inside its share in every queue below that one.
    """

    w: int
    c: int
    by: int
    meet: int


@inner
def find_room(world: Session, ask: Ask) -> int:
    """MADE: what was found is carried out. Else all is as before, and the failure is remembered, with what
    stood in the way of somebody (``barred_by``).

    Nodes that a gang keeps for a share above nominal are kept from nobody to whom nominal is owed.
    """
    queues, out = world.queues, world.out
    if not _may_gain(world, ask.w, ask.c):
        return NOBODY
    if ask.by != ALL_TO_LEAVE:
        return _try_ways(world, ask, PLAIN)
    yields = yields_nodes(world, ask.w, ask.c)
    if yields:
        let_nodes_of(world.work, world.room, queues, out, ask.c)
    ended = _try_further_and_further(world, ask)
    if yields and ended == MADE:
        _give_nodes_up(queues, out, ask.c)
    elif yields:
        hold_nodes_again(world.work, world.room, queues, out, ask.c)
    return ended


@inner
def _may_gain(world: Session, w: int, c: int) -> bool:
    """Whether anybody runs on class ``c`` who might make room; then candidates are listed."""
    if passes_nominal(world, w, c):
        return False
    ensure_candidates(world)
    if world.candidates.size_of_class[c] == 0:
        return False
    return not fails_like_another(world, w, c)


@inner
def yields_nodes(world: Session, w: int, c: int) -> bool:
    """Whether nominal is owed to ``w`` and not to the gang that keeps nodes of class ``c``."""
    holder = world.queues.reservations.slot[c]
    return holder >= 0 and not _is_owed(world, holder, c) and _is_owed(world, w, c)


@inner
def _is_owed(world: Session, w: int, c: int) -> bool:
    top = past_shares_of(world, w, c, need_of(world.work, w))[1]
    request = asking(world.work, w, c, RECLAIM, top, True, STRICT)
    return bool(note_owed(world, request) != NOTHING)


@inner
def _give_nodes_up(queues: Queues, out: Decisions, c: int) -> None:
    """The gang that kept them waits; it is tried again, since somebody left."""
    holder = queues.reservations.slot[c]
    out.action[holder] = codes.WAIT
    forget_reservation(queues, c)


@inner
def _try_further_and_further(world: Session, ask: Ask) -> int:
    failed = world.candidates.failed
    in_vain = world.rules.max_moves == 0 and searched_in_vain(world, ask.w, ask.c)
    ended = NOBODY if in_vain else _try_ways(world, ask, PLAIN)
    rested = world.rules.now >= world.work.evicted[ask.w] + world.rules.cooldown
    if ended == NOBODY and rested and not in_vain:
        note_search_in_vain(failed, world.shapes, ask.w, ask.c, world.work.queue[ask.w])
    stretch = _stretch_for(world, ask) if ended == NOBODY else PLAIN
    if stretch != PLAIN:
        world.queues.round.stretched += 1
        ended = _try_ways(world, ask, stretch)
    if ended == NOBODY and rested:
        note_failure(world.work, world.queues, world.candidates, ask.w, ask.c)
    return ended


@inner
def _stretch_for(world: Session, ask: Ask) -> int:
    """How far a reclaim may go where no other search succeeds, if any such search is left."""
    stretch = stretch_of(world, ask)
    if stretch != PLAIN and world.queues.round.stretched == MOST_STRETCHED:
        note_bound(world.out, ask.w, MOST_STRETCHED)
        return PLAIN
    return stretch


@inner
def stretch_of(world: Session, ask: Ask) -> int:
    """How far a reclaim may go where no other search succeeds."""
    if world.queues.redivision.grace_until_s[ask.c] > 0.0:
        return PLAIN
    if _is_owed(world, ask.w, ask.c):
        return LENT
    return ROUNDED if _stands(world, ask).rounded != world.work.queue[ask.w] else PLAIN


@inner
def _try_ways(world: Session, ask: Ask, stretch: int) -> int:
    """Row by row of what goes as far as ``stretch``."""
    world.queues.search.forbidden.fill(0)  # Nothing has stood in the way of a search yet.
    for way in WAYS:
        if way.stretch != stretch or not _is_asked(ask, way):
            continue
        ended, request = try_row(world, ask, way, STRICT)
        if ended == MADE:
            carry_out(world, request)
        if ended != NOBODY:
            world.out.searches.barred_by[ask.w] = 0
            return ended
    if ask.by == ALL_TO_LEAVE:
        world.out.searches.barred_by[ask.w] |= bars(world.queues.search, stretch)
    return NOBODY


@inner
def _is_asked(ask: Ask, way: Attempt) -> bool:
    if ask.by == ALL_TO_LEAVE:
        return way.by != MOVES
    return bool(way.by == ask.by)


@inner
def try_row(world: Session, ask: Ask, way: Attempt, waived: int) -> tuple[int, VictimRequest]:
    """One row: MADE where its victims, or movers, stand in the log and the workload has claimed its seats."""
    w, c, q, need = ask.w, ask.c, world.work.queue[ask.w], need_of(world.work, ask.w)
    if way.by == OWN_TOO:
        ended, request = _climb(world, ask, way, waived, _first_top(world, ask, way, waived))
        if ended == MADE and request.rule == PREEMPT and waived == STRICT:
            return _or_cheaper(world, ask, request)
        return ended, request
    stands = _stands(world, ask)
    top = stands.rounded if way.stretch == ROUNDED else stands.share
    lent = way.stretch == LENT
    request = VictimRequest(w, c, RECLAIM, top, way.owed, waived, need, lent, way.stretch, w)
    if way.by == MOVES:
        return (MADE if consolidate(world, w, c) else NOBODY), request
    owed = note_owed(world, request) if way.stretch != ROUNDED else NOTHING
    if top == q or (way.owed and way.stretch == PLAIN and owed == NOTHING):
        return NOBODY, request
    return _attempt(world, ask, way, request, ALL if lent else owed)


@inner
def _stands(world: Session, ask: Ask) -> Standing:
    return standing(world, ask.w, ask.c, need_of(world.work, ask.w), STARTS)


@inner
def _first_top(world: Session, ask: Ask, way: Attempt, waived: int) -> int:
    """The queue below which both kinds of victims are searched first, -1 for nowhere: for the first row, the
    leaf.
    """
    q = world.work.queue[ask.w]
    if ask.meet >= 0:
        top = past_shares_of(world, ask.w, ask.c, need_of(world.work, ask.w))[1]
        return ask.meet if world.tree.depth[ask.meet] < world.tree.depth[top] else top
    return _beyond(world, ask, waived) if way.owed else q


@inner
def _beyond(world: Session, ask: Ask, waived: int) -> int:
    """The lowest queue below which both kinds may do what each alone cannot, -1 if there is none."""
    top = past_shares_of(world, ask.w, ask.c, need_of(world.work, ask.w))[1]
    return first_of_both(world, asking(world.work, ask.w, ask.c, BOTH, top, False, waived))


@inner
def _climb(
    world: Session, ask: Ask, way: Attempt, waived: int, top: int
) -> tuple[int, VictimRequest]:
    """From ``top`` up to the root: what leaves below a queue may bring the workload inside the share there,
    and so entitle it to what others hold above theirs.
    """
    work, q = world.work, world.work.queue[ask.w]
    request = asking(work, ask.w, ask.c, BOTH, top, way.owed, waived)
    while top >= 0:
        rule = PREEMPT if top == q else (BOTH_OWED if way.owed else BOTH)
        owed = ALL if way.owed or rule == PREEMPT else SOME
        request = asking(work, ask.w, ask.c, rule, top, owed == ALL, waived)
        ended, request = _attempt(world, ask, way, request, owed)
        if ended != NOBODY:
            return ended, request
        top = _beyond(world, ask, waived) if top == q else world.tree.parent[top]
    return NOBODY, request


@inner
def _attempt(
    world: Session, ask: Ask, way: Attempt, request: VictimRequest, owed: int
) -> tuple[int, VictimRequest]:
    """One search, unless it is in vain or too soon; of what it takes at most, so much is ``owed``."""
    work, rules = world.work, world.rules
    if (way.by == MIXED and rules.max_moves == 0) or not is_promising(world, request):
        return NOBODY, request
    until = patient_until(work, rules, request.w, request.rule, owed == ALL)
    if request.overlook == STRICT and rules.now < until:
        world.queues.search.forbidden[DELAY] = 1
        if owed != SOME or rules.now < patient_until(work, rules, request.w, request.rule, True):
            return NOBODY, request
        request = hasty(request)
    if request.rule != RECLAIM and ask.meet < 0 and only_reserved(world, request.w, request.c):
        return RESERVED_FREE, request
    mixes = way.by == MIXED
    found = _moves_beside(world, request) if mixes else _find_victims_afresh(world, request)
    return (MADE if found else NOBODY), request


@inner
def _moves_beside(world: Session, request: VictimRequest) -> bool:
    """Others move beside those who may go for it."""
    rounds = world.queues.round
    if rounds.mixed == MOST_MIXED:
        note_bound(world.out, request.w, MOST_MIXED)
        return False
    rounds.mixed += 1
    return bool(move_beside_victims(world, request))


@inner
def _find_victims_afresh(world: Session, request: VictimRequest) -> bool:
    """Nodes are rated anew for what is LENT, and again for the next search."""
    lent = request.stretch == LENT
    if lent:
        changed(world.candidates, world.shapes, REACH, request.c, EVERY)
    found = find_victims(world, request)
    if lent:
        changed(world.candidates, world.shapes, REACH, request.c, EVERY)
    return bool(found)


@inner
def _or_cheaper(world: Session, ask: Ask, request: VictimRequest) -> tuple[int, VictimRequest]:
    """The preemption that succeeded, or the search of both kinds where others who hold too much lose less:
    they would leave next, for those of the own queue who left.
    """
    candidates = world.candidates
    if how_many(candidates) < 2 or lent_at_most(world, ask.w, ask.c) == 0:
        return MADE, request
    price = lost_since(world.work, world.out, candidates, candidates.log.first)
    give_up(world, request)
    for way in WAYS:
        if way.by == OWN_TOO:
            ended, both = _climb(world, ask, way, STRICT, _beyond(world, ask, STRICT))
            lost = lost_since(world.work, world.out, candidates, candidates.log.first)
            if ended == MADE and lost < price:
                return MADE, both
            if ended == MADE:
                give_up(world, both)
    return (MADE if find_victims(world, request) else NOBODY), request
