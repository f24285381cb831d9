"""Who goes first where a subtree gives out by merit what is above nominal.

By promise: who is behind its own quota is due and goes first, among the due and among the others the
least expected work. By throughput: the least expected work alone. Expected work is the Gittins index of a
run time at the time it has had, times GPUs, or times their root for throughput. Priority goes before all.

Lead is how much later a workload would end on the nominal of its queue alone, as far as that is known:
work that checkpoints hold + virtual start - now. Late by more than a twentieth of what is known of its
completion time there, it is due a little before that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine import codes
from scheduling.engine.arrays import GPUS, RUNNING, Flags, Floats, Ints
from scheduling.engine.compiled import inner, once
from scheduling.engine.structs import declare

LEAST_SLACK_S, SLACK_SHARE, MARGIN_S, RESTART_S = 60.0, 0.05, 45.0, 30.0
"""Late by less than that, seconds and a share of the completion time on its own quota, is not late;
due is who is as late but for the margin, and for the restart if it was evicted before.
"""
TOO_LATE_S = 86_400.0
"""A promise that was broken for so long keeps the cluster busy no longer: who waits is due no more."""
EVICTIONS_PER_ARRIVAL = 0.05
"""What a subtree may evict to keep its promise, or for throughput, for each workload that was submitted."""
RETRY_S = 60.0
"""Victims come past a checkpoint, so who may evict asks again."""


@declare
class Merit(NamedTuple):
    """``order[begin[q]:end[q]]`` are places in line of those who wait below the top queue ``q``, who goes
    first first.
    """

    expected: Floats  # [slot] GPU-seconds, or by the root of GPUs
    due: Flags  # [slot]
    order: Ints
    spare: Ints
    begin: Ints  # [queue]
    end: Ints
    at: Ints  # [queue] whom a pass has come to
    left: Floats  # [queue] evictions that the subtree may still order
    kept_off: Flags  # [slot] room is kept from it for the short
    calm: Flags  # [slot] what its subtree lends comes back to it later
    price: (
        Floats  # [slot] GPU-seconds that its eviction is weighed with, infinite where it may not go
    )
    clearing: Floats  # [node] what freeing it wholly is weighed with
    taken: Ints  # [slot] number of the search that has chosen it last
    best: Ints  # whom the search at work would evict
    tried: Ints  # [hunts of this plan, searches]
    next: Floats  # [1] when somebody may become due, or may evict
    failed: (
        Ints  # [class] the least that a hunt sought in vain, right while ``failed_at`` is the epoch
    )
    failed_at: Ints  # [class]


def empty_merit(slots: int, queues: int, classes: int, nodes: int) -> Merit:
    ints, floats = np.zeros(slots + 1, np.int64), np.zeros(slots + 1)
    flags = np.zeros(slots + 1, np.bool_)
    begin, end, at = (np.zeros(queues, np.int64) for _ in range(3))
    return Merit(
        floats, flags, ints, ints.copy(), begin, end, at, np.zeros(queues), flags.copy(), flags.copy(),
        floats.copy(), np.zeros(nodes), ints.copy(), ints.copy(), np.zeros(2, np.int64), np.zeros(1),
        np.zeros(classes, np.int64), np.full(classes, -1, np.int64),
    )  # fmt: skip


@once
def lead_of(work: Any, w: int, now: float) -> float:
    """Seconds; infinite before its virtual start. Of a run that goes on, were it evicted now."""
    saved = work.saved[w]
    if work.phase[w] == RUNNING:
        saved += max(0.0, work.checkpointed[w] - work.started[w])
    return saved + work.virtual[w] - now


@inner
def due_at(submitted: float, virtual: float, saved: float, evicted: bool) -> float:
    """When who waits with that much ``saved`` is due: infinite before its virtual start."""
    if virtual == np.inf:
        return np.inf
    known = virtual - submitted + saved
    slack = max(LEAST_SLACK_S, SLACK_SHARE * known) - MARGIN_S - (RESTART_S if evicted else 0.0)
    return virtual + saved + slack


@inner
def expected_of(world: Any, w: int) -> float:
    """Expected work, weighed as its subtree does."""
    work = world.work
    gpus = max(1, work.need[GPUS, w] * work.most[w]) / 1000.0
    promises = world.tree.sharing[work.queue[w]] == codes.PROMISE
    return work.rank[w] * (gpus if promises else gpus**0.5)


@once
def by_merit(world: Any, w: int) -> bool:
    """Whether its subtree gives out by merit."""
    q = world.work.queue[w]
    return bool(q >= 0 and world.tree.top[q] >= 0)


@inner
def line_up_by_merit(world: Any) -> None:
    """Bring those in order who wait in subtrees that give out by merit."""
    merit, tree = world.merit, world.tree
    merit.next[0], merit.tried[0] = np.inf, 0
    for c in range(merit.failed_at.size):
        merit.failed_at[c] = -1
    some = False
    for q in range(tree.top.size):
        merit.begin[q] = merit.end[q] = merit.at[q] = 0
        merit.left[q] = tree.evictions_left[q]
        some = some or tree.top[q] >= 0
    size = _gather(world) if some else 0
    if size == 0:
        return
    _sort(world, size)
    for i in range(size - 1, -1, -1):
        top = _top(world, merit.order[i])
        merit.begin[top] = i
        merit.end[top] = max(merit.end[top], i + 1)


@once
def _gather(world: Any) -> int:
    line, merit = world.line, world.merit
    size = 0
    for k in range(line.count[0]):
        w = line.item[k]
        if not by_merit(world, w):
            continue
        merit.expected[w] = expected_of(world, w)
        merit.kept_off[w] = False
        merit.due[w] = _is_due(world, w)
        merit.order[size] = k
        size += 1
    return size


@once
def _is_due(world: Any, w: int) -> bool:
    """Where nobody plays along who waits inside nominal is."""
    work, tree, merit = world.work, world.tree, world.merit
    now, q = world.rules.now, work.queue[w]
    if tree.sharing[q] != codes.PROMISE:
        return False
    if not tree.played[q]:
        return _is_inside(world, w, q)
    at = due_at(work.submitted[w], work.virtual[w], work.saved[w], work.evictions[w] > 0)
    if at > now:
        merit.next[0] = min(merit.next[0], at)
    return bool(at <= now <= at + TOO_LATE_S)


@once
def _is_inside(world: Any, w: int, q: int) -> bool:
    work, book = world.work, world.book
    need = work.least[w] * work.need[GPUS, w]
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c >= 0 and book.held[c, q] + need <= world.quotas.nominal[c, q]:
            return True
    return False


@once
def _top(world: Any, k: int) -> int:
    return world.tree.top[world.work.queue[world.line.item[k]]]


@once
def _sort(world: Any, size: int) -> None:
    """Bottom-up merge sort; runs that are in order already are left alone."""
    merit = world.merit
    width = 1
    while width < size:
        for low in range(0, size - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, size)
            if not _before(world, merit.order[middle], merit.order[middle - 1]):
                continue
            for k in range(low, middle):
                merit.spare[k] = merit.order[k]
            i, j = low, middle
            for k in range(low, high):
                if i == middle:
                    break
                if j < high and _before(world, merit.order[j], merit.spare[i]):
                    merit.order[k] = merit.order[j]
                    j += 1
                else:
                    merit.order[k] = merit.spare[i]
                    i += 1
        width *= 2


@inner
def _before(world: Any, a: int, b: int) -> bool:
    """Ladder of two places in line: subtree, rank, due, least expected work, submit time, tie."""
    line, work, merit = world.line, world.work, world.merit
    one, other = _top(world, a), _top(world, b)
    if one != other:
        return bool(one < other)
    v, w = line.item[a], line.item[b]
    if line.rank[v] != line.rank[w]:
        return bool(line.rank[v] > line.rank[w])
    if merit.due[v] != merit.due[w]:
        return bool(merit.due[v])
    if merit.expected[v] != merit.expected[w]:
        return bool(merit.expected[v] < merit.expected[w])
    if work.submitted[v] != work.submitted[w]:
        return bool(work.submitted[v] < work.submitted[w])
    return bool(work.tie[v] < work.tie[w])


@inner
def next_by_merit(world: Any, top: int) -> int:
    """The place in line of who goes next below ``top``, which must have somebody left to ask."""
    merit, skip = world.merit, world.line.skip
    while skip[merit.order[merit.at[top]]]:
        merit.at[top] += 1
    merit.at[top] += 1
    return int(merit.order[merit.at[top] - 1])


@once
def begin_by_merit(world: Any) -> None:
    """A pass begins."""
    for q in range(world.merit.at.size):
        world.merit.at[q] = world.merit.begin[q]
