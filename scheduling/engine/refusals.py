"""What was refused in this pass: gangs that differ only by name and age are refused alike.

A cycle with a hundred thousand waiting workloads has few kinds of them. What refuses one goes on
refusing its like until somebody leaves or gives up a turn: free room and quota only shrink meanwhile.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.arrays import CPUS, GPUS, MEMORY
from scheduling.engine.compiled import inner, once
from scheduling.engine.memo import ROWS, UNSETTLED, WISHES
from scheduling.engine.record import decide
from scheduling.engine.world import World


@once
def forget_refusals(world: World) -> None:
    """Somebody left, gave up a turn or keeps one: all are asked again."""
    world.memo.now[0] += 1


@inner
def refused_alike(world: World, w: int) -> bool:
    """Whether the like of ``w`` was refused since anything changed for the better; ``w`` gets its line."""
    memo = world.memo
    row = _row_of(world, w)
    memo.now[1] = row
    if row < 0 or memo.epoch[row] != memo.now[0]:
        return False
    if memo.like[row] != UNSETTLED:
        _copy_line(world, memo.like[row], w)
    return True


@once
def note_refusal(world: World, w: int, settled: bool) -> None:
    """``w``, for whom ``refused_alike`` was just asked, was refused; ``settled``: its line is written."""
    memo = world.memo
    row = memo.now[1]
    if row >= 0:
        memo.epoch[row] = memo.now[0]
        memo.like[row] = w if settled else UNSETTLED


@inner
def _row_of(world: World, w: int) -> int:
    """The row of the kind of ``w``, -1 if it is one of its own: it may end in time to backfill, was
    promised room, or has an unusual list of classes. Another kind in the row is written over.
    """
    work, memo = world.work, world.memo
    many = work.wish.shape[0]
    if (
        work.claims[w]
        or work.predicted_p90[w] < np.inf
        or world.rules.now < work.evicted[w] + world.rules.cooldown
        or (many > WISHES and work.wish[WISHES, w] >= 0)
    ):
        return -1
    waited = world.rules.now - work.submitted[w]
    due = int(waited >= world.rules.delay) + int(waited >= world.rules.fair_delay)
    parts = (
        work.queue[w],
        work.priority[w],
        work.need[GPUS, w],
        work.need[CPUS, w],
        work.need[MEMORY, w],
        work.least[w] * 3 + due,
        work.most[w],
        work.required[w],
        work.preferred[w],
        work.wish[0, w],
        work.wish[1, w] if many > 1 else -1,
        work.wish[2, w] if many > 2 else -1,
        work.wish[3, w] if many > 3 else -1,
    )
    row = 0
    for part in parts:
        row = (row * 1000003 + part) % ROWS
    same = True
    for i in range(13):
        same = same and memo.parts[row, i] == parts[i]
    if not same:
        memo.epoch[row] = 0
        for i in range(13):
            memo.parts[row, i] = parts[i]
    return row


@once
def _copy_line(world: World, like: int, w: int) -> None:
    """The same reason with the same numbers; a delay that has still to pass is counted from its own start."""
    out, submitted = world.out, world.work.submitted
    decide(out, w, out.action[like], out.reason[like], out.gpu_class[like], 0)
    out.rival[w], out.blame[w], out.until[w] = out.rival[like], out.blame[like], out.until[like]
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = out.figures[like, i]
    if out.reason[w] == codes.VICTIMS_PROTECTED and int(out.figures[w, 4]) == 0:
        out.until[w] += submitted[w] - submitted[like]
