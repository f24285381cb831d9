"""Where the members of a gang go (DESIGN 3.4): pack, spread, and topology domains.

Pack: the gang goes to the fullest node that takes all of it; a gang no node can take goes to the
nodes that take most of it, its remainder to the fullest that fits. Spread: every member to the node
with most room. Ties go to the lowest name, so the order of rows decides nothing.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import (
    ANYWHERE,
    GPUS,
    LATER,
    NOW,
    Holds,
    Nodes,
    Room,
    Rules,
    Seats,
    Work,
)
from scheduling.engine.compiled import inner, once
from scheduling.engine.seating import fits_at, free_of, leave, pick_device, sit, slots_on, take_now


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
def is_free(room: Room, work: Work, seats: Seats, w: int, members: int) -> bool:
    """Whether the claimed seats are free at this moment; if so they are taken."""
    for i in range(members):
        if not fits_at(room, work, w, seats.node[i], seats.device[i], NOW):
            for k in range(i):
                take_now(room, work, w, seats.node[k], seats.device[k], -1)
            return False
        take_now(room, work, w, seats.node[i], seats.device[i], 1)
    return True


@inner
def sit_as_promised(work: Work, holds: Holds, room: Room, seats: Seats, w: int) -> int:
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
    if when != LATER:
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
