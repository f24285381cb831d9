"""Whether a gang could ever start: on empty nodes, under the limits as they are."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.placement.place import best_domain
from scheduling.engine.placement.segments import most_by_segments
from scheduling.engine.state.input import Nodes, Work
from scheduling.engine.state.nodes import Seats
from scheduling.engine.state.roles import (
    has_roles,
    many_roles,
    members_in,
    needs_segments,
    shape_of,
)
from scheduling.engine.state.units import ANYWHERE, CPUS, GPUS, MEMORY

FITS_AT = 9
"""Of a row of what is known: the answer, behind its key."""


@inner
def fits_empty(nodes: Nodes, work: Work, seats: Seats, w: int, c: int) -> bool:
    """Whether the ready nodes of class ``c`` hold the gang's least members with nobody else there.

    Gangs of one shape give one answer, so answers are kept in a direct-mapped table: key, then 0 or 1.
    """
    known, need = seats.known, work.need
    shape = (
        c, need[GPUS, w], need[CPUS, w], need[MEMORY, w], work.least[w], work.required[w],
        work.where[w], work.beside[w], work.segment[w],
    )  # fmt: skip
    row = 0
    for part in shape:
        row = (row * 1000003 + part) & (known.shape[0] - 1)
    same = True
    for i in range(FITS_AT):
        same = same and known[row, i] == shape[i]
    if not same:
        for i in range(FITS_AT):
            known[row, i] = shape[i]
        known[row, FITS_AT] = _fits(work, nodes, seats, w, c)
    return known[row, FITS_AT] == 1


@inner
def _fits(work: Work, nodes: Nodes, seats: Seats, w: int, c: int) -> bool:
    if work.least[w] * work.need[GPUS, w] > nodes.capacity[c]:
        return False
    if has_roles(work, w):
        return _roles_fit(work, nodes, seats, w, c)
    total = 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        seats.slots[n] = slots_when_empty(nodes, work, w, n)
        total += seats.slots[n]
    if needs_segments(work, w):
        return most_by_segments(nodes, work, seats, w, c) >= work.least[w]
    if work.required[w] == ANYWHERE:
        return total >= work.least[w]
    _, many = best_domain(nodes, seats, c, work.required[w], work.least[w], work.least[w])
    return many >= work.least[w]


@inner
def _roles_fit(work: Work, nodes: Nodes, seats: Seats, w: int, c: int) -> bool:
    """Whether each role would fit alone, and has GPUs left beside the larger ones whose size it divides: what
    is refused could not start in any order.
    """
    level = work.required[w]
    for role in range(many_roles(work, w)):
        one, many = shape_of(work, w, role), members_in(work, w, role)
        beside = taken_by_larger(work, w, role)
        total = 0
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            n = nodes.of_class[i]
            seats.slots[n] = slots_when_empty(nodes, work, one, n)
            total += seats.slots[n]
        if total < many or not _is_left(work, nodes, one, c, many + beside):
            return False
        if level != ANYWHERE:
            _, fit = best_domain(nodes, seats, c, level, many, many)
            if fit < many:
                return False
    return True


@inner
def taken_by_larger(work: Work, w: int, role: int) -> int:
    """Members of that role that fit in the place of those before it, whose size is a multiple of theirs."""
    gpus, taken = work.need[GPUS, shape_of(work, w, role)], 0
    for k in range(role):
        larger = work.need[GPUS, shape_of(work, w, k)]
        taken += members_in(work, w, k) * (larger // gpus) if larger % gpus == 0 else 0
    return taken


@inner
def _is_left(work: Work, nodes: Nodes, one: int, c: int, many: int) -> bool:
    """Whether the nodes that it may use have GPUs for so ``many`` members."""
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if work.where[one] < 0 or nodes.allowed[work.where[one], n]:
            many -= nodes.size[GPUS, n] // work.need[GPUS, one]
    return many <= 0


@inner
def slots_when_empty(nodes: Nodes, work: Work, w: int, n: int) -> int:
    """Members of ``w`` that node ``n`` takes with nobody else there; none where it may not run."""
    if work.where[w] >= 0 and not nodes.allowed[work.where[w], n]:
        return 0
    gpus = work.need[GPUS, w]
    slots = work.most[w]
    if gpus >= ONE:
        slots = nodes.size[GPUS, n] // gpus
    elif gpus > 0:
        slots = nodes.size[GPUS, n] // ONE * (ONE // gpus)
    for r in range(CPUS, work.need.shape[0]):
        if work.need[r, w] > 0:
            slots = min(slots, nodes.size[r, n] // work.need[r, w])
    return max(slots, 0)
