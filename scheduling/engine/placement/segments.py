"""Where a gang goes that keeps so many members at a time inside one domain of a level.

Room is counted in whole segments: of a domain's seats the largest multiple of the segment's size. Members
are alike, so a gang finds its segments wherever enough of them are counted, and none is tried in vain.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.placement.node_index import node_level, row_of
from scheduling.engine.placement.unlike import fill_nodes
from scheduling.engine.state.input import Nodes, Work
from scheduling.engine.state.nodes import NodeIndex, Seats
from scheduling.engine.state.roles import segment_level, segment_size
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE


@inner
def place_segments(world: Session, w: int, c: int, least: int, most: int, when: int) -> int:
    """Seat between ``least`` and ``most`` members of ``w`` in whole segments, all of them in one domain of
    the required level and in one of the closest that it prefers and that holds them. Returns how many were
    seated, all of them in ``seats``; 0 leaves ``room`` as it was.
    """
    work, index = world.work, world.index
    size, fine, required = segment_size(work, w), segment_level(work, w), work.required[w]
    most -= most % size
    row = row_of(world, w, c, when)
    if most < least or index.total[row] < least:
        return 0
    domain, reach = _best_of(
        world.nodes, world.index, row, c, size, fine, required, most, ANYWHERE, 0
    )
    many, level = min(most, reach), required
    if many < least or many == 0:
        return 0
    for near in range(min(work.preferred[w], fine), required, -1):
        closest, reach = _best_of(
            world.nodes, world.index, row, c, size, fine, near, many, required, domain
        )
        if reach >= many:
            level, domain = near, closest
            break
    done = 0
    while done < many:
        done = seat_segments(world, row, w, c, done, many, when, level, domain)
    return int(many)


@inner
def seat_segments(
    world: Session,
    row: int,
    w: int,
    c: int,
    done: int,
    end: int,
    when: int,
    level: int,
    domain: int,
) -> int:
    """Seat members from ``done`` on in the domain of the segment's level that takes most of them up to
    ``end``, the tightest that takes all; inside ``domain``. Returns how many sit then: ``done`` where there
    is no room for a segment.
    """
    size, fine = segment_size(world.work, w), segment_level(world.work, w)
    part, reach = _best_of(
        world.nodes, world.index, row, c, size, fine, fine, end - done, level, domain
    )
    end = done + min(end - done, reach)
    if end > done:
        fill_nodes(world, row, w, c, done, end, when, fine, part)
    return int(end)


@inner
def reach_by_segments(nodes: Nodes, work: Work, index: NodeIndex, row: int, w: int, c: int) -> int:
    """The most members that sit in whole segments inside one domain of the required level."""
    size, fine, level = segment_size(work, w), segment_level(work, w), work.required[w]
    _, reach = _best_of(nodes, index, row, c, size, fine, level, work.least[w], ANYWHERE, 0)
    return int(reach)


@inner
def _best_of(
    nodes: Nodes, index: NodeIndex, row: int, c: int, size: int, fine: int, level: int, most: int,
    above: int, whole: int,
) -> tuple[int, int]:  # fmt: skip
    """The tightest domain of ``level`` that takes ``most`` members in segments, else the one that takes
    most, and how many; among equals the one with fewest seats beside them, then the first. With ``above``
    not ANYWHERE, only domains inside ``whole`` of that level. (-1, 0) if none takes a segment.
    """
    slots, inside = _seats_by_domain(nodes, index, row, c, fine)
    reach, seats = np.zeros_like(slots), np.zeros_like(slots)
    for d in range(slots.size):
        n = inside[d]
        if slots[d] == 0 or (above != ANYWHERE and domain_at(nodes, index, above, n) != whole):
            continue
        at = 0 if level == ANYWHERE else domain_at(nodes, index, level, n)
        reach[at] += slots[d] // size * size
        seats[at] += slots[d]
    best = -1
    for d in range(reach.size):
        if reach[d] > 0 and (best < 0 or _is_closer(reach, seats, d, best, most)):
            best = d
    return (best, reach[best]) if best >= 0 else (-1, 0)


@inner
def domain_at(nodes: Nodes, index: NodeIndex, level: int, n: int) -> int:
    """The domain of node ``n``; at their own level nodes are their own."""
    return n if level == node_level(index) else nodes.domain[level, n]


@inner
def _seats_by_domain(
    nodes: Nodes, index: NodeIndex, row: int, c: int, level: int
) -> tuple[Ints, Ints]:
    """Seats on nodes of class ``c`` by domain of the level, and a node of each."""
    if level == node_level(index):
        slots = np.zeros(nodes.gpu_class.size, np.int64)
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            n = nodes.of_class[i]
            slots[n] = index.slots[row, index.domains.position[n]]
        return slots, np.arange(slots.size)
    first, last = index.domains.base[level], index.domains.base[level + 1]
    some = np.empty(last - first, np.int64)
    for d in range(some.size):
        some[d] = index.domains.member[level, index.domains.begin[level, d]]
    return index.inside[row, first:last], some


@inner
def _is_closer(reach: Ints, seats: Ints, d: int, best: int, most: int) -> bool:
    if reach[d] != reach[best]:
        if reach[d] >= most:
            return reach[best] < most or reach[d] < reach[best]
        return reach[d] > reach[best]
    return seats[d] < seats[best]


@inner
def most_by_segments(nodes: Nodes, work: Work, seats: Seats, w: int, c: int) -> int:
    """The most members in whole segments inside one domain of the required level, of ``seats.slots``."""
    level = work.required[w]
    fine, size = segment_level(work, w), segment_size(work, w)
    if nodes.gpu_class.size == 0:
        return 0
    slots = np.zeros(nodes.domain[fine].max() + 1, np.int64)
    around = np.zeros(slots.size, np.int64)
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        slots[nodes.domain[fine, n]] += seats.slots[n]
        around[nodes.domain[fine, n]] = 0 if level == ANYWHERE else nodes.domain[level, n]
    return most_around(slots, around, size)


@inner
def most_around(slots: Ints, around: Ints, size: int) -> int:
    """Of domains with so many ``slots``, the most that those inside one of ``around`` take in segments."""
    reach = np.zeros(around.max() + 1, np.int64)
    for d in range(slots.size):
        reach[around[d]] += slots[d] // size * size
    return int(reach.max())
