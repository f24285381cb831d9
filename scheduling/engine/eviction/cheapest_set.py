"""The cheapest victims by merit that make room: on one node, or all of as many nodes as a gang needs.

One large victim that has run long rather than several small ones.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.rules import VictimRequest
from scheduling.engine.placement.node_room import may_use
from scheduling.engine.state.input import Holds, Nodes, Work, gpus_of
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.roles import many_roles, members_in, shape_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, RUNNING
from scheduling.engine.state.victims import MeritSearches

PER_GPU_FREED = 900.0
"""GPU-seconds that each GPU is worth which a single victim frees beyond need."""


@inner
def cheapest_set(world: Session, request: VictimRequest) -> int:
    """On one node if that could hold it, else on as many wholly freed as it needs; returns how many, who
    stand in ``chosen``.
    """
    size = _largest_node(world.nodes, request.c)
    if request.need <= size:
        return int(_cheapest_on_one(world, request))
    return int(_cheapest_nodes(world, request, size))


@inner
def _largest_node(nodes: Nodes, c: int) -> int:
    size = 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        size = max(size, nodes.size[GPUS, nodes.of_class[i]])
    return int(size)


@inner
def _cheapest_on_one(world: Session, request: VictimRequest) -> int:
    """Puts the victims on the node of least price into ``chosen``; returns how many."""
    nodes, work, room, holds = world.nodes, world.work, world.room, world.holds
    merit, least, where = world.candidates.merit, np.inf, -1
    for i in range(nodes.class_start[request.c], nodes.class_start[request.c + 1]):
        n = nodes.of_class[i]
        if _could_free(work, room, holds, merit, request.w, n) < request.need:
            continue
        price = _take_from(work, room, holds, merit, n, request.need)
        if price < least:
            least, where = price, n
    if where < 0:
        return 0
    _take_from(work, room, holds, merit, where, request.need)
    return int(merit.chosen[merit.chosen.size - 1])


@inner
def _given_by(work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, h: int) -> int:
    """Milli-GPU that hold ``h`` would give back, 0 if its owner may not leave."""
    v = room.holders.owner[h]
    if work.phase[v] != RUNNING or merit.price[v] == np.inf:
        return 0
    return int(holds.members[h] * work.need[GPUS, v])


@inner
def _given_on(
    work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, n: int, v: int
) -> int:
    """Milli-GPU that all members of ``v`` on node ``n`` would give back: one device is one hold."""
    gives, h = 0, room.holders.first[n]
    while h >= 0:
        if room.holders.owner[h] == v:
            gives += _given_by(work, room, holds, merit, h)
        h = room.holders.after[h]
    return gives


@inner
def _could_free(
    work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, w: int, n: int
) -> int:
    """Milli-GPU that would be free on node ``n`` with all gone who may, -1 if ``w`` may not use it."""
    if not may_use(room, work, w, n):
        return -1
    free, h = room.free_later[GPUS, n], room.holders.first[n]
    while h >= 0:
        free += _given_by(work, room, holds, merit, h)
        h = room.holders.after[h]
    return int(free)


@inner
def _take_from(
    work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, n: int, need: int
) -> float:
    """The cheapest single victim that is enough, else the cheapest by GPU until they are, into ``chosen``,
    their number last; the price of all.
    """
    last, free = merit.chosen.size - 1, room.free_later[GPUS, n]
    one, price = _single(work, room, holds, merit, n, need)
    if one >= 0:
        merit.chosen[0], merit.chosen[last] = one, 1
        return float(price)
    merit.number[0] += 1
    many, price = 0, 0.0
    while free < need:
        v = _cheapest_holder(work, room, holds, merit, n)
        merit.taken_by[v], merit.chosen[many] = merit.number[0], v
        price += merit.price[v]
        free += _given_on(work, room, holds, merit, n, v)
        many += 1
    merit.chosen[last] = many
    return float(price)


@inner
def _single(
    work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, n: int, need: int
) -> tuple[int, float]:
    best, least, h = -1, np.inf, room.holders.first[n]
    while h >= 0:
        v = room.holders.owner[h]
        gives = _given_on(work, room, holds, merit, n, v)
        if gives > 0 and room.free_later[GPUS, n] + gives >= need:
            price = merit.price[v] - PER_GPU_FREED * (gpus_of(work, v) - need) / 1000.0
            if price < least or (price == least and work.tie[v] < work.tie[best]):
                best, least = v, price
        h = room.holders.after[h]
    return best, least


@inner
def _cheapest_holder(work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, n: int) -> int:
    """Of those not taken yet the one that costs least for each GPU it gives."""
    best, least, h = -1, np.inf, room.holders.first[n]
    while h >= 0:
        v = room.holders.owner[h]
        gives = _given_on(work, room, holds, merit, n, v)
        if gives > 0 and merit.taken_by[v] != merit.number[0]:
            rate = merit.price[v] / gives
            if rate < least or (rate == least and work.tie[v] < work.tie[best]):
                best, least = v, rate
        h = room.holders.after[h]
    return int(best)


@inner
def _cheapest_nodes(world: Session, request: VictimRequest, size: int) -> int:
    """All who may leave the nodes that cost least to free wholly, as many as the gang needs."""
    work, room, holds, merit = world.work, world.room, world.holds, world.candidates.merit
    nodes, w, c, many = world.nodes, request.w, request.c, 0
    fits = size // work.need[GPUS, w]
    if fits == 0:
        return 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        enough = _could_free(work, room, holds, merit, w, n) >= fits * work.need[GPUS, w]
        price = _price_of_node(work, room, holds, merit, n) if enough else np.inf
        merit.node_price[n] = price
    merit.number[0] += 1
    for _ in range(_nodes_for(work, w, size)):
        n = _cheapest_node(nodes, merit, c)
        if n < 0:
            return 0
        merit.node_price[n] = np.inf
        many = _take_all(work, room, holds, merit, n, many)
    return many


@inner
def _nodes_for(work: Work, w: int, size: int) -> int:
    """How many nodes of that size the least members need, 0 where one is larger than a node; roles whose
    sizes divide each other fit on so many.
    """
    nodes, gpus = 0, 0
    for role in range(many_roles(work, w)):
        each = work.need[GPUS, shape_of(work, w, role)]
        if each > size:
            return 0
        gpus += members_in(work, w, role) * each
        nodes = max(nodes, -(-gpus // (size // each * each)))
    return nodes


@inner
def _price_of_node(work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, n: int) -> float:
    """A gang across nodes counts in each of them by its part."""
    price, h = 0.0, room.holders.first[n]
    while h >= 0:
        gives, v = _given_by(work, room, holds, merit, h), room.holders.owner[h]
        if gives > 0:
            price += merit.price[v] * gives / gpus_of(work, v)
        h = room.holders.after[h]
    return price


@inner
def _cheapest_node(nodes: Nodes, merit: MeritSearches, c: int) -> int:
    """-1 if none can be freed."""
    best, least = -1, np.inf
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if merit.node_price[n] < least:
            best, least = n, merit.node_price[n]
    return int(best)


@inner
def _take_all(
    work: Work, room: NodeRoom, holds: Holds, merit: MeritSearches, n: int, many: int
) -> int:
    """Put who may leave node ``n`` behind the first ``many`` of ``chosen``; returns how many."""
    h = room.holders.first[n]
    while h >= 0:
        v = room.holders.owner[h]
        if _given_by(work, room, holds, merit, h) > 0 and merit.taken_by[v] != merit.number[0]:
            merit.taken_by[v], merit.chosen[many] = merit.number[0], v
            many += 1
        h = room.holders.after[h]
    return many
