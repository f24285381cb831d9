"""Growing elastic gangs into what nobody who waits can use.

One member at a time, the neediest queue first and inside it by the ladder of the line, so equals grow
alike. What was grown is the first to be given back: shrinking precedes every eviction.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import fills_what_leaves, quota_allows
from scheduling.engine.arrays import ANYWHERE, GPUS, NOW, Flags, Ints
from scheduling.engine.compiled import inner, once
from scheduling.engine.record import decide, quote, seat_out
from scheduling.engine.seating import free_of, pick_device, sit, slots_on
from scheduling.engine.standing import charge, neediest
from scheduling.engine.world import World


@inner
def grow_all(world: World) -> None:
    """Decide GROW for elastic gangs below their most members, as far as room and quota go."""
    line, tree = world.line, world.tree
    may = np.zeros(world.work.phase.size, np.bool_)
    left = np.zeros(tree.parent.size, np.int64)
    for k in range(line.runs[2], line.count[2]):
        w = line.running[k]
        if _may_grow(world, w):
            may[w] = True
            _count(world, left, world.work.queue[w], 1)
    if left[0] == 0:
        return
    room_for = int(world.seats.node.size)
    who, node = np.empty(room_for, np.int64), np.empty(room_for, np.int64)
    device = np.empty(room_for, np.int64)
    grown = 0
    while left[0] > 0 and grown < room_for:
        w = _next_to_grow(world, may, neediest(tree, world.book, left))
        n = _node_for(world, w)
        if n >= 0:
            who[grown], node[grown], device[grown] = w, n, _add_member(world, w, n)
            grown += 1
        if n < 0 or not _may_grow(world, w):
            may[w] = False
            _count(world, left, world.work.queue[w], -1)
    for i in range(grown):
        if world.out.action[who[i]] == codes.UNDECIDED:
            _write_down(world, who, node, device, i, grown)


@once
def _count(world: World, left: Ints, q: int, one: int) -> None:
    while q >= 0:
        left[q] += one
        q = world.tree.parent[q]


@inner
def _may_grow(world: World, w: int) -> bool:
    """``out.members`` counts what it has grown by in this cycle."""
    work = world.work
    if not work.elastic[w] or work.leaving[w] or world.out.action[w] != codes.UNDECIDED:
        return False
    if work.members[w] + world.out.members[w] >= work.most[w] or work.members[w] < work.least[w]:
        return False
    q, c, gpus = work.queue[w], work.gpu_class[w], work.need[GPUS, w]
    if world.tree.stop[q] > 0 or fills_what_leaves(world, q, c, gpus):
        return False
    return quota_allows(world, w, c, gpus, world.tree.depth[q])


@inner
def _next_to_grow(world: World, may: Flags, q: int) -> int:
    line, best = world.line, -1
    for k in range(line.runs[q + 1], line.runs[q + 2]):
        w = line.running[k]
        if may[w] and (best < 0 or _grows_before(world, w, best)):
            best = w
    return best


@once
def _grows_before(world: World, a: int, b: int) -> bool:
    """Priority value, least held by its user, started first, tie."""
    work, value, held = world.work, world.ranks.value, world.book.by_user
    x, y = value[work.priority[a]], value[work.priority[b]]
    if x != y:
        return x > y
    if held[work.user[a]] != held[work.user[b]]:
        return held[work.user[a]] < held[work.user[b]]
    if work.started[a] != work.started[b]:
        return work.started[a] < work.started[b]
    return work.tie[a] < work.tie[b]


@inner
def _node_for(world: World, w: int) -> int:
    """The fullest node that takes one more member, in its domain if it needs one; -1 if none does."""
    work, nodes, room = world.work, world.nodes, world.room
    c, level = work.gpu_class[w], work.required[w]
    home = world.holds.node[world.holds.head[w]]
    best, least = -1, 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if level != ANYWHERE and nodes.domain[level, n] != nodes.domain[level, home]:
            continue
        free = free_of(room, GPUS, n, NOW)
        if slots_on(room, work, w, n, NOW) > 0 and (best < 0 or free < least):
            best, least = n, free
    return best


@once
def _add_member(world: World, w: int, n: int) -> int:
    """Returns the device it sits on."""
    work, c = world.work, world.work.gpu_class[w]
    device = pick_device(world.room, work, w, n, NOW)
    sit(world.room, work, w, n, device, NOW)
    world.room.open[c] -= work.need[GPUS, w]
    charge(world, w, c, 1, not world.ranks.preemptible[work.priority[w]])
    world.out.members[w] += 1
    return device


@inner
def _write_down(world: World, who: Ints, node: Ints, device: Ints, first: int, grown: int) -> None:
    """The gang's whole placement: where it sits, then the seats it grew by."""
    work, holds, seats, w = world.work, world.holds, world.seats, who[first]
    c, q = work.gpu_class[w], work.queue[w]
    total, h = 0, holds.head[w]
    while h >= 0:
        for _ in range(holds.members[h]):
            seats.node[total], seats.device[total] = holds.node[h], holds.device[h]
            total += 1
        h = holds.next[h]
    for i in range(first, grown):
        if who[i] == w:
            seats.node[total], seats.device[total] = node[i], device[i]
            total += 1
    decide(world.out, w, codes.GROW, codes.GROWS, c, total)
    quote(world.out, w, q, work.members[w], total, work.most[w], world.book.held[c, q])
    seat_out(world.out, seats, w, total)
