"""Who waits and who runs, in order, and the shapes of their work."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare

OUT, LISTED, FRESH = 0, 1, 2
"""Where a slot stands: not in the line, in it, or among those to be merged in."""

ALL, FEW = 0, 1
"""Who is in the line: all that wait, or only some, beside the running work of the plan before."""

STARTED, PROMISED, CHANGES, SPECIAL, SHORT = 6, 7, 8, 9, 10
"""In ``Line.count``: those who joined the running, those in line who were promised room, changes of what
users hold, those in line held back or of no kind, gangs that run with too few members.
"""

WISHES, PARTS, DUES = 4, 15, 3

MOST_KINDS = 1 << 14
"""Beyond so many, workloads are kinds of their own until the table is laid out anew."""

OWN, UNKNOWN = -1, -2

EPOCH, KINDS, CELL = 0, 1, 2


@declare
class Line(NamedTuple):
    """Pending slots ``item[:count[0]]`` in groups of one leaf, rank and user.

    ``item[start[g]:start[g + 1]]`` is group ``g`` in its own order; ``leaf[q]:leaf[q + 1]`` are the
    groups of leaf ``q``, highest rank first. ``fresh[:count[1]]`` became pending since the last cycle.
    """

    item: Ints
    cell: Ints  # [position]: see ``memo``
    fresh: Ints
    spare: Ints
    state: Ints  # [slot]: OUT, LISTED, FRESH
    rank: Ints  # [slot]: priority value, or RISEN
    start: Ints
    at: Ints  # [group] whom of it a pass has come to
    skip: Flags  # [position] those whom a pass does not ask
    left: Ints  # [queue] how many a pass has still to ask in it; above leaves, how many children have any
    leaf: Ints
    running: Ints  # [:count[2]] slots that hold GPUs, by queue and slot, see ``crew``
    started: Ints  # [:count[STARTED]] those that joined them since the last cycle
    berth: Ints  # [slot]: OUT, LISTED, FRESH among them
    runs: (
        Ints  # ``running[runs[q + 1]:runs[q + 2]]`` are those of queue ``q``; unknown queues first
    )
    foretold: Ints  # [queue] running work whose end is predicted
    lead: Ints  # [queue] the group whose user holds least, -1 if several do; right while ``led`` says so
    led: Ints  # [queue] the value of count[CHANGES] then
    fewest: Ints  # [queue] milli-GPU that the smallest of those who wait in it needs to start
    oldest: Floats  # [queue] when the first of those who wait in it was submitted, infinite if nobody does
    count: Ints  # type: ignore[assignment] # nobody asks a struct for tuple.count; [3] ALL or FEW; [4] sum of foretold, [5] elastic ones of those running; then STARTED and so on


def empty_line(slots: int, queues: int) -> Line:
    """A line for ``slots`` workloads of ``queues`` queues, nobody in it."""
    by_slot = [np.zeros(slots + 1, np.int64) for _ in range(11)]
    item, cell, fresh, spare, state, rank, start, running, started, berth, at = by_slot
    leaf, foretold = np.zeros(queues + 1, np.int64), np.zeros(queues + 1, np.int64)
    runs, count, fewest = np.zeros(queues + 3, np.int64), np.zeros(11, np.int64), foretold.copy()
    lead, led, left = foretold.copy(), foretold.copy(), np.zeros(queues, np.int64)
    skip, oldest = np.zeros(slots + 1, np.bool_), np.full(queues, np.inf)
    return Line(
        item, cell, fresh, spare, state, rank, start, at, skip, left, leaf, running, started, berth,
        runs, foretold, lead, led, fewest, oldest, count,
    )  # fmt: skip


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
