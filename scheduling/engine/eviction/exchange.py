"""The chosen set against its neighbours: another victim in the place of one or two on its node, where that
loses less work and all the tests still hold.
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.minimal_set import (
    is_still_fair,
    is_within_cap,
    price_of,
    quota_holds,
    seats_hold,
)
from scheduling.engine.eviction.rules import VictimRequest, allowed, held_by
from scheduling.engine.eviction.victim_order import order_node
from scheduling.engine.placement.node_room import ONE, free_of
from scheduling.engine.state.input import Holds, Ranks, Work, extra_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, LATER
from scheduling.engine.statement.statement import (
    LEAVES,
    how_many,
    let_go,
    mark,
    redo_one,
    squeeze,
    strike,
    undo,
    undo_one,
)

MOST_EXCHANGES, MOST_CHOSEN = 16, 8
"""Exchanges of one search, each of which loses less, and victims among which it looks at pairs: these bound
its time.
"""


@inner
def exchange(world: Session, request: VictimRequest) -> None:
    """Put others in the place of the chosen as long as that loses less work."""
    for _ in range(MOST_EXCHANGES):
        if not 2 <= how_many(world.candidates) <= MOST_CHOSEN or not _exchange_any(world, request):
            return


@inner
def _exchange_any(world: Session, request: VictimRequest) -> bool:
    candidates = world.candidates
    for i in range(candidates.log.first, candidates.log.size):
        for j in range(i, candidates.log.size):
            if (
                candidates.log.part[i] == LEAVES
                and candidates.log.part[j] == LEAVES
                and _exchange(world, request, i, j)
            ):
                return True
    return False


@inner
def _exchange(world: Session, request: VictimRequest, i: int, j: int) -> bool:
    """Whether something on a node of the ``i``-th of the chosen has taken its place and that of the ``j``-th
    (or its alone).
    """
    work, out, candidates, holds = world.work, world.out, world.candidates, world.holds
    price = price_of(work, out, candidates, i) + (
        price_of(work, out, candidates, j) if j != i else 0.0
    )
    h = holds.head[candidates.log.slot[i]]
    while h >= 0:
        n = holds.node[h]
        order_node(work, world.room, candidates, n)
        for k in range(candidates.order.node_begin[n], candidates.order.node_end[n]):
            x = candidates.order.node_slot[k]
            if candidates.price[x] + held_by(work, out, x) / 1000.0 >= price:
                break
            if _might_do(world, i, j, x, n) and _takes_the_place(world, request, i, j, x):
                return True
        h = holds.next[h]
    return False


@inner
def _might_do(world: Session, i: int, j: int, x: int, n: int) -> bool:
    """``x`` gives members up before it leaves, and outranks nobody of its queue in whose place it goes; and
    leaves enough of node ``n``, where whole GPUs are all that is held.
    """
    ranks, holds, candidates, work = world.ranks, world.holds, world.candidates, world.work
    if candidates.log.leaves[x] or extra_of(work, x) > 0:
        return False
    if _outranks(work, ranks, x, candidates.log.slot[i]) or _outranks(
        work, ranks, x, candidates.log.slot[j]
    ):
        return False
    whole = work.need[GPUS, x] >= ONE and work.need[GPUS, candidates.log.slot[i]] >= ONE
    if not whole or work.need[GPUS, candidates.log.slot[j]] < ONE:
        return True
    gives = free_of(world.room, GPUS, n, LATER) + _held_on(work, holds, x, n)
    takes = _held_on(work, holds, candidates.log.slot[i], n)
    return gives >= takes + (_held_on(work, holds, candidates.log.slot[j], n) if j != i else 0)


@inner
def _outranks(work: Work, ranks: Ranks, x: int, v: int) -> bool:
    value, priority = ranks.value, work.priority
    same = work.queue[x] == work.queue[v]
    return bool(same and value[priority[x]] > value[priority[v]])


@inner
def _held_on(work: Work, holds: Holds, v: int, n: int) -> int:
    gpus, h = 0, holds.head[v]
    while h >= 0:
        if holds.node[h] == n:
            gpus += holds.members[h] * work.need[GPUS, v]
        h = holds.next[h]
    return gpus


@inner
def _takes_the_place(world: Session, request: VictimRequest, i: int, j: int, x: int) -> bool:
    """``x`` leaves, those two stay; or all is as before."""
    candidates = world.candidates
    a, b, before = candidates.log.slot[i], candidates.log.slot[j], mark(candidates)
    undo_one(world, i)
    if j != i:
        undo_one(world, j)
    strike(candidates, i)
    strike(candidates, j)
    if allowed(world, request, x):
        let_go(world, x)
        if _holds(world, request, a, b):
            squeeze(candidates, candidates.log.first)
            return True
    undo(world, before)
    candidates.log.slot[i], candidates.log.slot[j] = a, b
    redo_one(world, i)
    if j != i:
        redo_one(world, j)
    return False


@inner
def _holds(world: Session, request: VictimRequest, a: int, b: int) -> bool:
    """Everything that is asked of a set, with ``a`` and ``b`` back."""
    holds, room = world.holds, world.room
    if not (
        seats_hold(holds, room, a) and seats_hold(holds, room, b) and quota_holds(world, request)
    ):
        return False
    return is_within_cap(world, request) and is_still_fair(world, request)
