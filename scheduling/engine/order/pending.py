"""Waiting in line inside a leaf: priority, fairness between users, ordering strategy, time, name.

The line is kept from cycle to cycle: whoever became pending is merged in, whoever is not pending any
more falls out. Sorting costs what is new, a pass over the rest.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.order.shapes import forget_kinds, note_kind
from scheduling.engine.state.changes import enlist
from scheduling.engine.state.input import Ranks, Work
from scheduling.engine.state.order import CHANGES, KINDS, LISTED, OUT, PROMISED, SPECIAL, Line, Memo
from scheduling.engine.state.units import GPUS, PENDING, RUNNING
from scheduling.engine.state.usage import Book

RISEN = 1 << 40
"""Rank of a workload that waited past its class's bound: above every priority value."""


@inner
def renew(line: Line, memo: Memo, work: Work, ranks: Ranks, now: float, shortest: bool) -> None:
    """Bring the line up to date: ``shortest`` orders by predicted run time before arrival."""
    _drop(line, work, ranks, now)
    if memo.now[KINDS] == memo.parts.shape[0]:
        forget_kinds(memo)
        for w in range(work.phase.size):
            if work.phase[w] == PENDING or work.phase[w] == RUNNING:
                note_kind(memo, work, w)
    if line.count[1] > 0:
        _merge_in(line, memo, work, ranks, now, shortest)
    _group(line, memo, work)


@once
def _drop(line: Line, work: Work, ranks: Ranks, now: float) -> None:
    """Close the gaps of those that wait no more, and of those that have another rank by now."""
    item, state, rank, phase = line.item, line.state, line.rank, work.phase
    priority, submitted = work.priority, work.submitted
    kept = 0
    for k in range(line.count[0]):
        w = item[k]
        if state[w] != LISTED:
            continue
        if phase[w] != PENDING:
            state[w] = OUT
        elif rank[w] != _rank(ranks, priority[w], submitted[w], now):
            enlist(line, w)
        else:
            item[kept] = w
            kept += 1
    line.count[0] = kept


@once
def _rank(ranks: Ranks, p: int, submitted: float, now: float) -> int:
    if p < 0:
        return 0
    return RISEN if now >= submitted + ranks.max_wait[p] else ranks.value[p]


@inner
def _merge_in(line: Line, memo: Memo, work: Work, ranks: Ranks, now: float, shortest: bool) -> None:
    """Sort those who are fresh, then merge them with those in line."""
    fresh = 0
    for k in range(line.count[1]):
        w = line.fresh[k]
        line.state[w] = OUT
        if work.phase[w] == PENDING:
            line.state[w] = LISTED
            line.rank[w] = _rank(ranks, work.priority[w], work.submitted[w], now)
            note_kind(memo, work, w)
            line.fresh[fresh] = w
            fresh += 1
    line.count[1] = 0
    _sort(line, work, fresh, shortest)
    i, j = line.count[0] - 1, fresh - 1
    line.count[0] += fresh
    for k in range(line.count[0] - 1, -1, -1):
        if j < 0:
            break
        if i >= 0 and _after(line, work, line.item[i], line.fresh[j], shortest):
            line.item[k] = line.item[i]
            i -= 1
        else:
            line.item[k] = line.fresh[j]
            j -= 1


@inner
def _sort(line: Line, work: Work, size: int, shortest: bool) -> None:
    """Bottom-up merge sort of ``fresh[:size]``."""
    order, spare = line.fresh, line.spare
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (
                    i < middle and not _after(line, work, order[i], order[j], shortest)
                ):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    for k in range(size):
        line.fresh[k] = order[k]


@inner
def _after(line: Line, work: Work, a: int, b: int, shortest: bool) -> bool:
    """Whether ``a`` stands after ``b``: leaf, rank, user, then ``later``."""
    if work.queue[a] != work.queue[b]:
        return work.queue[a] > work.queue[b]
    if line.rank[a] != line.rank[b]:
        return line.rank[a] < line.rank[b]
    if work.user[a] != work.user[b]:
        return work.user[a] > work.user[b]
    return later(work, a, b, shortest)


@inner
def later(work: Work, a: int, b: int, shortest: bool) -> bool:
    """The ladder between workloads of one rank: strategy, submit time, tie."""
    if shortest and work.predicted[a] != work.predicted[b]:
        return work.predicted[a] > work.predicted[b]
    if work.submitted[a] != work.submitted[b]:
        return work.submitted[a] > work.submitted[b]
    return work.tie[a] > work.tie[b]


@inner
def _group(line: Line, memo: Memo, work: Work) -> None:
    """Find the groups, and count the kinds of those in them. Arrays are looked up once."""
    item, start, leaf, fewest, rank = line.item, line.start, line.leaf, line.fewest, line.rank
    in_queue, user, least, need = work.queue, work.user, work.least, work.need
    claims, held, of, waiting, one = work.claims, work.held, memo.of, memo.waiting, memo.one
    oldest, submitted = line.oldest, work.submitted
    groups, queue, before, promised, special = 0, 0, -1, 0, 0
    for q in range(oldest.size):
        oldest[q] = np.inf
    for kind in range(memo.now[KINDS]):
        waiting[kind] = memo.held[kind] = 0
    for k in range(line.count[0]):
        w = item[k]
        q, smallest, kind = in_queue[w], least[w] * need[GPUS, w], of[w]
        promised += claims[w]
        special += held[w] or kind < 0
        if kind >= 0:
            waiting[kind] += 1
            memo.held[kind] += held[w]
            one[kind] = w
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
    start[groups] = line.count[0]
    for q in range(queue, leaf.size):
        leaf[q] = groups
    line.count[PROMISED], line.count[SPECIAL] = promised, special


@inner
def next_in_line(line: Line, work: Work, book: Book, q: int, shortest: bool) -> int:
    """The position of the workload of leaf ``q`` that goes next, passing over positions to ``line.skip``;
    ``line.at`` is each group's cursor. Ladder: rank, least used by its user in the leaf, then ``later``.
    The leaf must have one.
    """
    at, start, item = line.at, line.start, line.item
    lead = line.lead[q] if line.led[q] == line.count[CHANGES] else -1
    if lead >= 0:
        _pass_over(line, lead)
        if at[lead] < start[lead + 1]:
            at[lead] += 1
            return int(at[lead]) - 1
    best, best_item, tied = -1, -1, False
    for g in range(line.leaf[q], line.leaf[q + 1]):
        if best >= 0 and line.rank[item[start[g]]] < line.rank[best_item]:
            break
        _pass_over(line, g)
        if at[g] == start[g + 1]:
            continue
        w = item[at[g]]
        less = -1 if best < 0 else _compared(work, book, w, best_item)
        if less < 0 or (less == 0 and later(work, best_item, w, shortest)):
            best, best_item = g, w
        tied = less == 0 or (tied and less > 0)
    line.lead[q], line.led[q] = -1 if tied else best, line.count[CHANGES]
    at[best] += 1
    return int(at[best]) - 1


@once
def _pass_over(line: Line, g: int) -> None:
    k, end, skip = line.at[g], line.start[g + 1], line.skip
    while k < end and skip[k]:
        k += 1
    line.at[g] = k


@once
def _compared(work: Work, book: Book, a: int, b: int) -> int:
    """What the users of both hold in the leaf: -1 if that of ``a`` holds less, 0 as much, 1 more."""
    mine, other = book.by_user[work.user[a]], book.by_user[work.user[b]]
    return int(mine > other) - int(mine < other)


@once
def forget_leads(line: Line) -> None:
    """Users hold something else by now."""
    line.count[CHANGES] += 1
