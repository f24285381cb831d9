"""Kinds of work: gangs that differ only by name, user, age and how long they are predicted to run.

Whoever joins the line is told its kind once. ``refusals`` keeps by kind what was refused.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.state.input import Work
from scheduling.engine.state.order import DUES, EPOCH, KINDS, OWN, PARTS, WISHES, Memo
from scheduling.engine.state.units import CPUS, GPUS, MEMORY


@inner
def forget_kinds(memo: Memo) -> None:
    for row in range(memo.table.size):
        memo.table[row] = -1
    memo.now[KINDS] = 0
    memo.now[EPOCH] += 1


@inner
def note_kind(memo: Memo, work: Work, w: int) -> None:
    """Find the kind of ``w`` or give it a number; OWN with an unusual list of classes, or in a full table."""
    many = work.wish.shape[0]
    memo.of[w] = OWN
    if many > WISHES and work.wish[WISHES, w] >= 0:
        return
    parts = (
        work.queue[w],
        work.priority[w],
        work.need[GPUS, w],
        work.need[CPUS, w],
        work.need[MEMORY, w],
        work.least[w],
        work.most[w],
        work.required[w],
        int(work.predicted_p90[w] < np.inf),
        work.preferred[w],
        work.where[w],
        work.wish[0, w],
        work.wish[1, w] if many > 1 else -1,
        work.wish[2, w] if many > 2 else -1,
        work.wish[3, w] if many > 3 else -1,
    )
    last = memo.table.size - 1
    row = 0
    for part in parts:
        row = (row * 1000003 + part) & last
    while memo.table[row] >= 0:
        same = True
        for i in range(PARTS):
            same = same and memo.parts[memo.table[row], i] == parts[i]
        if same:
            memo.of[w] = memo.table[row]
            return
        row = (row + 1) & last
    kind = memo.now[KINDS]
    if kind == memo.parts.shape[0]:
        return
    for i in range(PARTS):
        memo.parts[kind, i] = parts[i]
    for due in range(DUES):
        memo.epoch[kind * DUES + due] = 0
    memo.now[KINDS] += 1
    memo.table[row] = memo.of[w] = kind
