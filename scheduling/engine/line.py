"""Waiting in line inside a leaf: priority, fairness between users, ordering strategy, time, name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.arrays import Book, Flags, Floats, Ints, Ranks, Work
from scheduling.engine.compiled import inner, once
from scheduling.engine.structs import declare


@declare
class Line(NamedTuple):
    """Pending workloads in groups of one leaf, priority value and user.

    ``item[start[g]:start[g + 1]]`` is group ``g`` in its own order; ``leaf[q]:leaf[q + 1]`` are the
    groups of leaf ``q``, highest value first. ``rank`` orders items of different users.
    """

    item: Ints
    start: Ints
    value: Ints
    leaf: Ints
    rank: Ints


def line_up(work: Work, ranks: Ranks, waiting: Ints, strategy: str, queues: int) -> Line:
    """Sort ``waiting`` slots by the ladder: leaf, priority value, user, strategy, submit time, tie."""
    key: Floats = work.predicted[waiting] if strategy == "shortest_predicted" else np.zeros(0)
    keys = (work.tie[waiting], work.submitted[waiting], *((key,) if key.size else ()))
    rank = np.zeros(work.phase.size, np.int64)
    rank[waiting[np.lexsort(keys)]] = np.arange(waiting.size)
    value, user, queue = (
        ranks.value[work.priority[waiting]],
        work.user[waiting],
        work.queue[waiting],
    )
    order = np.lexsort((rank[waiting], user, -value, queue))
    item, value, user, queue = waiting[order], value[order], user[order], queue[order]
    fresh = np.ones(item.size, np.bool_)
    fresh[1:] = (value[1:] != value[:-1]) | (user[1:] != user[:-1]) | (queue[1:] != queue[:-1])
    start = np.flatnonzero(fresh)
    leaf = np.searchsorted(queue[start], np.arange(queues + 1))
    return Line(item, np.append(start, item.size), value[start], leaf.astype(np.int64), rank)


@inner
def next_in_line(line: Line, work: Work, book: Book, at: Ints, skip: Flags, q: int) -> int:
    """Take the workload of leaf ``q`` that goes next, passing over ``skip``; ``at`` is each group's
    cursor. Ladder: priority value, least GPUs held by its user in the leaf, rank. -1 if none.
    """
    best, best_item = -1, -1
    for g in range(line.leaf[q], line.leaf[q + 1]):
        if best >= 0 and line.value[g] < line.value[best]:
            break
        while at[g] < line.start[g + 1] and skip[line.item[at[g]]]:
            at[g] += 1
        if at[g] == line.start[g + 1]:
            continue
        item = line.item[at[g]]
        if best < 0 or _sooner(line, work, book, item, best_item):
            best, best_item = g, item
    if best >= 0:
        at[best] += 1
    return best_item


@once
def _sooner(line: Line, work: Work, book: Book, a: int, b: int) -> bool:
    mine, other = book.by_user[work.user[a]], book.by_user[work.user[b]]
    return mine < other or (mine == other and line.rank[a] < line.rank[b])
