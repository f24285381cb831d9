"""Asking those who wait once more after somebody left: the next cycle's questions, put in this one.

Whoever is refused may start once others have left or a turn was given up, and room held in vain can go
to others. Were that left to the next cycle, a plan would be followed by another one without anything
having changed outside (law 4).
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.arrays import STEPPED_BACK
from scheduling.engine.compiled import inner, once
from scheduling.engine.lifted import entitles_somebody
from scheduling.engine.record import undecide
from scheduling.engine.reserve import let_nodes_go
from scheduling.engine.world import World


@inner
def stirred(world: World, since: int) -> bool:
    """Whether a decision from number ``since`` on may let somebody start who was refused: an eviction,
    a start while turns or nodes are kept, or one past its share; or whether somebody stepped back.
    """
    out, started = world.out, False
    if world.book.rounds[STEPPED_BACK]:
        return True
    for k in range(since, out.used[0]):
        action = out.action[out.order[k]]
        if action not in (codes.ADMIT, codes.RESERVE, codes.WAIT):
            return True
        if action == codes.ADMIT or out.reason[out.order[k]] == codes.AWAITS_VICTIMS:
            started = True
    return started and (_keeps(world) or entitles_somebody(world, since))


@once
def _keeps(world: World) -> bool:
    book = world.book
    for c in range(book.holder.size):
        if book.holder[c] >= 0:
            return True
        for q in range(book.ratio.size):
            if book.turn[c, q] >= 0:
                return True
    return False


@inner
def reopen(world: World) -> None:
    """Take back what was decided on those who wait, and what is kept for them."""
    out, book = world.out, world.book
    let_nodes_go(world)
    kept = 0
    for k in range(out.used[0]):
        w = out.order[k]
        waits = out.action[w] == codes.RESERVE and out.reason[w] != codes.AWAITS_VICTIMS
        if not waits and out.action[w] != codes.WAIT:
            out.order[kept] = w
            kept += 1
            continue
        undecide(out, w)
    out.used[0] = kept
    for c in range(book.turn.shape[0]):
        for q in range(book.turn.shape[1]):
            book.turn[c, q] = -1
