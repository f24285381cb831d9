"""One workload on one class: it starts, claims what comes free, or does neither."""

from __future__ import annotations

from scheduling.engine.admission import fills_what_leaves, quota_allows
from scheduling.engine.arrays import BACKFILL, BEGUN, GPUS, LATER, LEFT, NOW
from scheduling.engine.compiled import inner, once
from scheduling.engine.placement import place
from scheduling.engine.record import admit, promise
from scheduling.engine.reserve import backfills
from scheduling.engine.standing import is_worn, levels_over, sharer
from scheduling.engine.world import World

DONE, REFUSED, NOT_YET = 0, 1, 2


@inner
def try_class(world: World, w: int, c: int, turn: int) -> int:
    """Start on class ``c`` now, or claim what is about to come free."""
    work, q = world.work, world.work.queue[w]
    gpus = work.need[GPUS, w]
    over = levels_over(
        world.tree, world.book, world.division, sharer(world.tree, q), c, work.least[w] * gpus
    )
    if is_worn(world, w):
        turn = 0
    if over > turn:
        return REFUSED if is_worn(world, w) else NOT_YET
    most = work.most[w]
    while most >= work.least[w] and not quota_allows(world, w, c, most * gpus, turn):
        most -= 1
    if most < work.least[w]:
        return REFUSED
    late = fills_what_leaves(world, q, c, most * gpus)
    for when in (NOW, BACKFILL, LATER):
        if when == LATER and world.room.coming[c] == 0:
            continue
        if when == LATER and over > 0 and _others_first(world, c):
            return NOT_YET
        if when != LATER and (late or (when == BACKFILL and not backfills(world, w, c))):
            continue
        members = place(world, w, c, most, when)
        if members == 0:
            continue
        if when == LATER:
            promise(world, w, c, members)
        else:
            admit(world, w, c, members)
            _note_start(world, w)
        return DONE
    return REFUSED


@once
def _others_first(world: World, c: int) -> bool:
    """Whether somebody has left class ``c`` in this round: whom that brings inside its share is asked before
    anybody borrows what comes free, in the next one.
    """
    return bool(world.book.rounds[LEFT] > 0 and world.room.coming[c] > world.room.came[c])


@once
def _note_start(world: World, w: int) -> None:
    """Who steps back and starts again is there twice."""
    rounds, begun = world.book.rounds, world.out.begun
    if rounds[BEGUN] < begun.size:
        begun[rounds[BEGUN]] = w
        rounds[BEGUN] += 1
