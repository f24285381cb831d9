"""Waiting in line inside a leaf: priority, fairness between users, ordering strategy, time, name.

The line is kept from cycle to cycle: what became pending is merged in, what is not pending any
more falls out. Sorting costs what is new, a pass over the rest.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.order.shapes import find_shape, forget_shapes
from scheduling.engine.state.input import Ranks, Work
from scheduling.engine.state.order import LISTED, OUT, Ordering, Shapes, note_pending
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.units import GPUS, PENDING, RUNNING

RISEN = 1 << 40
"""Rank of a workload that waited past its class's bound: above every priority value."""


@inner
def update_pending(
    ordering: Ordering, shapes: Shapes, work: Work, ranks: Ranks, now: float, shortest: bool
) -> None:
    """Bring the line up to date: ``shortest`` orders by predicted run time before arrival."""
    _drop(ordering, work, ranks, now)
    if shapes.number == shapes.parts.shape[0]:
        forget_shapes(shapes)
        for w in range(work.phase.size):
            if work.phase[w] == PENDING or work.phase[w] == RUNNING:
                find_shape(shapes, work, w)
    if ordering.changes.pending_size[0] > 0:
        _merge_in(ordering, shapes, work, ranks, now, shortest)
    _group(ordering, shapes, work)


@inner
def _drop(ordering: Ordering, work: Work, ranks: Ranks, now: float) -> None:
    """Close the gaps of those that wait no more, and of those that have another rank by now."""
    item, rank, phase = ordering.pending.slot, ordering.pending.rank, work.phase
    state = ordering.changes.pending_state
    priority, submitted = work.priority, work.submitted
    count = 0
    for k in range(ordering.pending.size[0]):
        w = item[k]
        if state[w] != LISTED:
            continue
        if phase[w] != PENDING:
            state[w] = OUT
        elif rank[w] != _rank(ranks, priority[w], submitted[w], now):
            note_pending(ordering, w)
        else:
            item[count] = w
            count += 1
    ordering.pending.size[0] = count


@inner
def _rank(ranks: Ranks, p: int, submitted: float, now: float) -> int:
    if p < 0:
        return 0
    return RISEN if now >= submitted + ranks.max_wait[p] else ranks.value[p]


@inner
def _merge_in(
    ordering: Ordering, shapes: Shapes, work: Work, ranks: Ranks, now: float, shortest: bool
) -> None:
    """Sort those who are fresh, then merge them with those in line."""
    fresh = 0
    for k in range(ordering.changes.pending_size[0]):
        w = ordering.changes.pending[k]
        ordering.changes.pending_state[w] = OUT
        if work.phase[w] == PENDING:
            ordering.changes.pending_state[w] = LISTED
            ordering.pending.rank[w] = _rank(ranks, work.priority[w], work.submitted[w], now)
            find_shape(shapes, work, w)
            ordering.changes.pending[fresh] = w
            fresh += 1
    ordering.changes.pending_size[0] = 0
    _sort(ordering, work, fresh, shortest)
    slot, i, j = ordering.pending.slot, ordering.pending.size[0] - 1, fresh - 1
    ordering.pending.size[0] += fresh
    for k in range(ordering.pending.size[0] - 1, -1, -1):
        if j < 0:
            break
        if i >= 0 and _after(ordering, work, slot[i], ordering.changes.pending[j], shortest):
            slot[k] = slot[i]
            i -= 1
        else:
            slot[k] = ordering.changes.pending[j]
            j -= 1


@inner
def _sort(ordering: Ordering, work: Work, size: int, shortest: bool) -> None:
    """Bottom-up merge sort of ``fresh[:size]``."""
    order, spare = ordering.changes.pending, ordering.pending.scratch
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            i, j = low, middle
            for k in range(low, high):
                first = i < middle
                if first and j < high:
                    first = not _after(ordering, work, order[i], order[j], shortest)
                if first:
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    for k in range(size):
        ordering.changes.pending[k] = order[k]


@inner
def _after(ordering: Ordering, work: Work, a: int, b: int, shortest: bool) -> bool:
    """Whether ``a`` stands after ``b``: leaf, rank, user, then ``later``."""
    if work.queue[a] != work.queue[b]:
        return work.queue[a] > work.queue[b]
    if ordering.pending.rank[a] != ordering.pending.rank[b]:
        return ordering.pending.rank[a] < ordering.pending.rank[b]
    if work.user[a] != work.user[b]:
        return work.user[a] > work.user[b]
    return later(work, a, b, shortest)


@inner
def later(work: Work, a: int, b: int, shortest: bool) -> bool:
    """The order of workloads of one rank: strategy, submit time, tie."""
    if shortest and work.predicted[a] != work.predicted[b]:
        return work.predicted[a] > work.predicted[b]
    if work.submitted[a] != work.submitted[b]:
        return work.submitted[a] > work.submitted[b]
    return work.tie[a] > work.tie[b]


@inner
def _group(ordering: Ordering, shapes: Shapes, work: Work) -> None:
    """Find the groups, and count the kinds of those in them. Arrays are looked up once."""
    pending = ordering.pending
    item, start, leaf = pending.slot, pending.group_begin, pending.queue_begin
    fewest, rank = pending.smallest_ask, pending.rank
    in_queue, user, least, need = work.queue, work.user, work.least, work.need
    claims, on_hold, of, waiting, one = (
        work.claims,
        work.on_hold,
        shapes.of,
        shapes.waiting,
        shapes.first,
    )
    oldest, submitted = ordering.pending.oldest, work.submitted
    groups, queue, before, promised, special = 0, 0, -1, 0, 0
    for q in range(oldest.size):
        oldest[q] = np.inf
    for shape in range(shapes.number):
        waiting[shape] = shapes.on_hold[shape] = 0
    for k in range(ordering.pending.size[0]):
        w = item[k]
        q, smallest, shape = in_queue[w], least[w] * need[GPUS, w], of[w]
        promised += claims[w]
        special += on_hold[w] or shape < 0
        if shape >= 0:
            waiting[shape] += 1
            shapes.on_hold[shape] += on_hold[w]
            one[shape] = w
        while queue <= q:
            leaf[queue], fewest[queue] = groups, smallest
            queue += 1
        if queue > 0:
            fewest[queue - 1] = min(fewest[queue - 1], smallest)
            oldest[queue - 1] = min(oldest[queue - 1], submitted[w])
        same = before >= 0 and in_queue[before] == q and rank[before] == rank[w]
        if not (same and user[before] == user[w]):
            start[groups] = k
            groups += 1
        before = w
    start[groups] = ordering.pending.size[0]
    for q in range(queue, leaf.size):
        leaf[q] = groups
    ordering.pending.promised, ordering.pending.shapeless = promised, special


@inner
def next_workload(ordering: Ordering, work: Work, queues: Queues, q: int, shortest: bool) -> int:
    """The position of the workload of leaf ``q`` that goes next, passing over positions to ``walk.skip``;
    ``walk.cursor`` is each group's cursor. Order: rank, least used by its user in the leaf, then ``later``.
    The leaf must have one.
    """
    at, start, item = ordering.walk.cursor, ordering.pending.group_begin, ordering.pending.slot
    lead = ordering.walk.lead[q] if ordering.walk.led[q] == ordering.walk.usage_epoch else -1
    if lead >= 0:
        _pass_over(ordering, lead)
        if at[lead] < start[lead + 1]:
            at[lead] += 1
            return int(at[lead]) - 1
    best, best_item, tied = -1, -1, False
    for g in range(ordering.pending.queue_begin[q], ordering.pending.queue_begin[q + 1]):
        if best >= 0 and ordering.pending.rank[item[start[g]]] < ordering.pending.rank[best_item]:
            break
        _pass_over(ordering, g)
        if at[g] == start[g + 1]:
            continue
        w = item[at[g]]
        less = -1 if best < 0 else _compared(work, queues, w, best_item)
        if less < 0 or (less == 0 and later(work, best_item, w, shortest)):
            best, best_item = g, w
        tied = less == 0 or (tied and less > 0)
    ordering.walk.lead[q], ordering.walk.led[q] = -1 if tied else best, ordering.walk.usage_epoch
    at[best] += 1
    return int(at[best]) - 1


@inner
def _pass_over(ordering: Ordering, g: int) -> None:
    k, end, skip = ordering.walk.cursor[g], ordering.pending.group_begin[g + 1], ordering.walk.skip
    while k < end and skip[k]:
        k += 1
    ordering.walk.cursor[g] = k


@inner
def _compared(work: Work, queues: Queues, a: int, b: int) -> int:
    """What the users of both hold in the leaf: -1 if that of ``a`` holds less, 0 as much, 1 more."""
    mine, other = queues.usage.user_weighted[work.user[a]], queues.usage.user_weighted[work.user[b]]
    return int(mine > other) - int(mine < other)


@inner
def note_usage_changed(ordering: Ordering) -> None:
    """Users hold something else by now."""
    ordering.walk.usage_epoch += 1
