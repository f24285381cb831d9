"""Where the members of a gang go (DESIGN 3.4): pack, spread, and topology domains.

Pack: the gang goes to the fullest node that takes all of it; a gang no node can take goes to the
nodes that take most of it, its remainder to the fullest that fits. Spread: every member to the node
with most room. Ties go to the lowest name, so the order of rows decides nothing.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import ANYWHERE, GPUS, NOW, Nodes, Room, Rules, Seats, Work
from scheduling.engine.compiled import inner, once
from scheduling.engine.seating import free_of, pick_device, sit, slots_on


@inner
def place(
    work: Work,
    nodes: Nodes,
    room: Room,
    rules: Rules,
    seats: Seats,
    w: int,
    c: int,
    most: int,
    when: int,
) -> int:
    """Seat between ``work.least[w]`` and ``most`` members of ``w`` on nodes of class ``c``.

    Returns how many were seated, all of them in ``seats``; 0 leaves ``room`` as it was.
    """
    least = work.least[w]
    if when == NOW and room.open[c] < least * work.need[GPUS, w]:
        return 0
    total = _count_slots(work, nodes, room, seats, w, c, when)
    if total < least:
        return 0
    if work.required[w] != ANYWHERE:
        level = work.required[w]
        domain, many = best_domain(nodes, seats, c, level, least, most)
        if many < least:
            return 0
        _seat(work, nodes, room, rules, seats, w, c, min(most, many), when, level, domain)
        return min(most, many)
    level, domain, many = ANYWHERE, 0, total
    for near in range(work.preferred[w], ANYWHERE, -1):
        domain, reach = best_domain(nodes, seats, c, near, least, most)
        if reach >= min(most, total):
            level, many = near, reach
            break
    _seat(work, nodes, room, rules, seats, w, c, min(most, many), when, level, domain)
    return min(most, many)


@inner
def _count_slots(
    work: Work, nodes: Nodes, room: Room, seats: Seats, w: int, c: int, when: int
) -> int:
    total = 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        seats.slots[n] = slots_on(room, work, w, n, when)
        total += seats.slots[n]
    return total


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
        if best < 0 or _closer(slots[d], slots[best], most):
            best = d
    return (best, slots[best]) if best >= 0 else (-1, 0)


@once
def _closer(slots: int, best: int, most: int) -> bool:
    if slots >= most:
        return best < most or slots < best
    return slots > best


@inner
def _seat(
    work: Work,
    nodes: Nodes,
    room: Room,
    rules: Rules,
    seats: Seats,
    w: int,
    c: int,
    many: int,
    when: int,
    level: int,
    domain: int,
) -> None:
    """Seat ``many`` members; ``seats.slots`` says that they fit."""
    done = 0
    while done < many:
        if rules.spread:
            n, take = _roomiest(nodes, room, seats, c, when, level, domain), 1
        else:
            n = _tightest(nodes, room, seats, c, many - done, when, level, domain)
            take = min(many - done, seats.slots[n])
        seats.slots[n] -= take
        for _ in range(take):
            device = pick_device(room, work, w, n, when)
            sit(room, work, w, n, device, when)
            seats.node[done], seats.device[done] = n, device
            done += 1
    if when == NOW:
        room.open[c] -= many * work.need[GPUS, w]


@inner
def _tightest(
    nodes: Nodes, room: Room, seats: Seats, c: int, left: int, when: int, level: int, domain: int
) -> int:
    """The fullest node that takes all that is ``left``, else the one that takes most of it."""
    best, best_slots, best_free = -1, 0, 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        slots = min(seats.slots[n], left)
        if slots == 0 or (level != ANYWHERE and nodes.domain[level, n] != domain):
            continue
        free = free_of(room, GPUS, n, when)
        if best < 0 or slots > best_slots or (slots == best_slots and free < best_free):
            best, best_slots, best_free = n, slots, free
    return best


@inner
def _roomiest(
    nodes: Nodes, room: Room, seats: Seats, c: int, when: int, level: int, domain: int
) -> int:
    best, best_free = -1, 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if seats.slots[n] == 0 or (level != ANYWHERE and nodes.domain[level, n] != domain):
            continue
        free = free_of(room, GPUS, n, when)
        if best < 0 or free > best_free:
            best, best_free = n, free
    return best
