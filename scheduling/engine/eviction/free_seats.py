"""Which work must leave so that one workload can start.

Victims are whole gangs, or members that elastic gangs can do without. Limits come first, then room:
the node that frees a member's room at the least work lost is taken, again and again, until the gang
sits. Then needless victims are put back, and the fairness test is repeated on the final set.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.cheapest_node import (
    change,
    end_search,
    enter,
    enter_class,
    next_node,
    open_beside,
)
from scheduling.engine.eviction.exchange import exchange
from scheduling.engine.eviction.lower_first import bar_from, takes_lower, with_lower_beside
from scheduling.engine.eviction.minimal_set import (
    do_without,
    first_unfit,
    is_still_fair,
    is_within_cap,
    lacks_quota,
    price_of,
    put_needless_back,
)
from scheduling.engine.eviction.nearby import mark_nodes
from scheduling.engine.eviction.rules import VictimRequest, allowed, for_role, may_give, note_owed
from scheduling.engine.eviction.victim_order import order_below, order_leaf, order_node
from scheduling.engine.placement.node_room import ONE, slots_on
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Nodes, Work, extra_of
from scheduling.engine.state.roles import many_roles, members_in, parts_of, shape_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, LATER
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import (
    begin,
    give_member,
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
    while found and again > 0:
        too_high = with_lower_beside(world, request)
        if too_high < 0:
            break
        barred = world.candidates.barred.copy()
        give_up(world, request)
        bar_from(world, request, too_high)
        again -= 1
        if _find_set(world, request):
            if takes_lower(world, too_high):
                continue
            give_up(world, request)
        world.candidates.barred[:] = barred
        found, again = _find_set(world, request), 0
    return bool(found)


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
    sat = _free_domain(world, request) if _free_quota(world, request) else 0
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
        if lacks_quota(world, request, q):
            among, first, last = _candidates_in(world, request, q)
            _shrink_in(world, request, q, among[first:last])
            _evict_in(world, request, q, among[first:last])
        if lacks_quota(world, request, q):
            return False
        q = world.tree.parent[q]
    return True


@inner
def _evict_in(world: Session, request: VictimRequest, q: int, among: Ints) -> None:
    """Victims ``among`` those of ``q`` and below go until it does not lack quota."""
    for v in among:
        if not lacks_quota(world, request, q):
            return
        if not world.candidates.log.leaves[v] and allowed(world, request, v):
            let_go(world, v)


@inner
def _shrink_in(world: Session, request: VictimRequest, q: int, among: Ints) -> None:
    """Elastic gangs ``among`` those of ``q`` and below give up members until it does not lack quota."""
    candidates = world.candidates
    for v in among:
        h = world.holds.head[v]
        while h >= 0 and lacks_quota(world, request, q) and may_give(world, request, v):
            if candidates.log.members_given_on[h] < world.holds.members[h]:
                give_member(world, v, h)
            else:
                h = world.holds.next[h]


@inner
def _candidates_in(world: Session, request: VictimRequest, q: int) -> tuple[Ints, int, int]:
    """Where to look for victims of ``q`` and below, in order."""
    tree, candidates = world.tree, world.candidates
    if tree.kid_start[q] == tree.kid_start[q + 1]:
        order_leaf(world.work, candidates, q)
        return candidates.slot, candidates.leaf_begin[q], candidates.leaf_begin[q + 1]
    return (
        candidates.order.below_slot,
        0,
        order_below(world, request.c, q, world.work.queue[request.w]),
    )


@inner
def _free_domain(world: Session, request: VictimRequest) -> int:
    """Free room anywhere, or in the domain of the required level that loses least."""
    work, room, candidates = world.work, world.room, world.candidates
    nodes, level = world.nodes, work.required[request.w]
    among = nodes.of_class[nodes.class_start[request.c] : nodes.class_start[request.c + 1]]
    if level == ANYWHERE:
        return _free_room(world, request, among, True)
    order, start = by_domain(nodes, among, level)
    before = mark(candidates)
    best, best_lost = -1, np.inf
    for d in range(start.size - 1):
        sat = _free_room(world, request, order[start[d] : start[d + 1]], False)
        lost = lost_so_far(work, world.out, candidates)
        if sat == work.least[request.w] and lost < best_lost:
            best, best_lost = d, lost
        unseat(work, room, world.seats, request.w, sat)
        undo(world, before)
    if best < 0:
        return 0
    return _free_room(world, request, order[start[best] : start[best + 1]], False)


@inner
def by_domain(nodes: Nodes, among: Ints, level: int) -> tuple[Ints, Ints]:
    """The nodes by domain, and where each domain begins (counting sort)."""
    top = 0
    for n in among:
        top = max(top, nodes.domain[level, n])
    start, order = np.zeros(top + 3, np.int64), np.empty(among.size, np.int64)
    for n in among:
        start[nodes.domain[level, n] + 2] += 1
    for d in range(2, top + 3):
        start[d] += start[d - 1]
    for n in among:
        d = nodes.domain[level, n] + 1
        order[start[d]] = n
        start[d] += 1
    return order, start[: top + 2]


@inner
def lost_so_far(work: Work, out: Decisions, candidates: Candidates) -> float:
    """The price of the chosen."""
    lost = 0.0
    for k in range(candidates.log.first, candidates.log.size):
        lost += price_of(work, out, candidates, k)
    return lost


@inner
def _free_room(world: Session, request: VictimRequest, among: Ints, whole: bool) -> int:
    """Seat the least members role by role, on the nodes ``among``, the ``whole`` class or some of it;
    returns how many seats they took.
    """
    work, w, sat = world.work, request.w, 0
    for role in range(many_roles(work, w)):
        of_role = for_role(request, shape_of(work, w, role))
        if whole:
            enter_class(world, of_role)
        else:
            enter(work, world.room, world.candidates, of_role, among)
        end = sat + members_in(work, w, role) * parts_of(work, w, role)
        sat = _free_seats(world, of_role, role, sat, end)
        if sat < end:
            break
    return sat


@inner
def _free_seats(world: Session, request: VictimRequest, role: int, sat: int, end: int) -> int:
    """Seat members one by one, each on the node where it loses least, until ``end`` seats are taken; returns
    how many are.

    A node's cost holds until the node is touched. Elsewhere each victim taken can only make others
    dearer, so the cheapest node is computed again before it is taken, and that is enough. Nodes have
    entered with a lower bound of their cost.
    """
    work, room, candidates = world.work, world.room, world.candidates
    w, heap, seats, epoch = request.w, candidates.heap, world.seats, 1
    while sat < end:
        n = next_node(world.nodes, work, room, candidates, request)
        if n >= 0 and heap.costed_at[n] != epoch:
            change(heap, n, _cost(world, request, n, False))
            heap.costed_at[n] = epoch
            continue
        if n < 0 or heap.cost[n] == np.inf:
            break
        open_beside(world, request, n)
        if heap.cost[n] > 0.0:
            before = mark(candidates)
            _cost(world, request, n, True)
            epoch += 1
            _touch(world, request, before)
        sat = sit_member(room, work, w, role, n, seats.node, seats.device, sat, LATER)
        change(heap, n, _cost(world, request, n, False))
        heap.costed_at[n] = epoch
    end_search(candidates)
    return sat


@inner
def _touch(world: Session, request: VictimRequest, before: int) -> None:
    """The other nodes of the last victims may have become cheaper."""
    holds, candidates = world.holds, world.candidates
    for k in range(before, candidates.log.size):
        h = holds.head[candidates.log.slot[k]]
        while h >= 0:
            n = holds.node[h]
            if candidates.heap.position[n] >= 0:
                change(candidates.heap, n, _cost(world, request, n, False))
            h = holds.next[h]


@inner
def _cost(world: Session, request: VictimRequest, n: int, take: bool) -> float:
    """Price of one more seat on ``n``, infinite if the rules allow too little. ``take`` keeps the
    victims released, otherwise all is as before.
    """
    room, work = world.room, world.work
    if slots_on(room, work, request.seat, n, LATER) > 0:
        return 0.0
    before = mark(world.candidates)
    fits = give_members_on(world, request, n) or _evict_on(world, request, n)
    price = _keep_needed(world, request, n, before) if fits else np.inf
    if not (fits and take):
        undo(world, before)
    return price


@inner
def _evict_on(world: Session, request: VictimRequest, n: int) -> bool:
    """Victims on node ``n`` leave in order until one seat fits; whether it does.

    A share of a GPU on which others stay makes no room for whole GPUs and yet leaves its queue less to
    lose, so they are tried without shares as well.
    """
    work, candidates = world.work, world.candidates
    before = mark(candidates)
    if _clear_node(world, request, n, True):
        return True
    if work.need[GPUS, request.seat] < ONE or not _has_shares(work, candidates, before):
        return False
    undo(world, before)
    return _clear_node(world, request, n, False)


@inner
def _clear_node(world: Session, request: VictimRequest, n: int, shares: bool) -> bool:
    candidates, work = world.candidates, world.work
    for k in range(candidates.order.node_begin[n], candidates.order.node_end[n]):
        v = candidates.order.node_slot[k]
        if candidates.log.leaves[v] or not (shares or work.need[GPUS, v] >= ONE):
            continue
        if allowed(world, request, v):
            let_go(world, v)
            if slots_on(world.room, work, request.seat, n, LATER) > 0:
                return True
    return False


@inner
def _has_shares(work: Work, candidates: Candidates, first: int) -> bool:
    """Whether one of the chosen, from number ``first`` on, holds shares of GPUs."""
    for k in range(first, candidates.log.size):
        if 0 < work.need[GPUS, candidates.log.slot[k]] < ONE:
            return True
    return False


@inner
def give_members_on(world: Session, request: VictimRequest, n: int) -> bool:
    """Members on node ``n`` are given up until one seat fits; whether it does.

    A member given first may leave its queue too little above its share for a larger one of another
    gang, so each gang is tried alone as well.
    """
    order_node(world.work, world.room, world.candidates, n)
    candidates = world.candidates
    first = world.candidates.order.node_begin[n]
    last = world.candidates.order.node_end[n]
    if world.ordering.running.elastic == 0:
        return False
    before = mark(candidates)
    if _give_on(world, request, n, first, last):
        return True
    if candidates.log.size == before:
        return False
    for k in range(first, last):
        undo(world, before)
        if _give_on(world, request, n, k, k + 1):
            return True
    undo(world, before)
    return _give_on(world, request, n, first, last)


@inner
def _give_on(world: Session, request: VictimRequest, n: int, first: int, last: int) -> bool:
    """Those listed from ``first`` to ``last`` on node ``n`` give members up until one seat fits."""
    candidates, holds = world.candidates, world.holds
    for k in range(first, last):
        v = candidates.order.node_slot[k]
        if extra_of(world.work, v) == 0:
            continue
        h = holds.head[v]
        while h >= 0:
            here = holds.node[h] == n and candidates.log.members_given_on[h] < holds.members[h]
            if here and may_give(world, request, v):
                give_member(world, v, h)
                if slots_on(world.room, world.work, request.seat, n, LATER) > 0:
                    return True
            else:
                h = holds.next[h]
    return False


@inner
def _keep_needed(world: Session, request: VictimRequest, n: int, before: int) -> float:
    """Put back, dearest first, the victims that node ``n`` does not need; the price of the others."""
    candidates, price = world.candidates, 0.0
    for k in range(candidates.log.size - 1, before - 1, -1):
        if candidates.log.part[k] >= 0 and candidates.log.leaves[candidates.log.slot[k]]:
            continue
        undo_one(world, k)
        if slots_on(world.room, world.work, request.seat, n, LATER) > 0:
            strike(candidates, k)
            continue
        redo_one(world, k)
        price += price_of(world.work, world.out, candidates, k)
    squeeze(candidates, before)
    return price
