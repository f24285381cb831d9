"""Whose turn it is in a leaf: nobody starves behind smaller work of the own queue.

A gang that its queue's share could hold, and that could start if less of the queue ran, keeps its turn:
what comes after it may start only if the share holds both, or if it ends before the gang's turn is expected.
Where nobody knows when running work ends, small work goes ahead and keeps the GPUs busy, unless the gang has
waited past the bound of its priority class.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.sort import order_of
from scheduling.engine.compile.structs import Ints
from scheduling.engine.order.pending import RISEN
from scheduling.engine.placement.node_room import may_use, unclaimed
from scheduling.engine.quota.standing import past_share, would_hold
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Rules, Work, gpus_of, need_of
from scheduling.engine.state.order import Shapes
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.lines import TURNS, changed


@inner
def forget_open_turns(queues: Queues, out: Decisions) -> None:
    """Turns kept by those that may still start: the first is found afresh in each pass."""
    turn = queues.turns.slot
    for c in range(turn.shape[0]):
        for q in range(turn.shape[1]):
            if turn[c, q] >= 0 and out.action[turn[c, q]] == codes.UNDECIDED:
                turn[c, q] = -1


@inner
def ahead_of(world: Session, w: int, c: int) -> int:
    """The workload of the same queue that keeps its turn on class ``c`` and that ``w`` would delay.

    ``w`` may pass only if the share holds both, or if it is over before the turn comes.
    """
    work, queues, q = world.work, world.queues, world.work.queue[w]
    first = queues.turns.slot[c, q]
    if first < 0 or first == w:
        return -1
    if world.rules.now + work.ends_within[w] <= queues.turns.until_s[c, q] < np.inf:
        return -1
    fixed = not world.ranks.preemptible[work.priority[w]]
    if world.out.reason[first] == codes.NON_PREEMPTIBLE and not fixed:
        return -1
    both = need_of(work, first) + need_of(work, w)
    return first if past_share(queues, world.division, q, c, both) else -1


@inner
def keep_turn(world: Session, w: int) -> None:
    """``w`` goes before what comes after it in its queue, on each class whose share could hold it."""
    work, queues, q = world.work, world.queues, world.work.queue[w]
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            return
        if queues.turns.slot[c, q] >= 0:
            continue
        holds = would_hold(world.ranks, world.quotas, work, world.division, w, c)
        if not holds or not _is_in_its_own_way(world, w, c):
            continue
        until = _expected_turn(world, w, c)
        if until < np.inf or world.ordering.pending.rank[w] == RISEN:
            queues.turns.slot[c, q] = w
            queues.turns.until_s[c, q] = until


@inner
def _is_in_its_own_way(world: Session, w: int, c: int) -> bool:
    """Whether what its queue runs on class ``c``, with what is free or comes free, is all that it needs."""
    work, room = world.work, world.room
    lacks = need_of(work, w) - world.queues.usage.gpus[c, work.queue[w]]
    if unclaimed(room, c) < lacks:
        return False
    return bool(work.where[w] < 0 or _on_its_nodes(world, w, c) >= need_of(work, w))


@inner
def _on_its_nodes(world: Session, w: int, c: int) -> int:
    """The part of that on nodes that ``w`` may use."""
    nodes, room, work, holds = world.nodes, world.room, world.work, world.holds
    ordering, gpus, q = world.ordering, 0, work.queue[w]
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if may_use(room, work, w, n):
            gpus += max(0, room.free_later[GPUS, n])
    for k in range(ordering.running.queue_begin[q + 1], ordering.running.queue_begin[q + 2]):
        v = ordering.running.slot[k]
        h = holds.head[v] if work.gpu_class[v] == c and not work.leaving[v] else -1
        while h >= 0:
            if may_use(room, work, w, holds.node[h]):
                gpus += holds.members[h] * work.need[GPUS, v]
            h = holds.next[h]
    return gpus


@inner
def give_up_turn(
    work: Work, queues: Queues, candidates: Candidates, shapes: Shapes, w: int
) -> None:
    """On every class; whom it kept waiting is asked again."""
    q = work.queue[w]
    for c in range(queues.turns.slot.shape[0]):
        if queues.turns.slot[c, q] == w:
            queues.turns.slot[c, q] = -1
            changed(candidates, shapes, TURNS, c, q)


@inner
def expected_end(work: Work, rules: Rules, w: int) -> float:
    """When ``w`` is over, by the policy's quantile; infinite if unknown. Overdue work may end any moment."""
    return max(rules.now, work.started[w] + work.ends_within[w])


@inner
def _expected_turn(world: Session, w: int, c: int) -> float:
    """When enough of the queue's own work on class ``c`` has ended for its share to hold ``w``. What has
    just started ends together, with the last of it.
    """
    queues, work, ordering, q = world.queues, world.work, world.ordering, world.work.queue[w]
    above = queues.usage.gpus[c, q] + need_of(work, w) - world.division.fair[c, q]
    if above <= EPS:
        return world.rules.now
    begun = queues.starts.started[c, q] > 0 and queues.starts.until_s[c, q] < np.inf
    if ordering.running.predicted[q] == 0 and not begun:
        return np.inf
    ends = np.empty(ordering.running.queue_begin[q + 2] - ordering.running.queue_begin[q + 1] + 1)
    gpus = np.empty(ends.size, np.int64)
    ends[0], gpus[0] = queues.starts.until_s[c, q], queues.starts.started[c, q]
    size = 1
    for k in range(ordering.running.queue_begin[q + 1], ordering.running.queue_begin[q + 2]):
        v = ordering.running.slot[k]
        if work.gpu_class[v] == c and work.ends_within[v] < np.inf and not work.leaving[v]:
            ends[size], gpus[size] = expected_end(work, world.rules, v), gpus_of(work, v)
            size += 1
    return _when_freed(ends[:size], gpus, above)


@inner
def _when_freed(ends: object, gpus: Ints, above: float) -> float:
    for k in order_of(ends):
        above -= gpus[k]
        if above <= EPS:
            return ends[k]  # type: ignore[index]
    return np.inf


@inner
def clear_turns(queues: Queues) -> None:
    """Nobody keeps a turn."""
    queues.turns.slot.fill(-1)
