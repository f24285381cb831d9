"""What was refused in this pass: gangs of one kind are refused alike.

A cycle with a hundred thousand waiting workloads has few kinds of them. What refuses one goes on
refusing its like until somebody leaves or gives up a turn: free room and quota only shrink meanwhile.
Nor can one start by backfilling that takes longer than its like.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.order.shapes import find_shape
from scheduling.engine.quota.limits import eviction_limit_reached
from scheduling.engine.state.input import Rules, Work
from scheduling.engine.state.order import DUES, Ordering, Shapes
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, PENDING


@inner
def note_cells(work: Work, rules: Rules, ordering: Ordering, shapes: Shapes) -> None:
    """The cell of each that waits, by position in line."""
    for k in range(ordering.pending.size[0]):
        ordering.pending.cell[k] = _cell_of(work, rules, shapes, ordering.pending.slot[k])


@inner
def refused_alike(work: Work, shapes: Shapes, w: int, cell: int) -> bool:
    """Whether the like of ``w`` was refused since anything changed for the better."""
    shapes.refusals.asked_cell = cell
    if cell < 0 or shapes.refusals.refused_at[cell] != shapes.refusals.epoch:
        return False
    ends = shapes.refusals.ends_within_s[cell]
    return ends == -np.inf or work.ends_within[w] >= ends


@inner
def note_refusal(work: Work, shapes: Shapes, w: int, settled: bool) -> None:
    """``w``, for whom ``refused_alike`` was just asked, was refused; ``settled``: its line is written."""
    cell = shapes.refusals.asked_cell
    if cell >= 0:
        within_s = work.ends_within[w]
        shapes.refusals.refused_at[cell] = shapes.refusals.epoch
        shapes.refusals.ends_within_s[cell] = within_s if within_s < np.inf else -np.inf
        if settled:
            shapes.refusals.told_by[cell] = w


@inner
def waits_like_another(world: Session, w: int) -> bool:
    """Whether ``w``, which has just arrived, cannot but wait: one of its kind and user did in the last plan,
    and its queue asks for more than its share already, so that the division stays what it is. Work of
    another user may go first, and then others behind it in turn.
    """
    rules, division, queues = world.rules, world.division, world.queues
    shapes, work = world.shapes, world.work
    find_shape(shapes, work, w)
    shape = shapes.of[w]
    if shape < 0 or queues.limits.any or not _asks_in_vain(work, division, queues, w):
        return False
    for is_due in range(DUES):
        like = shapes.refusals.told_by[shape * DUES + is_due]
        waits = work.phase[like] == PENDING and world.out.action[like] == codes.WAIT
        ends_later = work.ends_within[w] >= work.ends_within[like]
        alike = shapes.of[like] == shape and work.user[w] == work.user[like]
        if waits and ends_later and alike and _cell_of(work, rules, shapes, like) >= 0:
            return True
    return False


@inner
def _asks_in_vain(work: Work, division: Division, queues: Queues, w: int) -> bool:
    q = work.queue[w]
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c >= 0 and queues.redivision.divided[c, q] <= division.fair[c, q] + EPS:
            return False
    return True


@inner
def _cell_of(work: Work, rules: Rules, shapes: Shapes, w: int) -> int:
    """-1 if ``w`` is a kind of its own: others left for it, or it was evicted often, or for somebody a while
    ago.
    """
    shape = shapes.of[w]
    alone = work.claims[w] or work.taken[w] > 0
    if shape < 0 or alone or eviction_limit_reached(work, rules, w):
        return -1
    if rules.now < work.evicted[w] + rules.cooldown:
        return -1
    waited = rules.now - work.submitted[w]
    return int(shape * DUES + int(waited >= rules.delay) + int(waited >= rules.fair_delay))
