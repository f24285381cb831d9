"""Where a search makes room: anywhere, or inside a domain of the required level; segment by segment, where
the gang keeps some.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.eviction.free_seats import free_room, free_seats_among
from scheduling.engine.eviction.minimal_set import price_of
from scheduling.engine.eviction.rules import VictimRequest
from scheduling.engine.placement.node_room import leave
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Nodes, Work
from scheduling.engine.state.segments import needs_segments, segment_level, segment_size
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import mark, undo, unseat


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
        lost = lost_so_far(work, world.out, candidates)
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
def lost_so_far(work: Work, out: Decisions, candidates: Candidates) -> float:
    """The price of the chosen."""
    return lost_since(work, out, candidates, candidates.log.first)


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
        end = free_seats_among(world, request, inside, sat, sat + size)
        lost = np.inf
        if end == sat + size:
            lost = lost_since(work, world.out, candidates, before)
        if lost == np.inf or (lost > cost[d] and costed_at[d] != turn):
            for i in range(sat, end):
                leave(world.room, work, w, seats.node[i], seats.device[i], 1)
            undo(world, before)
            cost[d], costed_at[d] = lost, turn
            continue
        _touch(world.nodes, world.holds, candidates, level, before, cost)
        turn, cost[d], sat = turn + 1, 0.0, end
    return sat


@inner
def _touch(
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
