"""What work waits for whose searches failed where a rule stood in the way of somebody: the same searches with
that rule waived, which say who would leave, and from when on.

Nobody leaves by them. They are made once a plan has decided who does, for those that wait with a line of
their own, one by shape; and before that for a gang that would keep nodes, since it keeps them until the
protection of the very set that would leave has ended.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.admission.reserve import hold_nodes_again, let_nodes_of
from scheduling.engine.admission.turns import ahead_of
from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.bounds import is_promising, recall_bars
from scheduling.engine.eviction.find_victims import find_victims, give_up
from scheduling.engine.eviction.protection import blame_protection, ends_sooner, is_lawful
from scheduling.engine.eviction.rules import (
    BUDGET,
    CAP,
    DELAY,
    MIXED,
    MOVES,
    PREEMPT,
    PROTECTED,
    VictimRequest,
    asking,
)
from scheduling.engine.eviction.search import (
    ALL_TO_LEAVE,
    MADE,
    NOBODY,
    WAYS,
    Ask,
    stretch_of,
    try_row,
    yields_nodes,
)
from scheduling.engine.quota.fair_share import PLAIN
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.session import Session

WAIVED = (DELAY, PROTECTED, BUDGET, CAP)


@inner
def tell_what_bars_all(world: Session) -> None:
    """The second walk over who waits; those who keep nodes were told before."""
    out, work = world.out, world.work
    for i in range(out.size[0]):
        w = out.order[i]
        if not _asks(out, w):
            continue
        for k in range(work.wish.shape[0]):
            c = work.wish[k, w]
            if c < 0 or (ahead_of(world, w, c) < 0 and tell_what_bars(world, w, c)):
                break


@inner
def _asks(out: Decisions, w: int) -> bool:
    reason = out.reason[w]
    if out.searches.barred_by[w] == 0 or out.action[w] not in (codes.WAIT, codes.RESERVE):
        return False
    if reason in (codes.VICTIMS_PROTECTED, codes.BUDGET_SPENT, codes.EVICTION_CAP):
        return False
    return bool(reason != codes.AWAITS_VICTIMS)


@inner
def tell_what_bars(world: Session, w: int, c: int) -> bool:
    """Whether others would leave class ``c`` for ``w``, which waits, were a rule waived that barred its
    searches: then its line says so. Nodes that ``w`` keeps, or that are kept for less, stand in no way.
    """
    queues, ask = world.queues, Ask(w, c, ALL_TO_LEAVE, -1)
    lets = queues.reservations.slot[c] == w or yields_nodes(world, w, c)
    if lets:
        let_nodes_of(world.work, world.room, queues, world.out, c)
    ended, further = _try_waived(world, ask, PLAIN), stretch_of(world, ask)
    if ended == NOBODY and further != PLAIN:
        ended = _try_waived(world, ask, further)
    if lets:
        hold_nodes_again(world.work, world.room, queues, world.out, c)
    return bool(ended == MADE)


@inner
def _try_waived(world: Session, ask: Ask, stretch: int) -> int:
    """MADE where that is told; one rule after the other, each by every row in which somebody leaves."""
    search, at_limit = world.queues.search, world.out.reason[ask.w] == codes.AT_LIMIT
    if not recall_bars(search, world.out.searches.barred_by[ask.w], stretch):
        return NOBODY
    for waived in WAIVED:
        # A protection ends and a budget is renewed; what the cap forbids waits until the limit gives way.
        if search.forbidden[waived] == 0 or (waived == CAP and at_limit):
            continue
        for way in WAYS:
            if way.stretch != stretch or way.by in (MOVES, MIXED):
                continue
            ended, request = try_row(world, ask, way, waived)
            if ended == MADE:
                return _tell(world, request)
            if ended != NOBODY:
                return ended
    return NOBODY


@inner
def _tell(world: Session, request: VictimRequest) -> int:
    """MADE where those found may not leave yet; all is as before."""
    lawful = is_lawful(world, request)
    if not lawful:
        blame_protection(world, request)
    give_up(world, request)
    if not lawful and request.overlook == DELAY and world.queues.search.forbidden[PROTECTED] == 1:
        _tell_of_sooner(world, request)
    return NOBODY if lawful else MADE


@inner
def _tell_of_sooner(world: Session, origin: VictimRequest) -> None:
    """Work that waits for what others hold may preempt in its own queue before, once a protection ends."""
    w, c, leaf = origin.w, origin.c, world.work.queue[origin.w]
    request = asking(world.work, w, c, PREEMPT, leaf, True, PROTECTED)
    if is_promising(world, request) and find_victims(world, request):
        if ends_sooner(world, request):
            blame_protection(world, request)
        give_up(world, request)
