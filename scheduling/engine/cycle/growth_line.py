"""Those that may grow, in line: the neediest queue first, and inside it by the order of the pending."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.order.queues import count_up, neediest
from scheduling.engine.quota.fair_share import sharer
from scheduling.engine.state.input import Ranks, Tree, Work
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.units import RUNNING


class GrowthLine(NamedTuple):
    """How many are ``left`` in a queue and below; its ``first``, then ``after`` each, -1 ends."""

    left: Ints
    first: Ints
    after: Ints


@inner
def empty_line(tree: Tree, work: Work) -> GrowthLine:
    left, after = np.zeros(tree.parent.size, np.int64), np.empty(work.phase.size, np.int64)
    return GrowthLine(left, np.full(left.size, -1, np.int64), after)


@inner
def join(tree: Tree, work: Work, line: GrowthLine, w: int) -> None:
    q = sharer(tree, work.queue[w])
    line.after[w], line.first[q] = line.first[q], w
    count_up(tree, line.left, q, 1)


@inner
def next_to_grow(tree: Tree, work: Work, ranks: Ranks, queues: Queues, line: GrowthLine) -> int:
    """It stays in line."""
    w = line.first[neediest(tree, queues, line.left)]
    best = w
    while w >= 0:
        if _grows_before(work, ranks, queues, w, best):
            best = w
        w = line.after[w]
    return int(best)


@inner
def strike(tree: Tree, work: Work, line: GrowthLine, w: int) -> None:
    """``w`` grows no more."""
    q, first, after = sharer(tree, work.queue[w]), line.first, line.after
    count_up(tree, line.left, q, -1)
    if first[q] == w:
        first[q] = after[w]
        return
    before = first[q]
    while after[before] != w:
        before = after[before]
    after[before] = after[w]


@inner
def _grows_before(work: Work, ranks: Ranks, queues: Queues, a: int, b: int) -> bool:
    """Priority value, least held by its user, who runs before who starts, started first, tie."""
    value, usage = ranks.value, queues.usage.user_weighted
    x, y = value[work.priority[a]], value[work.priority[b]]
    if x != y:
        return x > y
    if usage[work.user[a]] != usage[work.user[b]]:
        return usage[work.user[a]] < usage[work.user[b]]
    if work.phase[a] != work.phase[b]:
        return work.phase[a] == RUNNING
    if work.started[a] != work.started[b]:
        return work.started[a] < work.started[b]
    return work.tie[a] < work.tie[b]
