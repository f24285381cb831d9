"""The nodes on which members of one workload lose least, and who leaves each of them for it.

Victims are whole gangs, or members that elastic gangs can do without. The node that frees a member's room at
the least work lost is taken, again and again, until all sit.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.eviction.cheapest_node import (
    change,
    enter,
    enter_class,
    forget,
    next_node,
    open_beside,
)
from scheduling.engine.eviction.minimal_set import price_of
from scheduling.engine.eviction.rules import VictimRequest, allowed, for_role, may_give
from scheduling.engine.eviction.victim_order import order_node
from scheduling.engine.placement.node_room import ONE, leave, slots_on
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Nodes, Work, extra_of
from scheduling.engine.state.roles import (
    many_roles,
    members_in,
    needs_segments,
    parts_of,
    segment_level,
    segment_size,
    shape_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, LATER
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import (
    do_beside,
    end_beside,
    first_beside,
    give_some,
    let_go,
    mark,
    squeeze,
    strike_beside,
    undo,
    unseat,
)


@inner
def free_room(world: Session, request: VictimRequest, among: Ints, whole: bool) -> int:
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
    forget(heap)
    forget(candidates.blocks.heap)
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
    if clear_node(world, request, n, True, True):
        return True
    if work.need[GPUS, request.seat] < ONE or not _has_shares(work, candidates, before):
        return False
    undo(world, before)
    return clear_node(world, request, n, False, True)


@inner
def clear_node(world: Session, request: VictimRequest, n: int, shares: bool, elastic: bool) -> bool:
    """The same, but for work on ``shares`` of GPUs and ``elastic`` gangs where these stay."""
    candidates, work = world.candidates, world.work
    for k in range(candidates.order.node_begin[n], candidates.order.node_end[n]):
        v = candidates.order.node_slot[k]
        if candidates.log.leaves[v] or not (shares or work.need[GPUS, v] >= ONE):
            continue
        if extra_of(work, v) > 0 and not elastic:
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
    holds = world.holds
    for k in range(first, last):
        v = world.candidates.order.node_slot[k]
        if extra_of(world.work, v) == 0:
            continue
        h = holds.head[v]
        while h >= 0:
            here = holds.node[h] == n and may_give(world, request, v)
            if here and give_some(world, v, h):
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
        if first_beside(world.work, candidates, k) != k:
            continue
        do_beside(world, k, -1)
        if slots_on(world.room, world.work, request.seat, n, LATER) > 0:
            strike_beside(world.work, candidates, k)
            continue
        do_beside(world, k, 1)
        for i in range(k, end_beside(world.work, candidates, k)):
            price += price_of(world.work, world.out, candidates, i)
    squeeze(candidates, before)
    return price


@inner
def free_domain(world: Session, request: VictimRequest) -> int:
    """Free room anywhere, or in the domain of the required level that loses least."""
    work, room, candidates = world.work, world.room, world.candidates
    nodes, level = world.nodes, work.required[request.w]
    among = nodes.of_class[nodes.class_start[request.c] : nodes.class_start[request.c + 1]]
    if level == ANYWHERE:
        return _free_among(world, request, among, True)
    order, start = by_domain(nodes, among, level)
    before = mark(candidates)
    best, best_lost = -1, np.inf
    for d in range(start.size - 1):
        sat = _free_among(world, request, order[start[d] : start[d + 1]], False)
        lost = lost_since(work, world.out, candidates, candidates.log.first)
        if sat == work.least[request.w] and lost < best_lost:
            best, best_lost = d, lost
        unseat(work, room, world.seats, request.w, sat)
        undo(world, before)
    if best < 0:
        return 0
    return _free_among(world, request, order[start[best] : start[best + 1]], False)


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
def lost_since(work: Work, out: Decisions, candidates: Candidates, first: int) -> float:
    """The price of the chosen from number ``first`` on."""
    lost = 0.0
    for k in range(first, candidates.log.size):
        lost += price_of(work, out, candidates, k)
    return lost


@inner
def _free_among(world: Session, request: VictimRequest, among: Ints, whole: bool) -> int:
    """Seat the least members on the nodes ``among``, the ``whole`` class or some of it; returns how many
    seats they took.
    """
    if needs_segments(world.work, request.w):
        return _free_segments(world, request, among)
    return free_room(world, request, among, whole)


@inner
def _free_segments(world: Session, request: VictimRequest, among: Ints) -> int:
    """Seat segment by segment, each in the domain of its level where it loses least, the first on ties.

    What a domain costs holds until one of its nodes is touched, and is at least that from then on elsewhere:
    so the cheapest is computed again before it is taken, as a node is by ``free_seats``.
    """
    work, seats, candidates = world.work, world.seats, world.candidates
    w, sat, turn = request.w, 0, 1
    size, level = segment_size(work, w), segment_level(work, w)
    order, start = by_domain(world.nodes, among, level)
    cost, costed_at = np.zeros(start.size - 1), np.zeros(start.size - 1, np.int64)
    while sat < work.least[w]:
        d = int(cost.argmin())
        inside, before = order[start[d] : start[d + 1]], mark(candidates)
        if cost[d] == np.inf:
            break
        enter(work, world.room, candidates, request, inside)
        end = _free_seats(world, request, 0, sat, sat + size)
        lost = np.inf
        if end == sat + size:
            lost = lost_since(work, world.out, candidates, before)
        if lost == np.inf or (lost > cost[d] and costed_at[d] != turn):
            for i in range(sat, end):
                leave(world.room, work, w, seats.node[i], seats.device[i], 1)
            undo(world, before)
            cost[d], costed_at[d] = lost, turn
            continue
        _touch_domains(world.nodes, world.holds, candidates, level, before, cost)
        turn, cost[d], sat = turn + 1, 0.0, end
    return sat


@inner
def _touch_domains(
    nodes: Nodes, holds: Holds, candidates: Candidates, level: int, before: int, cost: Floats
) -> None:
    """The other domains of the last victims may have become cheaper."""
    for k in range(before, candidates.log.size):
        h = holds.head[candidates.log.slot[k]]
        while h >= 0:
            d = nodes.domain[level, holds.node[h]]
            if d < cost.size:
                cost[d] = 0.0
            h = holds.next[h]
