"""Holding nodes for the gang of a class that was submitted first of those that are owed GPUs and do not fit.

EASY backfilling (Lifka, JSSPP 1995) with run times at the policy's quantile: the gang gets the nodes that
are expected to have room for it first, and what comes after it may use them only if it is over by then; all
other nodes are open to everybody. Where nobody knows when running work ends, the gang gets the nodes nearest
to having room, once it has waited ``reserve_after_s``. One gang a GPU class holds nodes in a cycle.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.turns import expected_end
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.sort import order_of
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.placement.never_fits import slots_when_empty, taken_by_larger
from scheduling.engine.placement.node_room import free_of, leave, may_use, sit
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.reasons.figures import FREE_KEPT
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Nodes, Rules, Work
from scheduling.engine.state.nodes import NodeRoom, Seats
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.roles import (
    has_roles,
    many_roles,
    members_in,
    needs_segments,
    segment_level,
    segment_size,
    shape_of,
    unit_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, LATER, NOW
from scheduling.engine.statement.lines import TURNS, changed, seat_out
from scheduling.engine.statement.statement import unseat

LACKS_ROOM = (
    codes.NO_FREE_GPUS, codes.FRAGMENTED, codes.NO_ROOM_IN_TOPOLOGY, codes.NO_ROOM_FOR_SEGMENTS,
    codes.NO_ROOM_ON_ITS_NODES,
)  # fmt: skip


@inner
def backfills(work: Work, rules: Rules, queues: Queues, w: int, c: int) -> bool:
    """Whether ``w`` would be over before the nodes reserved on class ``c`` are expected to be free."""
    if queues.reservations.slot[c] < 0:
        return False
    return rules.now + work.ends_within[w] <= queues.reservations.until_s[c] < np.inf


@inner
def reserve(world: Session, w: int, c: int) -> bool:
    """Claim the least members of ``w`` on class ``c``; its wait becomes a reservation, unless a
    protection is what it waits for. False if it has to wait longer for that.
    """
    work, rules, shielded = world.work, world.rules, world.out.reason[w] == codes.VICTIMS_PROTECTED
    known = world.ordering.running.predicted_in_all > 0 or shielded
    if not known and not _waited(work, rules, w):
        return False
    free, most = _free_and_most(world.nodes, work, world.room, w, c)
    domain, until = _when_it_fits(world, w, c, free, most)
    out, queues, level = world.out, world.queues, work.required[w]
    if until == np.inf and level != ANYWHERE:
        domain = _emptiest_domain(world.nodes, work, world.room, w, c, level)
    if until == np.inf and shielded:
        until = out.until[w]
    if until == np.inf and not _waited(work, rules, w):
        return False
    claim = _claim(world, w, c, domain, free, most)
    if claim < 0:
        return False
    restore_reservation(queues, c, w, work.least[w])
    queues.reservations.until_s[c] = until
    out.action[w] = codes.RESERVE
    changed(world.candidates, world.shapes, TURNS, c, work.queue[w])
    if out.reason[w] in LACKS_ROOM:
        out.figures[w, FREE_KEPT.kept_for_it] = claim
        out.reason[w] = codes.RESERVED
        out.until[w] = until if until < np.inf else 0.0
    return True


@inner
def _waited(work: Work, rules: Rules, w: int) -> bool:
    """Long enough to be held nodes without knowing when they are free."""
    return rules.now >= work.submitted[w] + rules.reserve_after


@inner
def let_nodes_go(work: Work, room: NodeRoom, queues: Queues, out: Decisions) -> None:
    """Nobody holds nodes any more."""
    for c in range(queues.reservations.slot.size):
        let_nodes_of(work, room, queues, out, c)
        queues.reservations.slot[c] = -1


@inner
def let_nodes_of(work: Work, room: NodeRoom, queues: Queues, out: Decisions, c: int) -> None:
    """The gang that keeps nodes of class ``c`` claims none of them, until ``hold_nodes_again``."""
    w = queues.reservations.slot[c]
    for i in range(queues.reservations.members[c] if w >= 0 else 0):
        seat = out.pool.first[w] + i
        leave(room, work, w, out.pool.node[seat], out.pool.device[seat], 1)


@inner
def hold_nodes_again(work: Work, room: NodeRoom, queues: Queues, out: Decisions, c: int) -> None:
    w = queues.reservations.slot[c]
    for i in range(queues.reservations.members[c] if w >= 0 else 0):
        seat = out.pool.first[w] + i
        sit(room, work, w, out.pool.node[seat], out.pool.device[seat], LATER)


@inner
def _free_and_most(nodes: Nodes, work: Work, room: NodeRoom, w: int, c: int) -> tuple[Ints, Ints]:
    """By node GPUs nobody claims, and by role and node members of ``w`` that the empty node takes."""
    size, roles = nodes.gpu_class.size, many_roles(work, w)
    free, most = np.zeros(size, np.int64), np.zeros((roles, size), np.int64)
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        free[n] = max(0, room.free_later[GPUS, n])
        for role in range(roles):
            most[role, n] = slots_when_empty(nodes, work, shape_of(work, w, role), n)
    return free, most


@inner
def _when_it_fits(world: Session, w: int, c: int, free: Ints, most: Ints) -> tuple[int, float]:
    """Let running work end in the expected order, adding to ``free``, until the gang fits; returns the
    domain of its required level (0 without) and the moment, infinite if some ends are unknown.
    """
    work, nodes, holds, level = world.work, world.nodes, world.holds, _counted_by(world.work, w)
    domains = 1 if level == ANYWHERE else nodes.domain[level].max() + 1
    slots = np.zeros((most.shape[0], domains), np.int64)
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        _add_slots(work, w, slots, free, most, n, _domain_of(nodes, level, n), 1)
    around = _domains_around(nodes, work, w, c)
    at, ending = _ends(work, world.rules, world.ordering, c)
    for k in order_of(at):
        v, until = ending[k], at[k]
        h = holds.head[v]
        while h >= 0:
            n = holds.node[h]
            d = _domain_of(nodes, level, n)
            _add_slots(work, w, slots, free, most, n, d, -1)
            free[n] += holds.members[h] * work.need[GPUS, v]
            _add_slots(work, w, slots, free, most, n, d, 1)
            d = around[d] if around.size > 0 else d
            if _are_enough(work, w, slots, around, d):
                return d, until
            h = holds.next[h]
    return 0, np.inf


@inner
def _counted_by(work: Work, w: int) -> int:
    """The level by whose domains its slots are counted."""
    return segment_level(work, w) if needs_segments(work, w) else work.required[w]


@inner
def _domains_around(nodes: Nodes, work: Work, w: int, c: int) -> Ints:
    """By domain of the level of its segments that of the required level, 0 without; nothing where it keeps
    none.
    """
    if not needs_segments(work, w):
        return np.empty(0, np.int64)
    fine, level = segment_level(work, w), work.required[w]
    around = np.full(nodes.domain[fine].max() + 1, -1, np.int64)
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        around[nodes.domain[fine, n]] = _domain_of(nodes, level, n)
    return around


@inner
def _domain_of(nodes: Nodes, level: int, n: int) -> int:
    return 0 if level == ANYWHERE else nodes.domain[level, n]


@inner
def _add_slots(
    work: Work, w: int, slots: Ints, free: Ints, most: Ints, n: int, d: int, sign: int
) -> None:
    """Count, or take off, what fits on node ``n`` of domain ``d``, by role."""
    for role in range(most.shape[0]):
        gpus = work.need[GPUS, shape_of(work, w, role)]
        slots[role, d] += sign * min(most[role, n], free[n] // gpus)


@inner
def _are_enough(work: Work, w: int, slots: Ints, around: Ints, d: int) -> bool:
    """Whether domain ``d`` has as many slots as the least members take: in segments, of those inside it."""
    if around.size > 0:
        unit, seats = unit_of(work, w), 0
        for inside in range(around.size):
            if around[inside] == d:
                seats += slots[0, inside] // unit * unit
        return bool(seats >= work.least[w])
    for role in range(slots.shape[0]):
        if slots[role, d] < members_in(work, w, role) + taken_by_larger(work, w, role):
            return False
    return True


@inner
def _ends(work: Work, rules: Rules, ordering: Ordering, c: int) -> tuple[Floats, Ints]:
    """Expected ends of the work that runs on class ``c``, of those that are predicted."""
    at = np.empty(ordering.running.size[0])
    ending = np.empty(ordering.running.size[0], np.int64)
    size = 0
    for k in range(ordering.running.size[0]):
        v = ordering.running.slot[k]
        if work.gpu_class[v] == c and work.ends_within[v] < np.inf and not work.leaving[v]:
            at[size], ending[size] = expected_end(work, rules, v), v
            size += 1
    return at[:size], ending[:size]


@inner
def _claim(world: Session, w: int, c: int, domain: int, free: Ints, most: Ints) -> int:
    """Claim the least members on the nodes with most room at the expected moment; returns how many of
    their GPUs are free already, -1 if they do not fit.
    """
    room, work, nodes, level = world.room, world.work, world.nodes, world.work.required[w]
    sat, total, left = 0, 0, nodes.size.copy()
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if level != ANYWHERE and nodes.domain[level, n] != domain:
            for role in range(most.shape[0]):
                most[role, n] = 0
    seats = world.seats
    if needs_segments(work, w):
        return _claim_segments(room, work, nodes, seats, world.out, w, c, free, most[0])
    for role in range(most.shape[0]):
        one = shape_of(work, w, role)
        gpus, many = work.need[GPUS, one], members_in(work, w, role)
        while many > 0:
            n = _roomiest(nodes, c, free, most[role], gpus)
            if n < 0:
                unseat(work, room, seats, w, sat)
                return -1
            fit = most[role, n]
            take = min(many, fit if free[n] < gpus else min(fit, free[n] // gpus))
            total += max(0, min(free_of(room, GPUS, n, NOW), take * gpus))
            for _ in range(take):
                sat = _sit_on_any(room, work, seats, w, role, n, sat)
            many -= take
            _use_up(work, w, free, most, left, role, n, take)
    seat_out(world.out, seats, w, sat)
    return total


@inner
def _claim_segments(
    room: NodeRoom, work: Work, nodes: Nodes, seats: Seats, out: Decisions, w: int, c: int,
    free: Ints, most: Ints,
) -> int:  # fmt: skip
    """The same segment by segment, each in the domain of its level with most room at the moment."""
    size, gpus, sat, total = segment_size(work, w), work.need[GPUS, w], 0, 0
    while sat < work.least[w]:
        domain = _roomiest_domain(nodes, c, segment_level(work, w), free, most, gpus, size)
        if domain < 0:
            unseat(work, room, seats, w, sat)
            return -1
        inside = _most_inside(nodes, segment_level(work, w), domain, most)
        end = sat + size
        while sat < end:
            n = _roomiest(nodes, c, free, inside, gpus)
            total += max(0, min(free_of(room, GPUS, n, NOW), gpus))
            sat = _sit_on_any(room, work, seats, w, 0, n, sat)
            most[n], inside[n], free[n] = most[n] - 1, inside[n] - 1, max(0, free[n] - gpus)
    seat_out(out, seats, w, sat)
    return total


@inner
def _most_inside(nodes: Nodes, level: int, domain: int, most: Ints) -> Ints:
    """``most`` by node where it lies in ``domain`` of the level, else 0."""
    inside = np.zeros(most.size, np.int64)
    for n in range(most.size):
        if nodes.domain[level, n] == domain:
            inside[n] = most[n]
    return inside


@inner
def _roomiest_domain(
    nodes: Nodes, c: int, level: int, free: Ints, most: Ints, gpus: int, size: int
) -> int:
    """Of the domains that could hold a segment the one with most seats at the moment, the lowest on ties."""
    could = np.zeros(nodes.domain[level].max() + 1, np.int64)
    seats = np.zeros(could.size, np.int64)
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        could[nodes.domain[level, n]] += most[n]
        seats[nodes.domain[level, n]] += min(most[n], free[n] // gpus)
    best = -1
    for d in range(could.size):
        if could[d] >= size and (best < 0 or seats[d] > seats[best]):
            best = d
    return best


@inner
def _sit_on_any(
    room: NodeRoom, work: Work, seats: Seats, w: int, role: int, n: int, sat: int
) -> int:
    """The next member sits on ``n``, a share of a GPU on no certain one; returns how many seats are taken."""
    if has_roles(work, w):
        return sit_member(room, work, w, role, n, seats.node, seats.device, sat, LATER)
    sit(room, work, w, n, -1, LATER)
    seats.node[sat], seats.device[sat] = n, -1
    return sat + 1


@inner
def _use_up(
    work: Work, w: int, free: Ints, most: Ints, left: Ints, role: int, n: int, take: int
) -> None:
    """``take`` members of the role sit on node ``n``: no more of them, and of later roles what is left."""
    one = shape_of(work, w, role)
    most[role, n] = 0
    free[n] = max(0, free[n] - take * work.need[GPUS, one])
    for r in range(left.shape[0]):
        left[r, n] -= take * work.need[r, one]
        for later in range(role + 1, most.shape[0]):
            need = work.need[r, shape_of(work, w, later)]
            if need > 0:
                most[later, n] = min(most[later, n], max(0, left[r, n]) // need)


@inner
def _roomiest(nodes: Nodes, c: int, free: Ints, most: Ints, gpus: int) -> int:
    """Most members at the moment, then most free GPUs, lowest name on ties."""
    best, best_slots = -1, -1
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if most[n] == 0:
            continue
        slots = min(most[n], free[n] // gpus)
        if best < 0 or slots > best_slots or (slots == best_slots and free[n] > free[best]):
            best, best_slots = n, slots
    return best


@inner
def _emptiest_domain(nodes: Nodes, work: Work, room: NodeRoom, w: int, c: int, level: int) -> int:
    """The domain that could hold the gang and has most free GPUs, lowest name on ties."""
    first, last, fine = nodes.class_start[c], nodes.class_start[c + 1], _counted_by(work, w)
    size, around = nodes.domain[level].max() + 1, _domains_around(nodes, work, w, c)
    free = np.zeros(size, np.int64)
    slots = np.zeros((many_roles(work, w), nodes.domain[fine].max() + 1), np.int64)
    for i in range(first, last):
        n = nodes.of_class[i]
        if may_use(room, work, w, n):
            free[nodes.domain[level, n]] += room.free_later[GPUS, n]
        for role in range(many_roles(work, w)):
            one = shape_of(work, w, role)
            slots[role, nodes.domain[fine, n]] += slots_when_empty(nodes, work, one, n)
    best = -1
    for d in range(size):
        if _are_enough(work, w, slots, around, d) and (best < 0 or free[d] > free[best]):
            best = d
    return best


@inner
def clear_reservations(queues: Queues) -> None:
    """Nobody keeps nodes."""
    queues.reservations.slot.fill(-1)


@inner
def restore_reservation(queues: Queues, c: int, holder: int, members: int) -> None:
    """``holder`` keeps nodes of class ``c`` for so many members, as it did."""
    queues.reservations.slot[c], queues.reservations.members[c] = holder, members


@inner
def forget_reservation(queues: Queues, c: int) -> None:
    """Nobody keeps nodes of class ``c``."""
    queues.reservations.slot[c] = -1
