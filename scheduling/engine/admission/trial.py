"""One workload on one class: it starts, claims what comes free, or does neither."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.admission.allocate import fills_what_leaves, held_against, quota_allows
from scheduling.engine.admission.reserve import backfills
from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.place import place
from scheduling.engine.quota.fair_share import levels_over
from scheduling.engine.quota.limits import eviction_limit_reached
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import BACKFILL, GPUS, LATER, NOW
from scheduling.engine.statement.operations import admit, promise

DONE, REFUSED, NOT_YET = 0, 1, 2


@inner
def try_class(world: Session, w: int, c: int, turn: int) -> int:
    """Start on class ``c`` now, or claim what is about to come free."""
    tree, rules, queues = world.tree, world.rules, world.queues
    work, q = world.work, world.work.queue[w]
    gpus = work.need[GPUS, w]
    shares = held_against(tree, world.work, world.ordering.merit.due, w)
    over = levels_over(tree, queues, world.division, shares, c, work.least[w] * gpus)
    if eviction_limit_reached(work, rules, w):
        turn = 0
    if over > turn:
        return REFUSED if eviction_limit_reached(work, rules, w) else NOT_YET
    most = work.most[w]
    while most >= work.least[w] and not quota_allows(world, w, c, most * gpus, turn):
        most -= 1
    if most < work.least[w]:
        return REFUSED
    late = fills_what_leaves(tree, world.quotas, queues, q, c, most * gpus)
    for when in (NOW, BACKFILL, LATER):
        # What was due for long and is still there is not waited for once more.
        if when == LATER and (world.room.coming[c] == 0 or world.out.lapsed[w] == codes.OVERDUE):
            continue
        if when == LATER and over > 0 and _others_first(world.room, queues, c):
            return NOT_YET
        if when != LATER and (
            late or (when == BACKFILL and not backfills(work, rules, queues, w, c))
        ):
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
