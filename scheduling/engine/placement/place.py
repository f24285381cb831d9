"""Where the members of a gang go (DESIGN 3.4): pack, spread, and topology domains.

A gang goes to the node of lowest score that takes all of it; a gang no node can take goes to the
nodes that take most of it, its remainder to the one of lowest score that fits. A required level keeps
all members in one of its domains. A preferred one takes the closest domain that holds the gang, and
where none does, as few domains of the preferred level as can be. Members for inference go to different
nodes where they can; by the policy ``spread`` every member goes to the node with most room. Ties go to
the lowest name, so the order of rows decides nothing. Of segments: ``segments``.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.node_index import (
    is_closer,
    node_level,
    pick_domain,
    pick_node,
    row_of,
)
from scheduling.engine.placement.node_room import fits_at, leave, sit, take_now, take_open
from scheduling.engine.placement.segments import place_segments
from scheduling.engine.placement.unlike import fill_nodes, place_roles
from scheduling.engine.state.input import Holds, Nodes, Work
from scheduling.engine.state.nodes import NodeRoom, Seats
from scheduling.engine.state.roles import has_roles, has_segments, needs_segments
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, LATER, NOW


@inner
def place(world: Session, w: int, c: int, most: int, when: int) -> int:
    """Seat between ``work.least[w]`` and ``most`` members of ``w``, as ``place_between``."""
    return int(place_between(world, w, c, world.work.least[w], most, when))


@inner
def place_between(world: Session, w: int, c: int, least: int, most: int, when: int) -> int:
    """Seat between ``least`` and ``most`` members of ``w`` on nodes of class ``c``.

    Returns how many were seated, all of them in ``seats``; 0 leaves ``room`` as it was.
    """
    work = world.work
    if when != LATER and world.room.open[c] < least * work.need[GPUS, w]:
        return 0
    if has_roles(work, w):
        sat = place_roles(world, w, c, least, most, when)
    else:
        sat = 0
        if has_segments(work, w):
            sat = place_segments(world, w, c, least, most, when)
        if sat == 0 and not needs_segments(work, w):
            sat = _place_alike(world, w, c, least, most, when)
    if sat > 0 and when != LATER:
        take_open(world.room, c, sat * work.need[GPUS, w])
    return int(sat)


@inner
def _place_alike(world: Session, w: int, c: int, least: int, most: int, when: int) -> int:
    """The same for members that are alike and keep no segments."""
    work, index = world.work, world.index
    required = work.required[w]
    row = row_of(world, w, c, when)
    many, level, domain = min(most, index.total[row]), ANYWHERE, 0
    if many < least:
        return 0
    node = node_level(index)
    if required == node:
        level, domain = node, pick_node(world, row, c, most, ANYWHERE, 0)
        many = min(most, index.slots[row, index.domains.position[domain]])
    elif required != ANYWHERE:
        level = required
        domain, reach = pick_domain(world.nodes, world.index, row, level, least, most, ANYWHERE, 0)
        many = min(most, reach)
    if many < least:
        return 0
    for near in range(min(work.preferred[w], node - 1), required, -1):
        closest, reach = pick_domain(world.nodes, world.index, row, near, many, many, ANYWHERE, 0)
        if reach >= many:
            level, domain = near, closest
            break
    _seat(world, row, w, c, many, when, level, domain)
    return int(many)


@inner
def reach_of(world: Session, row: int, c: int, level: int, most: int) -> int:
    """The most of ``most`` members that one domain of ``level`` takes."""
    if level != node_level(world.index):
        _, reach = pick_domain(world.nodes, world.index, row, level, 1, most, ANYWHERE, 0)
        return int(min(most, reach))
    n = pick_node(world, row, c, most, ANYWHERE, 0)
    return int(min(most, world.index.slots[row, world.index.domains.position[n]])) if n >= 0 else 0


@inner
def is_free(room: NodeRoom, work: Work, seats: Seats, w: int, members: int) -> bool:
    """Whether the claimed seats are free at this moment; if so they are taken."""
    for i in range(members):
        if not fits_at(room, work, w, seats.node[i], seats.device[i], NOW):
            for k in range(i):
                take_now(room, work, w, seats.node[k], seats.device[k], -1)
            return False
        take_now(room, work, w, seats.node[i], seats.device[i], 1)
    return True


@inner
def sit_as_promised(work: Work, holds: Holds, room: NodeRoom, seats: Seats, w: int) -> int:
    """Claim again the seats that an earlier plan promised to ``w``; returns how many, 0 if they do not
    hold any more.
    """
    sat, h = 0, holds.head[w]
    while h >= 0:
        for _ in range(holds.members[h]):
            n, device = holds.node[h], holds.device[h]
            if not fits_at(room, work, w, n, device, LATER):
                for i in range(sat):
                    leave(room, work, w, seats.node[i], seats.device[i], 1)
                return 0
            sit(room, work, w, n, device, LATER)
            seats.node[sat], seats.device[sat] = n, device
            sat += 1
        h = holds.next[h]
    return sat


@inner
def best_domain(
    nodes: Nodes, seats: Seats, c: int, level: int, least: int, most: int
) -> tuple[int, int]:
    """The tightest domain of ``level`` that takes ``most`` members, else the one that takes most."""
    first, last = nodes.class_start[c], nodes.class_start[c + 1]
    top = 0
    for i in range(first, last):
        top = max(top, nodes.domain[level, nodes.of_class[i]])
    slots = np.zeros(top + 1, np.int64)
    for i in range(first, last):
        n = nodes.of_class[i]
        slots[nodes.domain[level, n]] += seats.slots[n]
    best = -1
    for d in range(top + 1):
        if slots[d] < least:
            continue
        if best < 0 or is_closer(slots[d], slots[best], most):
            best = d
    return (best, slots[best]) if best >= 0 else (-1, 0)


@inner
def _seat(
    world: Session, row: int, w: int, c: int, many: int, when: int, level: int, domain: int
) -> None:
    """Seat ``many`` members in the domain, which holds them, in few domains of the preferred level."""
    group, done = min(world.work.preferred[w], node_level(world.index) - 1), 0
    if many == 1 or group <= level or _takes_all(world, row, c, many, level, domain):
        fill_nodes(world, row, w, c, 0, many, when, level, domain)
        return
    while done < many:
        part, reach = pick_domain(
            world.nodes, world.index, row, group, 1, many - done, level, domain
        )
        end = done + min(many - done, reach)
        fill_nodes(world, row, w, c, done, end, when, group, part)
        done = end


@inner
def _takes_all(world: Session, row: int, c: int, many: int, level: int, domain: int) -> bool:
    """Whether one node of the domain takes all ``many``."""
    n = pick_node(world, row, c, many, level, domain)
    return bool(world.index.slots[row, world.index.domains.position[n]] >= many)
