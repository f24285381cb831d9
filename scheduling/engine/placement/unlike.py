"""Where the members of a gang with roles go: role by role, the largest first, all of them or nobody.

Where the sizes of the roles divide each other, GPUs alone never refuse a gang that another order would seat.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.placement.node_index import (
    is_closer,
    look_at,
    node_level,
    pick_node,
    row_of,
    sum_up,
)
from scheduling.engine.placement.node_room import pick_device, rise, sit
from scheduling.engine.state.input import Nodes, Work
from scheduling.engine.state.nodes import BLOCK_SIZE, NodeIndex, NodeRoom, Seats
from scheduling.engine.state.roles import (
    FIRST_ROLE,
    WHOLE,
    has_roles,
    many_roles,
    members_in,
    parts_of,
    shape_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, SPREADS

APART = 1e6
"""Above any score: a node with one member more of the same workload comes after every other."""


@inner
def sit_member(
    room: NodeRoom,
    work: Work,
    w: int,
    role: int,
    n: int,
    node: Ints,
    device: Ints,
    sat: int,
    when: int,
) -> int:
    """The next member of that role sits down on ``n``, where it fits; returns how many seats are taken."""
    if not has_roles(work, w):
        node[sat], device[sat] = n, pick_device(room, work, w, n, when)
        sit(room, work, w, n, device[sat], when)
        return sat + 1
    for part in range(parts_of(work, w, role)):
        node[sat], device[sat] = n, FIRST_ROLE - role if part == 0 else WHOLE
        sit(room, work, w, n, device[sat], when)
        sat += 1
    return sat


@inner
def all_fit(world: Session, w: int, c: int, members: int, when: int) -> bool:
    """Whether ``members`` of ``w``, all of them where it has roles, find seats on class ``c``, anywhere."""
    if world.index.total[row_of(world, w, c, when)] < members:
        return False
    if not has_roles(world.work, w):
        return True
    sat = seat_roles(world, w, c, when, ANYWHERE, 0)
    _rise_all(world.room, world.work, world.seats, w, sat, when)
    return bool(sat > 0)


@inner
def fit_together(world: Session, w: int, c: int, when: int) -> bool:
    """Whether ``place_roles`` would seat the least of them."""
    least = world.work.least[w]
    sat = place_roles(world, w, c, least, least, when)
    _rise_all(world.room, world.work, world.seats, w, sat, when)
    return bool(sat > 0)


@inner
def place_roles(world: Session, w: int, c: int, least: int, most: int, when: int) -> int:
    """Seat the least members of ``w``: in one domain of the finest level that it prefers and that holds them
    all, up to the one that it requires; then, there and as far as the required level reaches, more of the
    role that may have more, up to ``most`` seats in all. Returns how many were taken; 0, where they are fewer
    than ``least``, leaves ``room`` as it was.
    """
    work = world.work
    required = work.required[w]
    finest = max(required, min(work.preferred[w], node_level(world.index) - 1))
    for level in range(finest, required - 1, -1):
        sat = _seat_together(world, w, c, most, when, level)
        if sat > 0:
            sat = _seat_more(world, w, c, sat, most, when, level)
            sat = _seat_more(world, w, c, sat, most, when, required)
            if sat >= least:
                return int(sat)
            _rise_all(world.room, work, world.seats, w, sat, when)
            return 0
    return 0


@inner
def _seat_more(world: Session, w: int, c: int, sat: int, most: int, when: int, level: int) -> int:
    """Seat more members of the elastic role behind the first ``sat`` seats, up to ``most`` in all, in the
    domain of the level that they sit in; returns how many are taken then.
    """
    work, home = world.work, world.seats.node[0]
    more = (most - sat) // parts_of(work, w, work.elastic_role[w])
    if more <= 0:
        return sat
    domain = 0
    if level != ANYWHERE:
        domain = home if level == node_level(world.index) else world.nodes.domain[level, home]
    return int(_seat_role(world, w, c, work.elastic_role[w], more, sat, when, level, domain))


@inner
def _seat_together(world: Session, w: int, c: int, most: int, when: int, level: int) -> int:
    """In the domain of the level that is closest to ``most`` seats and holds the least of them; ANYWHERE is
    one domain.
    """
    if level == ANYWHERE:
        return int(seat_roles(world, w, c, when, ANYWHERE, 0))
    row = row_of(world, w, c, when)
    slots = _slots_by_domain(world.nodes, world.index, row, c, level)
    least = world.work.least[w]
    while True:
        best = -1
        for d in range(slots.size):
            if slots[d] >= least and (best < 0 or is_closer(slots[d], slots[best], most)):
                best = d
        if best < 0:
            return 0
        sat = seat_roles(world, w, c, when, level, best)
        if sat > 0:
            return int(sat)
        slots[best] = 0


@inner
def _slots_by_domain(nodes: Nodes, index: NodeIndex, row: int, c: int, level: int) -> Ints:
    """Parts that the nodes of class ``c`` have GPUs for, by domain; nodes are their own."""
    is_node = level == node_level(index)
    slots = np.zeros(nodes.gpu_class.size if is_node else nodes.domain[level].max() + 1, np.int64)
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        d = n if is_node else nodes.domain[level, n]
        slots[d] += index.slots[row, index.domains.position[n]]
    return slots


@inner
def seat_roles(world: Session, w: int, c: int, when: int, level: int, domain: int) -> int:
    """Seat the least members of ``w`` in the domain; returns how many seats; nobody sits, 0, where not all
    fit.
    """
    work, sat = world.work, 0
    for role in range(many_roles(work, w)):
        many = members_in(work, w, role)
        end = _seat_role(world, w, c, role, many, sat, when, level, domain)
        if end < sat + many * parts_of(work, w, role):
            _rise_all(world.room, work, world.seats, w, end, when)
            return 0
        sat = end
    return sat


@inner
def _seat_role(
    world: Session, w: int, c: int, role: int, left: int, sat: int, when: int, level: int, domain: int
) -> int:  # fmt: skip
    """Seat up to ``left`` members of one role behind the first ``sat`` seats; returns how many are taken
    then.
    """
    room, work, seats, index = world.room, world.work, world.seats, world.index
    one, apart = shape_of(work, w, role), world.ranks.apart[work.priority[w]]
    row = row_of(world, one, c, when)
    for i in range(sat if apart else 0):
        shun(seats, index, row, seats.node[i], sat)
    while left > 0:
        most = 1 if world.rules.spread_weight == SPREADS or apart else left
        n = pick_node(world, row, c, most, level, domain)
        many = min(most, index.slots[row, index.domains.position[n]]) if n >= 0 else 0
        if many == 0:
            break
        for _ in range(many):
            sat = sit_member(room, work, w, role, n, seats.node, seats.device, sat, when)
        look_at(world, row, one, n, when)
        if apart:
            shun(seats, index, row, n, sat)
        left -= many
    for i in range(sat if apart else 0):
        look_at(world, row, one, seats.node[i], when)
    return sat


@inner
def shun(seats: Seats, index: NodeIndex, row: int, n: int, done: int) -> None:
    """The next member of the same workload goes elsewhere, if it fits anywhere else."""
    for i in range(done):
        if seats.node[i] == n:
            index.score[row, index.domains.position[n]] += APART
    sum_up(index, row, index.domains.position[n] // BLOCK_SIZE)


@inner
def _rise_all(room: NodeRoom, work: Work, seats: Seats, w: int, sat: int, when: int) -> None:
    for i in range(sat):
        rise(room, work, w, seats.node[i], seats.device[i], when)


@inner
def fill_nodes(
    world: Session,
    row: int,
    w: int,
    c: int,
    done: int,
    end: int,
    when: int,
    level: int,
    domain: int,
) -> None:
    """Seat members ``done`` to ``end`` on nodes of the domain."""
    room, work, seats, index = world.room, world.work, world.seats, world.index
    apart, first = world.ranks.apart[work.priority[w]], done
    while done < end:
        left = 1 if world.rules.spread_weight == SPREADS or apart else end - done
        n = pick_node(world, row, c, left, level, domain)
        for _ in range(min(left, index.slots[row, index.domains.position[n]])):
            device = pick_device(room, work, w, n, when)
            sit(room, work, w, n, device, when)
            seats.node[done], seats.device[done] = n, device
            done += 1
        look_at(world, row, w, n, when)
        if apart and end - first > 1:
            shun(seats, index, row, n, done)
    for i in range(first, end if apart else first):
        look_at(world, row, w, seats.node[i], when)
    index.seen[row] = room.changes.clock
