"""One workload on one class: it starts, claims what comes free, or does neither."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.admission.reserve import backfills
from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.place import is_free, place
from scheduling.engine.placement.unlike import all_fit
from scheduling.engine.quota.standing import NO_TURN, ON_LOAN, STARTS, may_hold, standing, turn_of
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import need_of
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import BACKFILL, GPUS, LATER, NOW
from scheduling.engine.statement.operations import admit, promise

DONE, REFUSED, NOT_YET = 0, 1, 2


@inner
def try_class(world: Session, w: int, c: int, turn: int) -> int:
    """Start on class ``c`` now, or claim what is about to come free."""
    work, rules, queues = world.work, world.rules, world.queues
    gpus, most = work.need[GPUS, w], work.most[w]
    over = turn_of(world, w, c, work.least[w] * gpus)
    if over > turn:
        return REFUSED if over == NO_TURN else NOT_YET
    stands = standing(world, w, c, most * gpus, STARTS)
    while most > work.least[w] and not may_hold(stands, turn):
        most -= 1
        stands = standing(world, w, c, most * gpus, STARTS)
    if not may_hold(stands, turn):
        return REFUSED
    for when in (NOW, BACKFILL, LATER):
        # What was due for long and is still there is not waited for once more.
        if when == LATER and (world.room.coming[c] == 0 or world.out.lapsed[w] == codes.OVERDUE):
            continue
        if when == LATER and over > 0 and _others_first(world.room, queues, c):
            return NOT_YET
        if when != LATER and stands.late:
            continue
        if when == BACKFILL and not backfills(work, rules, queues, w, c):
            continue
        members = place(world, w, c, most, when)
        if members == 0:
            continue
        if when == LATER:
            promise(world, w, c, members)
        else:
            admit(world, w, c, members)
            _note_start(queues, world.out, w)
        return DONE
    return REFUSED


@inner
def _others_first(room: NodeRoom, queues: Queues, c: int) -> bool:
    """Whether somebody has left class ``c`` in this round: whom that brings inside its share is asked before
    anybody borrows what comes free, in the next one.
    """
    return bool(queues.round.left > 0 and room.coming[c] > room.came[c])


@inner
def _note_start(queues: Queues, out: Decisions, w: int) -> None:
    """Work that steps back and starts again is there twice."""
    rounds, begun = queues.round, out.starts.slot
    if rounds.starts < begun.size:
        begun[rounds.starts] = w
        rounds.starts += 1


@inner
def passes_nominal(world: Session, w: int, c: int) -> bool:
    """Whether ``w`` cannot be preempted and would pass its nominal: nobody who leaves changes that."""
    if world.ranks.preemptible[world.work.priority[w]]:
        return False
    return bool(standing(world, w, c, need_of(world.work, w), STARTS).fixed >= 0)


@inner
def only_reserved(world: Session, w: int, c: int) -> bool:
    """Free GPUs would do, were they not kept for another: no reason to displace the own queue's work."""
    if standing(world, w, c, need_of(world.work, w), STARTS).says > ON_LOAN:
        return False
    return bool(all_fit(world, w, c, world.work.least[w], BACKFILL))


@inner
def start_or_promise(world: Session, w: int, c: int, members: int) -> None:
    """The claimed seats are taken if they are free at this moment and no limit is in the way."""
    work, gpus = world.work, members * world.work.need[GPUS, w]
    late = standing(world, w, c, gpus, STARTS).late
    if not late and is_free(world.room, work, world.seats, w, members):
        admit(world, w, c, members)
    else:
        promise(world, w, c, members)
