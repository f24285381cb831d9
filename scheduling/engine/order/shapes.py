"""Kinds of work: gangs that differ only by name, user, age and how long they are predicted to run.

Whoever joins the line is told its kind once. ``refusals`` keeps by kind what was refused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import declare
from scheduling.engine.state.input import CPUS, GPUS, MEMORY, Flags, Floats, Ints, Work

WISHES, PARTS, DUES = 4, 15, 3
MOST_KINDS = 1 << 14
"""Beyond so many, workloads are kinds of their own until the table is laid out anew."""
OWN, UNKNOWN = -1, -2
EPOCH, KINDS, CELL = 0, 1, 2


@declare
class Memo(NamedTuple):
    """The kinds by number, found through ``table``; and when and how each was refused.

    A cell is a kind and how many of the delays before evictions it has waited: ``kind * DUES + due``.
    """

    of: Ints  # [slot] kind, or OWN, or UNKNOWN until it first waits or runs
    parts: Ints  # [kind, part]
    members: Ints  # [kind] how many wait and run, see ``mix``
    waiting: Ints  # [kind] workloads in line
    held: Ints  # [kind] the part of them that is held back
    asked: Flags  # [kind] what it asks for is counted, all at once
    one: Ints  # [kind] a slot of them; right where any waits
    table: Ints  # [row] kind or -1, open addressing
    epoch: Ints  # [cell] of the last refusal
    like: Ints  # [cell] the slot whose line tells why
    p90: Floats  # [cell] predicted run time (P90, s) of who was refused, -inf where nobody's is known
    now: Ints  # EPOCH, number of KINDS, and the CELL last looked at or -1


def empty_memo(slots: int) -> Memo:
    """Room for the kinds of ``slots`` workloads; none is known."""
    kinds = min(slots, MOST_KINDS) + 1
    rows = 1 << (2 * kinds).bit_length()
    cells = kinds * DUES
    return Memo(
        of=np.full(slots, UNKNOWN, np.int64), parts=np.zeros((kinds, PARTS), np.int64),
        members=np.zeros(kinds, np.int64), waiting=np.zeros(kinds, np.int64),
        held=np.zeros(kinds, np.int64), asked=np.zeros(kinds, np.bool_), one=np.zeros(kinds, np.int64),
        table=np.full(rows, -1, np.int64), epoch=np.zeros(cells, np.int64),
        like=np.zeros(cells, np.int64), p90=np.zeros(cells), now=np.array([1, 0, -1]),
    )  # fmt: skip


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
