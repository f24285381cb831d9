"""What was refused in this pass: gangs of one kind are refused alike.

A cycle with a hundred thousand waiting workloads has few kinds of them. What refuses one goes on
refusing its like until somebody leaves or gives up a turn: free room and quota only shrink meanwhile.
Nor can one start by backfilling that takes longer than its like.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.order.shapes import note_kind
from scheduling.engine.quota.limits import is_worn
from scheduling.engine.state.order import CELL, DUES, EPOCH
from scheduling.engine.state.session import World
from scheduling.engine.state.units import EPS, PENDING


@inner
def note_cells(world: World) -> None:
    """The cell of each that waits, by position in line."""
    line = world.line
    for k in range(line.count[0]):
        line.cell[k] = _cell_of(world, line.item[k])


@once
def refused_alike(world: World, w: int, cell: int) -> bool:
    """Whether the like of ``w`` was refused since anything changed for the better."""
    memo = world.memo
    memo.now[CELL] = cell
    if cell < 0 or memo.epoch[cell] != memo.now[EPOCH]:
        return False
    return memo.p90[cell] == -np.inf or world.work.predicted_p90[w] >= memo.p90[cell]


@once
def note_refusal(world: World, w: int, settled: bool) -> None:
    """``w``, for whom ``refused_alike`` was just asked, was refused; ``settled``: its line is written."""
    memo = world.memo
    cell = memo.now[CELL]
    if cell >= 0:
        p90 = world.work.predicted_p90[w]
        memo.epoch[cell], memo.p90[cell] = memo.now[EPOCH], p90 if p90 < np.inf else -np.inf
        if settled:
            memo.like[cell] = w


@inner
def waits_like_another(world: World, w: int) -> bool:
    """Whether ``w``, which has just arrived, cannot but wait: one of its kind did in the last plan, and
    its queue asks for more than its share already, so that the division stays what it is.
    """
    memo, work = world.memo, world.work
    note_kind(memo, work, w)
    kind = memo.of[w]
    if kind < 0 or world.book.limited[0] or not _asks_in_vain(world, w):
        return False
    for due in range(DUES):
        like = memo.like[kind * DUES + due]
        waits = work.phase[like] == PENDING and world.out.action[like] == codes.WAIT
        ends_later = work.predicted_p90[w] >= work.predicted_p90[like]
        if waits and ends_later and memo.of[like] == kind and _cell_of(world, like) >= 0:
            return True
    return False


@once
def _asks_in_vain(world: World, w: int) -> bool:
    work, book, q = world.work, world.book, world.work.queue[w]
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c >= 0 and book.asking[c, q] <= world.division.fair[c, q] + EPS:
            return False
    return True


@inner
def _cell_of(world: World, w: int) -> int:
    """-1 if ``w`` is a kind of its own: it was promised room, evicted often, or for somebody a while ago."""
    work, rules = world.work, world.rules
    kind = world.memo.of[w]
    if kind < 0 or work.claims[w] or is_worn(world, w):
        return -1
    if rules.now < work.evicted[w] + rules.cooldown:
        return -1
    waited = rules.now - work.submitted[w]
    return int(kind * DUES + int(waited >= rules.delay) + int(waited >= rules.fair_delay))
