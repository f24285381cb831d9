"""What goes first where a subtree gives out by merit what is above nominal.

By promise: work behind its own quota is late and goes first, among late work and among the other the
least expected work. By throughput: the least expected work alone. Expected work is the Gittins index of a
run time at the time it has had, times GPUs, or times their fourth root for throughput. Priority goes
before all.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.merit.lead import TOO_LATE_S, due_at
from scheduling.engine.quota.standing import owes
from scheduling.engine.state.input import Quotas, Tree, Work
from scheduling.engine.state.order import MeritLine, Ordering
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, RUNNING

FOURTH_ROOT = 0.25
"""For throughput the run time of a gang of 16 counts twice (docs/lab/sharing.md has how it was chosen)."""


@inner
def lead_of(work: Work, w: int, now: float) -> float:
    """Seconds; infinite before its virtual start. Of a run that goes on, were it evicted now."""
    saved = work.saved[w]
    if work.phase[w] == RUNNING:
        saved += max(0.0, work.checkpointed[w] - work.started[w])
    return float(saved + work.virtual[w] - now)


@inner
def expected_of(tree: Tree, work: Work, w: int) -> float:
    """Expected work, weighed as its subtree does."""
    if tree.sharing.rule[work.queue[w]] == codes.PROMISE:
        return expected_gpu_s(work, w)
    return float(work.rank[w] * _gpus(work, w) ** FOURTH_ROOT)


@inner
def expected_gpu_s(work: Work, w: int) -> float:
    """Expected work as it is told: GPU-seconds."""
    return float(work.rank[w] * _gpus(work, w))


@inner
def _gpus(work: Work, w: int) -> float:
    return float(max(1, work.need[GPUS, w] * work.most[w]) / 1000.0)


@inner
def by_merit(tree: Tree, q: int) -> bool:
    """Whether the subtree of ``q`` gives out by merit; not if nobody knows the queue."""
    return bool(q >= 0 and tree.sharing.top[q] >= 0)


@inner
def line_up_by_merit(world: Session) -> None:
    """Bring those in order who wait in subtrees that give out by merit."""
    merit, top = world.ordering.merit, world.tree.sharing.top
    merit.next_due[0] = np.inf
    some = False
    for q in range(top.size):
        merit.begin[q] = merit.end[q] = merit.cursor[q] = 0
        some = some or top[q] >= 0
    size = _gather(world) if some else 0
    if size == 0:
        return
    _sort(world.tree, world.work, world.ordering, size)
    for i in range(size - 1, -1, -1):
        above = _top(world.tree, world.work, world.ordering, merit.position[i])
        merit.begin[above] = i
        merit.end[above] = max(merit.end[above], i + 1)


@inner
def _gather(world: Session) -> int:
    tree, work, ordering, now = world.tree, world.work, world.ordering, world.rules.now
    merit, size = ordering.merit, 0
    for k in range(ordering.pending.size[0]):
        w = ordering.pending.slot[k]
        q = work.queue[w]
        if not by_merit(tree, q):
            continue
        merit.expected[w] = expected_of(tree, work, w)
        merit.promise_due[w] = tree.sharing.rule[q] == codes.PROMISE and (
            _is_due(work, merit, w, now)
            if tree.sharing.played[q]
            else _is_inside(tree, work, world.queues, world.quotas, w)
        )
        merit.position[size] = k
        size += 1
    return size


@inner
def _is_due(work: Work, merit: MeritLine, w: int, now: float) -> bool:
    """Behind its own quota, and not for so long that it keeps the cluster busy no longer."""
    at = due_at(work.submitted[w], work.virtual[w], work.saved[w], work.evictions[w] > 0)
    if at > now:
        merit.next_due[0] = min(merit.next_due[0], at)
    return bool(at <= now <= at + TOO_LATE_S)


@inner
def _is_inside(tree: Tree, work: Work, queues: Queues, quotas: Quotas, w: int) -> bool:
    """Its nominal has room for it: where nobody plays along that stands in for being behind."""
    q, need = work.queue[w], work.least[w] * work.need[GPUS, w]
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c >= 0 and owes(tree, quotas, queues, q, -1, c, need):
            return True
    return False


@inner
def _top(tree: Tree, work: Work, ordering: Ordering, k: int) -> int:
    return int(tree.sharing.top[work.queue[ordering.pending.slot[k]]])


@inner
def _sort(tree: Tree, work: Work, ordering: Ordering, size: int) -> None:
    """Bottom-up merge sort; runs that are in order already are left alone."""
    merit = ordering.merit
    width = 1
    while width < size:
        for low in range(0, size - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, size)
            if _before(tree, work, ordering, merit.position[middle], merit.position[middle - 1]):
                _merge(tree, work, ordering, low, middle, high)
        width *= 2


@inner
def _merge(tree: Tree, work: Work, ordering: Ordering, low: int, middle: int, high: int) -> None:
    merit, i, j = ordering.merit, low, middle
    for k in range(low, middle):
        merit.scratch[k] = merit.position[k]
    for k in range(low, high):
        if i == middle:
            break
        if j < high and _before(tree, work, ordering, merit.position[j], merit.scratch[i]):
            merit.position[k] = merit.position[j]
            j += 1
        else:
            merit.position[k] = merit.scratch[i]
            i += 1


@inner
def _before(tree: Tree, work: Work, ordering: Ordering, a: int, b: int) -> bool:
    """Ladder of two places in line: subtree, rank, due, expected work, submit time, tie."""
    merit, rank = ordering.merit, ordering.pending.rank
    one, other = _top(tree, work, ordering, a), _top(tree, work, ordering, b)
    if one != other:
        return bool(one < other)
    v, w = ordering.pending.slot[a], ordering.pending.slot[b]
    if rank[v] != rank[w]:
        return bool(rank[v] > rank[w])
    if merit.promise_due[v] != merit.promise_due[w]:
        return bool(merit.promise_due[v])
    if merit.expected[v] != merit.expected[w]:
        return bool(merit.expected[v] < merit.expected[w])
    if work.submitted[v] != work.submitted[w]:
        return bool(work.submitted[v] < work.submitted[w])
    return bool(work.tie[v] < work.tie[w])


@inner
def next_by_merit(ordering: Ordering, top: int) -> int:
    """The place in line of what goes next below ``top``, which must have somebody left to ask."""
    merit, skip = ordering.merit, ordering.walk.skip
    while skip[merit.position[merit.cursor[top]]]:
        merit.cursor[top] += 1
    merit.cursor[top] += 1
    return int(merit.position[merit.cursor[top] - 1])


@inner
def begin_by_merit(merit: MeritLine) -> None:
    """A pass begins."""
    for q in range(merit.cursor.size):
        merit.cursor[q] = merit.begin[q]
