"""Which work holds GPUs, by queue: kept from cycle to cycle as the line is.

What started is put in, what does not run any more falls out.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.order.shapes import find_shape
from scheduling.engine.state.input import Work
from scheduling.engine.state.order import FRESH, LISTED, OUT, UNKNOWN, Ordering, Shapes
from scheduling.engine.state.units import RUNNING


@inner
def update_running(ordering: Ordering, shapes: Shapes, work: Work) -> None:
    """Bring the list up to date; what never waited here gets its kind."""
    count = _drop(ordering, work)
    fresh = ordering.changes.running_size[0]
    if fresh * (count + fresh) < work.phase.size:
        for k in range(ordering.changes.running_size[0]):
            count = _put_in(ordering, work, ordering.changes.running[k], count)
        ordering.running.size[0] = count
    else:
        _list_all(ordering, work)
    for k in range(ordering.changes.running_size[0]):
        w = ordering.changes.running[k]
        if ordering.changes.running_state[w] == LISTED and shapes.of[w] == UNKNOWN:
            find_shape(shapes, work, w)
    ordering.changes.running_size[0] = 0
    _sum_up(ordering, work)


@inner
def _drop(ordering: Ordering, work: Work) -> int:
    """Close the gaps of those that left; returns how many stay."""
    running, berth = ordering.running.slot, ordering.changes.running_state
    phase, count = work.phase, 0
    for k in range(ordering.running.size[0]):
        w = running[k]
        if berth[w] != LISTED:
            continue
        if phase[w] == RUNNING:
            running[count] = w
            count += 1
        else:
            berth[w] = OUT
    return count


@inner
def _put_in(ordering: Ordering, work: Work, w: int, size: int) -> int:
    if work.phase[w] != RUNNING:
        ordering.changes.running_state[w] = OUT
        return size
    ordering.changes.running_state[w] = LISTED
    k, q = size, work.queue[w]
    while k > 0:
        v = ordering.running.slot[k - 1]
        if work.queue[v] < q or (work.queue[v] == q and v < w):
            break
        ordering.running.slot[k] = v
        k -= 1
    ordering.running.slot[k] = w
    return size + 1


@inner
def _list_all(ordering: Ordering, work: Work) -> None:
    """Counting sort by queue."""
    runs = ordering.running.queue_begin
    for q in range(runs.size):
        runs[q] = 0
    for w in range(work.phase.size):
        if work.phase[w] == RUNNING:
            runs[work.queue[w] + 2] += 1
            ordering.changes.running_state[w] = LISTED
        elif ordering.changes.running_state[w] == FRESH:
            ordering.changes.running_state[w] = OUT
    for q in range(2, runs.size):
        runs[q] += runs[q - 1]
    ordering.running.size[0] = runs[runs.size - 1]
    for w in range(work.phase.size):
        if work.phase[w] == RUNNING:
            ordering.running.slot[runs[work.queue[w] + 1]] = w
            runs[work.queue[w] + 1] += 1


@inner
def _sum_up(ordering: Ordering, work: Work) -> None:
    """Where each queue begins, and what is known of those that run. Arrays are looked up once."""
    running, runs = ordering.running.slot, ordering.running.queue_begin
    foretold, queue = ordering.running.predicted, work.queue
    within, elastic, members, least = work.ends_within, work.elastic, work.members, work.least
    begun, known, flexible, short = 0, 0, 0, 0
    for q in range(foretold.size):
        foretold[q] = 0
    for k in range(ordering.running.size[0]):
        w = running[k]
        q = queue[w]
        while begun <= q + 1:
            runs[begun] = k
            begun += 1
        if within[w] < np.inf:
            known += 1
            if q >= 0:
                foretold[q] += 1
        flexible += elastic[w]
        short += members[w] < least[w]
    for i in range(begun, runs.size):
        runs[i] = ordering.running.size[0]
    ordering.running.predicted_in_all, ordering.running.elastic = known, flexible
    ordering.running.below_minimum = short
