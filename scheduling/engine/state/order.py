"""What waits and what runs, in order, and its shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags, Floats, Ints, declare, per

OUT, LISTED, FRESH = 0, 1, 2
"""Where a slot stands: not in the order, in it, or among those to be merged in."""
ALL, FEW = 0, 1
"""What is in the pending order: all that wait, or only some, beside the running work of the plan before."""
WISHES, PARTS, DUES = 4, 17, 3
MOST_SHAPES, WORK_BY_SHAPE = 1 << 14, 4
"""Beyond so many, or one for so many slots, workloads are shapes of their own until the table is laid out
anew.
"""
OWN, UNKNOWN = -1, -2


@declare
@dataclass(slots=True)
class PendingSlots:
    """Pending slots ``slot[:size[0]]`` in groups of one leaf, rank and user (``order.pending``).

    ``slot[group_begin[g]:group_begin[g + 1]]`` is group ``g`` in its own order; the groups of leaf ``q``,
    highest rank first, are ``queue_begin[q]:queue_begin[q + 1]``.
    """

    slot: Annotated[Ints, per("slot+1")]
    cell: Annotated[Ints, per("slot+1")]  # [position] see ``Refusals``
    scratch: Annotated[Ints, per("slot+1")]
    rank: Annotated[Ints, per("slot+1")]  # priority value, or RISEN
    group_begin: Annotated[Ints, per("slot+1")]
    queue_begin: Annotated[Ints, per("queue+1")]
    smallest_ask: Annotated[Ints, per("queue+1")]  # milli-GPU that the smallest needs to start
    oldest: Annotated[Floats, per("queue", fill=float("inf"))]  # when the first was submitted
    size: Annotated[Ints, per("1")]
    narrowed: Annotated[Ints, per("1")]  # ALL or FEW
    promised: int  # those who were promised room
    shapeless: int  # those held back or of no shape


@declare
@dataclass(slots=True)
class Pass:
    """How far a pass over the queues has come."""

    cursor: Annotated[Ints, per("slot+1")]  # [group] whom of it the pass has come to
    skip: Annotated[Flags, per("slot+1")]  # [position] those whom it does not ask
    left: Annotated[Ints, per("queue")]  # how many it has still to ask; above leaves, children
    lead: Annotated[Ints, per("queue+1")]  # the group whose user holds least, -1 if several do
    led: Annotated[Ints, per("queue+1")]  # ``usage_epoch`` when that was found
    usage_epoch: int  # counts changes of what users hold


@declare
@dataclass(slots=True)
class RunningSlots:
    """Slots that hold GPUs, ``slot[:size[0]]``, by queue and slot (``order.running``).

    Those of queue ``q`` are ``slot[queue_begin[q + 1]:queue_begin[q + 2]]``; unknown queues come first.
    """

    slot: Annotated[Ints, per("slot+1")]
    queue_begin: Annotated[Ints, per("queue+3")]
    predicted: Annotated[Ints, per("queue+1")]  # work whose end is predicted
    size: Annotated[Ints, per("1")]
    predicted_in_all: int
    elastic: int
    below_minimum: int  # gangs that run with too few members


@declare
class Changes(NamedTuple):
    """Slots whose place in the two orders has to be found anew (``note_pending``, ``note_running``)."""

    pending: Annotated[Ints, per("slot+1")]
    pending_state: Annotated[Ints, per("slot+1")]  # OUT, LISTED, FRESH
    pending_size: Annotated[Ints, per("1")]
    running: Annotated[Ints, per("slot+1")]
    running_state: Annotated[Ints, per("slot+1")]
    running_size: Annotated[Ints, per("1")]


@declare
class MeritLine(NamedTuple):
    """What waits where a subtree gives out by merit: ``position[begin[q]:end[q]]`` are places in
    ``PendingSlots`` of those below its top queue ``q``, the first first (``order.by_merit``).
    """

    expected: Annotated[Floats, per("slot")]  # GPU-seconds, or seconds by the fourth root of GPUs
    promise_due: Annotated[Flags, per("slot")]
    position: Annotated[Ints, per("slot+1")]
    scratch: Annotated[Ints, per("slot+1")]
    begin: Annotated[Ints, per("queue")]
    end: Annotated[Ints, per("queue")]
    cursor: Annotated[Ints, per("queue")]  # whom a pass has come to
    next_due: Annotated[Floats, per("1")]  # when the first of the others is


@declare
class Ordering(NamedTuple):
    pending: PendingSlots
    merit: MeritLine
    walk: Pass
    running: RunningSlots
    changes: Changes


@declare
@dataclass(slots=True)
class Refusals:
    """What was refused, by cell: a shape and how many of the delays before evictions it has waited,
    ``shape * DUES + due`` (``order.refusals``).
    """

    refused_at: Annotated[Ints, per("cell")]  # epoch of the last refusal
    told_by: Annotated[Ints, per("cell")]  # the slot whose line tells why
    ends_within_s: Annotated[Floats, per("cell")]  # of what was refused, -inf if not known
    epoch: int  # counts what may let somebody start who was refused; 0 is never
    change: int  # counts whatever changed, tried or done; 0 is never
    asked_cell: int  # looked at last, or -1


@declare
@dataclass(slots=True)
class Shapes:
    """Shapes of work by number, found through ``table`` (``order.shapes``)."""

    of: Annotated[Ints, per("slot", fill=UNKNOWN)]  # or OWN; UNKNOWN until it waits or runs
    parts: Annotated[Ints, per("shape", "17")]
    members: Annotated[Ints, per("shape")]  # how many wait and run, see ``placement.demand_mix``
    waiting: Annotated[Ints, per("shape")]
    on_hold: Annotated[Ints, per("shape")]  # the part of them that is held back
    is_counted: Annotated[Flags, per("shape")]  # what it asks for is counted, all at once
    first: Annotated[Ints, per("shape")]  # a slot of them; right where any waits
    table: Annotated[Ints, per("place", fill=-1)]  # shape or -1, open addressing
    number: int
    refusals: Refusals


@inner
def note_pending(ordering: Ordering, w: int) -> None:
    """``w`` became pending, or what its place in line rests on has changed."""
    if ordering.changes.pending_state[w] != FRESH:
        ordering.changes.pending_state[w] = FRESH
        ordering.changes.pending[ordering.changes.pending_size[0]] = w
        ordering.changes.pending_size[0] += 1


def note_all_pending(ordering: Ordering, slots: Ints) -> None:
    """Put all pending ``slots`` into an empty line."""
    ordering.changes.pending_state[slots] = FRESH
    ordering.changes.pending[: slots.size] = slots
    ordering.changes.pending_size[0] = slots.size


@inner
def note_running(ordering: Ordering, w: int) -> None:
    """``w`` runs from now on."""
    if ordering.changes.running_state[w] != FRESH:
        ordering.changes.running_state[w] = FRESH
        ordering.changes.running[ordering.changes.running_size[0]] = w
        ordering.changes.running_size[0] += 1


def note_all_running(ordering: Ordering, slots: Ints) -> None:
    """All ``slots`` that run, into an empty list."""
    ordering.changes.running_state[slots] = FRESH
    ordering.changes.running[: slots.size] = slots
    ordering.changes.running_size[0] = slots.size
