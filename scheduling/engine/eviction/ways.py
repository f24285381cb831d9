"""Step c of a cycle for one workload: others move, what has just started steps back, others leave."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.trial import DONE, passes_nominal, try_class
from scheduling.engine.admission.turns import ahead_of, give_up_turn
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.division.share_out import share_out_before_search
from scheduling.engine.eviction.borrowers import goes_before_borrowers
from scheduling.engine.eviction.bounds import displaceable
from scheduling.engine.eviction.candidates import ensure_candidates
from scheduling.engine.eviction.giving_way import gives_way, may_make_room
from scheduling.engine.eviction.precedence import (
    OWN,
    ask_again,
    can_step_back,
    hand_over,
    lower_steps_back,
    note_in_vain,
    preempting,
    start_again,
)
from scheduling.engine.eviction.rules import MOVES
from scheduling.engine.eviction.search import ALL_TO_LEAVE, MADE, Ask, find_room
from scheduling.engine.order.by_merit import by_merit
from scheduling.engine.placement.unlike import all_fit
from scheduling.engine.quota.standing import ON_LOAN, STARTS, past_shares_of, standing
from scheduling.engine.state.input import need_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import NOW
from scheduling.engine.statement.lines import EVERY, ROOM, changed
from scheduling.engine.statement.statement import search_afresh


@inner
def gets_room(world: Session, w: int, c: int, turn: int) -> bool:
    """Nobody is evicted for what somebody has just borrowed; where a subtree gives out by merit, nobody
    steps back for a share.
    """
    share_out_before_search(world)
    if by_merit(world.tree, world.work.queue[w]):
        return gives_way(world, w, c) or (may_make_room(world, w, c) and _make_room(world, w, c))
    if goes_before_borrowers(world, w, c) or _make_room(world, w, c):
        return True
    return _goes_before_the_new(world, w, c, turn)


@inner
def _move_others(world: Session, w: int, c: int) -> bool:
    if world.rules.max_moves == 0:
        return False
    return bool(find_room(world, Ask(w, c, MOVES, -1)) == MADE)


@inner
def _make_room(world: Session, w: int, c: int) -> bool:
    return bool(find_room(world, Ask(w, c, ALL_TO_LEAVE, -1)) == MADE)


@inner
def others_move(world: Session, w: int) -> bool:
    """On the first class of its wish where that gives ``w`` room."""
    for k in range(world.work.wish.shape[0]):
        c = world.work.wish[k, w]
        if c < 0:
            break
        if ahead_of(world, w, c) < 0 and _move_others(world, w, c):
            return True
    return False


@inner
def _goes_before_the_new(world: Session, w: int, c: int, turn: int) -> bool:
    """Lower priority of its queue that has just started, claimed room or moved steps back where that lets
    ``w`` start: rather those for whom nobody left.
    """
    if not can_step_back(world, w, c):
        return False
    size = 0
    for served in (False, True):
        who = lower_steps_back(world, w, c, served)
        if who.size == size:
            start_again(world, w, who)
        elif _starts_without(world, w, c, turn, who):
            return True
        size = who.size
    if size > 0:
        note_in_vain(world.work, world.queues, world.shapes, w, c, OWN)
    return False


@inner
def _starts_without(world: Session, w: int, c: int, turn: int, who: Ints) -> bool:
    """``w`` starts, or makes room, where ``who`` have stepped back; else they start again."""
    candidates, q, refused = world.candidates, world.work.queue[w], world.candidates.failed.slot
    failed, refused[c, q] = refused[c, q], -1
    gets_room = try_class(world, w, c, turn) == DONE or _move_others(world, w, c)
    if not gets_room and not _makes_room_beside(world, w, c, who):
        refused[c, q] = failed
        start_again(world, w, who)
        return False
    search_afresh(candidates)
    changed(candidates, world.shapes, ROOM, c, EVERY)
    ask_again(world, w, c, who)
    for v in who:
        if world.out.action[v] == codes.UNDECIDED:
            try_class(world, v, c, 0)
            hand_over(world.work, world.out, w, v)
    return True


@inner
def _makes_room_beside(world: Session, w: int, c: int, who: Ints) -> bool:
    """A search counts in the eviction cap only its own victims: not those of ``who`` that were to move, nor
    those who left for them.
    """
    for v in who:
        counted = world.out.action[v] == codes.MOVE or world.out.starts.served[v]
        if counted and world.rules.eviction_cap < np.inf:
            return False
    return _make_room(world, w, c)


@inner
def takes_what_is_its_own(world: Session, w: int, turn: int) -> bool:
    """Step c on the classes on which ``w`` need not wait for a later pass: before anybody borrows what it is
    entitled to, or lower priority of its queue is served. Not where it may borrow itself then, which
    displaces nobody.
    """
    work, own = world.work, False
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if past_shares_of(world, w, c, need_of(work, w))[0] <= turn:
            own = own or ahead_of(world, w, c) < 0
        elif _finds_idle(world, w, c):
            return False
    return _makes_room_in_turn(world, w, turn, not own)


@inner
def _is_in_turn_by_priority(world: Session, w: int, c: int, turn: int) -> bool:
    """Whether it is so without the lower priority that its queue runs, of which more would be asked first."""
    work, ranks, queues, candidates = world.work, world.ranks, world.queues, world.candidates
    begin, q, need = world.ordering.running.queue_begin, work.queue[w], need_of(work, w)
    if begin[q + 1] == begin[q + 2] or passes_nominal(world, w, c):
        return False
    ensure_candidates(world)
    less = displaceable(work, ranks, queues, candidates, preempting(work, w, c))
    return less > 0 and past_shares_of(world, w, c, need - less)[0] <= turn


@inner
def _finds_idle(world: Session, w: int, c: int) -> bool:
    """Whether enough of class ``c`` is free, and limits let it borrow that."""
    work = world.work
    if not all_fit(world, w, c, work.least[w], NOW):
        return False
    return standing(world, w, c, need_of(work, w), STARTS).says <= ON_LOAN


@inner
def _makes_room_in_turn(world: Session, w: int, turn: int, by_priority: bool) -> bool:
    """On a class on which it is in turn, or, ``by_priority``, is so if lower priority of its queue leaves."""
    work = world.work
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if ahead_of(world, w, c) >= 0:
            continue
        if by_priority:
            if not _is_in_turn_by_priority(world, w, c, turn):
                continue
        elif past_shares_of(world, w, c, need_of(work, w))[0] > turn:
            continue
        if _move_others(world, w, c) or gets_room(world, w, c, turn):
            give_up_turn(work, world.queues, world.candidates, world.shapes, w)
            return True
    return False
