"""Which work must leave so that one workload can start.

Limits come first, then room, where it costs least. Then needless victims are put back, and the fairness test
is repeated on the final set.

Nobody of higher priority leaves where lower priority of the same leaf would do, wherever that sits: it would
take the room in the next plan. At last another victim takes the place of one or two of the chosen on its
node, where that loses less work and all the tests still hold.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.cheapest_node import mark_nodes
from scheduling.engine.eviction.free_seats import free_domain
from scheduling.engine.eviction.minimal_set import (
    do_without,
    first_unfit,
    is_still_fair,
    is_within_cap,
    must_lose_more,
    passes_all,
    price_of,
    put_needless_back,
    seats_hold,
)
from scheduling.engine.eviction.rules import (
    BUDGET,
    EACH_BUDGET,
    STRICT,
    VictimRequest,
    allowed,
    held_by,
    may_give,
    note_owed,
    overlooking,
    protected_until,
)
from scheduling.engine.eviction.victim_order import order_below, order_leaf, order_node
from scheduling.engine.placement.node_room import ONE, free_of
from scheduling.engine.state.input import Holds, Ranks, Work, extra_of
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, LATER
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import (
    LEAVES,
    begin,
    give_some,
    how_many,
    let_go,
    mark,
    redo_one,
    squeeze,
    strike,
    undo,
    undo_all,
    undo_one,
    unseat,
)

FOUND = -1
MOST_SETS = 8
"""Sets that one search chooses: where a test at the end fails, the next does without the victim that fails
it.
"""


@inner
def find_victims(world: Session, request: VictimRequest) -> bool:
    """Choose victims. On success they stand in ``world.candidates``, released, and the workload's least
    members have claimed their seats; on failure everything is as before.

    None leaves over whom lower priority of its own leaf does as well, wherever that sits: it would take the
    room of that one in the next plan.
    """
    mark_nodes(world, request)
    note_owed(world, request)
    found, again = _find_set(world, request), MOST_SETS
    if not found and request.overlook == STRICT and world.queues.search.forbidden[BUDGET] == 1:
        # Cheaper victims, tried first, may have used a budget up that is enough for a larger one alone.
        request = overlooking(request, EACH_BUDGET)
        found = _find_set(world, request)
    while found and again > 0:
        too_high = with_lower_beside(world, request)
        if too_high < 0:
            break
        barred = world.candidates.barred.copy()
        give_up(world, request)
        bar_from(world.work, world.candidates, world.ranks, too_high)
        again -= 1
        if _find_set(world, request):
            if takes_lower(world.work, world.candidates, world.ranks, too_high):
                continue
            give_up(world, request)
        _bar(world.candidates, barred)
        found, again = _find_set(world, request), 0
    return bool(found)


@inner
def _bar(candidates: Candidates, barred: Ints) -> None:
    """In a loop: what assigns whole slices compiles with texts for shapes that do not match."""
    for v in range(barred.size):
        candidates.barred[v] = barred[v]


@inner
def _find_set(world: Session, request: VictimRequest) -> bool:
    for _ in range(MOST_SETS):
        sat = _choose_set(world, request)
        if sat == FOUND:
            exchange(world, request)
            return True
        unfit = first_unfit(world, request) if sat == world.work.least[request.w] else -1
        if unfit >= 0:
            world.candidates.barred[unfit] = world.candidates.bounds.search_number[0]
        unseat(world.work, world.room, world.seats, request.w, sat)
        undo_all(world)
        if unfit < 0:
            return False
    return False


@inner
def _choose_set(world: Session, request: VictimRequest) -> int:
    """FOUND, or how many members sit: all of them where what was chosen fails the tests at the end."""
    begin(world.queues, world.candidates)
    sat = free_domain(world, request) if _free_quota(world, request) else 0
    if sat < world.work.least[request.w]:
        return sat
    put_needless_back(world, request)
    if not is_within_cap(world, request):
        do_without(world, request, True)
    if how_many(world.candidates) > 0 and is_within_cap(world, request):
        if is_still_fair(world, request):
            return FOUND
        do_without(world, request, False)
        if is_still_fair(world, request):
            return FOUND
    return sat


@inner
def give_up(world: Session, request: VictimRequest) -> None:
    """Undo a search that succeeded."""
    unseat(world.work, world.room, world.seats, request.w, world.work.least[request.w])
    undo_all(world)


@inner
def _free_quota(world: Session, request: VictimRequest) -> bool:
    """Make room under the limits above the workload, lowest first; False if victims cannot."""
    q = world.work.queue[request.w]
    while q > 0:
        if must_lose_more(world, request, q):
            among, first, last = _candidates_in(world, request, q)
            _shrink_in(world, request, q, among[first:last])
            _evict_in(world, request, q, among[first:last])
        if must_lose_more(world, request, q):
            return False
        q = world.tree.parent[q]
    return True


@inner
def _evict_in(world: Session, request: VictimRequest, q: int, among: Ints) -> None:
    """Victims ``among`` those of ``q`` and below go until it does not lack quota."""
    for v in among:
        if not must_lose_more(world, request, q):
            return
        if not world.candidates.log.leaves[v] and allowed(world, request, v):
            let_go(world, v)


@inner
def _shrink_in(world: Session, request: VictimRequest, q: int, among: Ints) -> None:
    """Elastic gangs ``among`` those of ``q`` and below give up members until it does not lack quota."""
    for v in among:
        h = world.holds.head[v]
        while h >= 0 and must_lose_more(world, request, q) and may_give(world, request, v):
            if not give_some(world, v, h):
                h = world.holds.next[h]


@inner
def _candidates_in(world: Session, request: VictimRequest, q: int) -> tuple[Ints, int, int]:
    """Where to look for victims of ``q`` and below, in order."""
    tree, candidates = world.tree, world.candidates
    if tree.kid_start[q] == tree.kid_start[q + 1]:
        order_leaf(world.work, candidates, q)
        return candidates.slot, candidates.leaf_begin[q], candidates.leaf_begin[q + 1]
    size = order_below(world, request.c, q, world.work.queue[request.w])
    return candidates.order.below_slot, 0, size


UNSEEN, NONE_LOWER = -(1 << 62), 1 << 62
"""In place of the value of a priority: no leaf was looked through yet; nobody of it may leave."""


@inner
def with_lower_beside(world: Session, request: VictimRequest) -> int:
    """Of the chosen one of the highest priority in whose leaf lower priority may leave that is not chosen,
    -1 if there is none.
    """
    work, log, value = world.work, world.candidates.log, world.ranks.value
    lowest = np.full(world.candidates.leaf_begin.size, UNSEEN)
    best, highest = -1, UNSEEN
    for k in range(log.first, log.size):
        v = log.slot[k]
        q, mine = work.queue[v], value[work.priority[v]]
        if log.part[k] != LEAVES or mine <= highest:
            continue
        if lowest[q] == UNSEEN:
            lowest[q] = _lowest_that_may_leave(world, request, q)
        if lowest[q] < mine:
            best, highest = v, mine
    return best


@inner
def _lowest_that_may_leave(world: Session, request: VictimRequest, q: int) -> int:
    """The lowest value of a priority that runs in leaf ``q`` and is neither chosen nor barred nor young;
    NONE_LOWER if there is none.
    """
    work, candidates, value = world.work, world.candidates, world.ranks.value
    number, lowest = candidates.bounds.search_number[0], NONE_LOWER
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        x = candidates.slot[k]
        mine = value[work.priority[x]]
        if mine >= lowest or work.gpu_class[x] != request.c:
            continue
        stays = not candidates.log.leaves[x] and candidates.barred[x] != number
        if stays and world.rules.now >= protected_until(world, request, x):
            lowest = mine
    return int(lowest)


@inner
def takes_lower(work: Work, candidates: Candidates, ranks: Ranks, v: int) -> bool:
    """Whether lower priority of the leaf of ``v`` is among the chosen."""
    log, value = candidates.log, ranks.value
    for k in range(log.first, log.size):
        x = log.slot[k]
        if work.queue[x] == work.queue[v] and value[work.priority[x]] < value[work.priority[v]]:
            return True
    return False


@inner
def bar_from(work: Work, candidates: Candidates, ranks: Ranks, v: int) -> None:
    """The search that follows takes nobody of the leaf of ``v`` whose priority is as high, or higher."""
    q, value = work.queue[v], ranks.value
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        x = candidates.slot[k]
        if value[work.priority[x]] >= value[work.priority[v]]:
            candidates.barred[x] = candidates.bounds.search_number[0]


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
    log = world.candidates.log
    for i in range(log.first, log.size):
        for j in range(i, log.size):
            both = log.part[i] == LEAVES and log.part[j] == LEAVES
            if both and _exchange(world, request, i, j):
                return True
    return False


@inner
def _exchange(world: Session, request: VictimRequest, i: int, j: int) -> bool:
    """Whether something on a node of the ``i``-th of the chosen has taken its place and that of the ``j``-th
    (or its alone).
    """
    work, out, candidates, holds = world.work, world.out, world.candidates, world.holds
    order, price = candidates.order, price_of(work, out, candidates, i)
    price += price_of(work, out, candidates, j) if j != i else 0.0
    h = holds.head[candidates.log.slot[i]]
    while h >= 0:
        n = holds.node[h]
        order_node(work, world.room, candidates, n)
        for k in range(order.node_begin[n], order.node_end[n]):
            x = order.node_slot[k]
            if candidates.price[x] + held_by(work, out, x) / 1000.0 >= price:
                break
            if _might_do(
                world.work, world.ranks, world.holds, world.room, world.candidates, i, j, x, n
            ) and _takes_the_place(world, request, i, j, x):
                return True
        h = holds.next[h]
    return False


@inner
def _might_do(
    work: Work, ranks: Ranks, holds: Holds, room: NodeRoom, candidates: Candidates,
    i: int, j: int, x: int, n: int,
) -> bool:  # fmt: skip
    """``x`` gives members up before it leaves, and outranks nobody of its queue in whose place it goes; and
    leaves enough of node ``n``, where whole GPUs are all that is held.
    """
    log = candidates.log
    a, b = log.slot[i], log.slot[j]
    if log.leaves[x] or extra_of(work, x) > 0:
        return False
    if _outranks(work, ranks, x, a) or _outranks(work, ranks, x, b):
        return False
    if min(work.need[GPUS, x], work.need[GPUS, a], work.need[GPUS, b]) < ONE:
        return True
    gives = free_of(room, GPUS, n, LATER) + _held_on(work, holds, x, n)
    takes = _held_on(work, holds, a, n)
    return gives >= takes + (_held_on(work, holds, b, n) if j != i else 0)


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
    stays = seats_hold(holds, room, a) and seats_hold(holds, room, b)
    return stays and passes_all(world, request)
