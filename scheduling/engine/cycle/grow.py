"""Growing elastic gangs, those that run and those that have just started, into what nobody who waits can
use.

One member at a time (of unlike ones one of the elastic role, of segments a whole one), the neediest queue
first and inside it by the order of the pending, so equals grow alike. What was grown is the first to be given
back: shrinking precedes every eviction.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags, Ints
from scheduling.engine.eviction.regain import regain_member, settled_classes
from scheduling.engine.order.queues import neediest
from scheduling.engine.placement.node_index import free_to, row_of
from scheduling.engine.placement.node_room import free_of, rise, slots_on, take_open
from scheduling.engine.placement.segments import domain_at, seat_segments
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.quota.fair_share import sharer
from scheduling.engine.quota.standing import GROWS, may_hold, owes, past_shares_of, standing
from scheduling.engine.quota.usage import charge
from scheduling.engine.reasons.figures import GROWTH
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Ranks, Tree, Work, need_of
from scheduling.engine.state.nodes import Seats
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.roles import (
    elastic_shape,
    members_of_elastic,
    needs_segments,
    segment_size,
    unit_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, NOW, RUNNING, SPREADS
from scheduling.engine.statement.lines import decide, recall, seat_out
from scheduling.engine.statement.operations import tell_start


@inner
def _anybody_elastic(work: Work, out: Decisions, ordering: Ordering) -> bool:
    found = ordering.running.elastic > 0
    for k in range(out.size[0]):
        found = found or work.elastic[out.order[k]]
    return bool(found)


@inner
def grow_all(world: Session) -> None:
    """Elastic gangs below their most members, running or just admitted, grow as far as room and quota
    go: decides GROW for those that run, adds to the line of those that start.
    """
    work, room = world.work, world.room
    if not _anybody_elastic(work, world.out, world.ordering):
        return
    owed, settled = _is_owed(world), settled_classes(work, room, world.out, world.ordering)
    ones = _elastic_ones(work, world.out, world.ordering, _parting(work, world.ordering))
    room_for, grown = int(world.seats.node.size), 0
    who, node = np.empty(room_for, np.int64), np.empty(room_for, np.int64)
    device = np.empty(room_for, np.int64)
    for turn in range(world.tree.depth.max() + 1):
        grown = _one_pass(world, turn, owed, settled, ones, who, node, device, grown)
    for i in range(grown):
        if who[i] >= 0:
            _write_down(world, who, node, device, i, grown)


@inner
def _one_pass(
    world: Session, turn: int, owed: Flags, settled: Flags, ones: Ints, who: Ints, node: Ints,
    device: Ints, grown: int,
) -> int:  # fmt: skip
    """Growth that passes shares at no more than ``turn`` levels: nobody borrows a member before everybody
    inside the share has all that fit. ``grown`` have their seats already; returns how many do then.
    """
    work, tree, out = world.work, world.tree, world.out
    left = np.zeros(tree.parent.size, np.int64)
    first, after = np.full(left.size, -1, np.int64), np.empty(work.phase.size, np.int64)
    for w in ones:
        if _may_grow(world, w, owed, turn):
            _list(tree, first, after, left, sharer(tree, work.queue[w]), w)
    while left[0] > 0 and grown < who.size:
        q = neediest(tree, world.queues, left)
        w = _next_to_grow(work, world.ranks, world.queues, first[q], after)
        # Others of the queue, or of queues beside it, may have taken what was left.
        may, before = _may_grow(world, w, owed, turn), grown
        whole = may and needs_segments(work, w)
        n = _node_for(world, w, who, node, grown) if may and not whole else -1
        if whole:
            grown = _add_segment(world, w, who, node, device, grown)
        elif n >= 0:
            grown = _add_member(world, w, n, who, node, device, grown)
        if grown == before:
            if may and turn == 0 and settled[_class_of(work, out, w)]:
                _regain(world, w)
            _strike(first, after, q, w)
            _count(tree, left, q, -1)
    return grown


@inner
def _elastic_ones(work: Work, out: Decisions, ordering: Ordering, parting: Flags) -> Ints:
    """Gangs that may grow at all: those that run, and after them those with a line."""
    found, size = np.empty(ordering.running.size[0] + out.size[0], np.int64), 0
    for k in range(ordering.running.queue_begin[2], ordering.running.size[0]):
        w = ordering.running.slot[k]
        if work.elastic[w] and not parting[w]:
            found[size] = w
            size += 1
    for k in range(out.size[0]):
        if work.elastic[out.order[k]]:
            found[size] = out.order[k]
            size += 1
    return found[:size]


@inner
def _parting(work: Work, ordering: Ordering) -> Flags:
    """Gangs of which members still leave: what they have just given up they would only take again."""
    found = np.zeros(work.phase.size, np.bool_)
    for k in range(ordering.running.queue_begin[2], ordering.running.size[0]):
        w = ordering.running.slot[k]
        gang = work.part_of[w]
        if gang >= 0 and work.tie[gang] == work.evicted_for[w]:
            found[gang] = True
    return found


@inner
def _is_owed(world: Session) -> Flags:
    """Classes of which a gang inside its share waits for GPUs that are free, but scattered.

    A gang that grew into them past its own share or nominal would have its queue shrink for that gang in the
    next cycle.
    """
    nodes, work, room, index = world.nodes, world.work, world.room, world.index
    queues, found = world.queues, np.zeros(world.queues.reservations.slot.size, np.bool_)
    for c in range(found.size):
        for q in range(queues.usage.dominant_share.size):
            w = queues.turns.slot[c, q]
            if w < 0 or room.open[c] < need_of(work, w):
                continue
            if work.where[w] >= 0 and free_to(nodes, work, room, index, w, c)[0] < need_of(work, w):
                continue
            inside = past_shares_of(world, w, c, need_of(work, w))[0] == 0
            found[c] = found[c] or inside
    return found


@inner
def _list(tree: Tree, first: Ints, after: Ints, left: Ints, q: int, w: int) -> None:
    """``w`` joins those of queue ``q`` that may grow: ``first``, then ``after`` each, -1 ends."""
    after[w], first[q] = first[q], w
    _count(tree, left, q, 1)


@inner
def _strike(first: Ints, after: Ints, q: int, w: int) -> None:
    if first[q] == w:
        first[q] = after[w]
        return
    before = first[q]
    while after[before] != w:
        before = after[before]
    after[before] = after[w]


@inner
def _count(tree: Tree, left: Ints, q: int, one: int) -> None:
    while q >= 0:
        left[q] += one
        q = tree.parent[q]


@inner
def _may_grow(world: Session, w: int, owed: Flags, turn: int) -> bool:
    """``out.members`` counts what it starts with, or has grown by, in this cycle."""
    tree, quotas, queues, work, out = world.tree, world.quotas, world.queues, world.work, world.out
    starts = out.action[w] == codes.ADMIT
    runs = work.phase[w] == RUNNING and out.action[w] == codes.UNDECIDED
    if not work.elastic[w] or work.leaving[w] or not (starts or runs):
        return False
    unit = unit_of(work, w)
    if work.members[w] + out.members[w] + unit > work.most[w]:
        return False
    if runs and work.members[w] < work.least[w]:
        return False
    q, c, gpus = work.queue[w], _class_of(work, out, w), unit * work.need[GPUS, w]
    stands = standing(world, w, c, gpus, GROWS)
    if stands.late or not may_hold(stands, 0 if owed[c] else turn):
        return False
    return not owed[c] or owes(tree, quotas, queues, q, -1, c, gpus)


@inner
def _class_of(work: Work, out: Decisions, w: int) -> int:
    starts = out.action[w] == codes.ADMIT
    return out.gpu_class[w] if starts else work.gpu_class[w]


@inner
def _next_to_grow(work: Work, ranks: Ranks, queues: Queues, w: int, after: Ints) -> int:
    """The first in the order of ``w`` and all ``after`` it."""
    best = w
    while w >= 0:
        if _grows_before(work, ranks, queues, w, best):
            best = w
        w = after[w]
    return best


@inner
def _grows_before(work: Work, ranks: Ranks, queues: Queues, a: int, b: int) -> bool:
    """Priority value, least held by its user, who runs before who starts, started first, tie."""
    value, usage = ranks.value, queues.usage.user_weighted
    x, y = value[work.priority[a]], value[work.priority[b]]
    if x != y:
        return x > y
    if usage[work.user[a]] != usage[work.user[b]]:
        return usage[work.user[a]] < usage[work.user[b]]
    if work.phase[a] != work.phase[b]:
        return work.phase[a] == RUNNING
    if work.started[a] != work.started[b]:
        return work.started[a] < work.started[b]
    return work.tie[a] < work.tie[b]


@inner
def _node_for(world: Session, w: int, who: Ints, node: Ints, grown: int) -> int:
    """The node that takes one more member, in its domain if it needs one; -1 if none does.

    Ladder, as at the start: fewest members of its own where they sit apart; then the fullest, or the
    emptiest where the policy spreads; then the lowest name.
    """
    work, nodes, room = world.work, world.nodes, world.room
    c, one = _class_of(work, world.out, w), elastic_shape(work, w)
    level = work.required[w]
    home = _first_node(world.holds, world.out, w)
    own = _own_members(world, w, who, node, grown)
    sign = -1 if world.rules.spread_weight == SPREADS else 1
    best, fewest, least = -1, 0, 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if level != ANYWHERE and nodes.domain[level, n] != nodes.domain[level, home]:
            continue
        if slots_on(room, work, one, n, NOW) == 0:
            continue
        here, free = own[n] if own.size > 0 else 0, sign * free_of(room, GPUS, n, NOW)
        if best < 0 or here < fewest or (here == fewest and free < least):
            best, fewest, least = n, here, free
    return best


@inner
def _own_members(world: Session, w: int, who: Ints, node: Ints, grown: int) -> Ints:
    """Members of ``w`` by node with those it has grown by; nothing where it does not matter."""
    out, holds = world.out, world.holds
    if not world.ranks.apart[world.work.priority[w]]:
        return np.empty(0, np.int64)
    own = np.zeros(world.nodes.gpu_class.size, np.int64)
    starts = out.action[w] == codes.ADMIT
    started, h = out.members[w] if starts else 0, -1 if starts else holds.head[w]
    for i in range(grown):
        if who[i] == w:
            own[node[i]] += 1
            started -= 1
    for i in range(started):
        own[out.pool.node[out.pool.first[w] + i]] += 1
    while h >= 0:
        own[holds.node[h]] += holds.members[h]
        h = holds.next[h]
    return own


@inner
def _regain(world: Session, w: int) -> None:
    """Others give up for ``w`` what is owed to it. It holds none of that yet."""
    holds, out = world.holds, world.out
    work, c, members = world.work, _class_of(world.work, out, w), 0
    now, unit = work.members[w] + out.members[w], unit_of(work, w)
    while now + members < work.most[w] and regain_member(world, w, c, _first_node(holds, out, w)):
        charge(world, w, c, unit, False)
        members += unit
    if members > 0:
        charge(world, w, c, -members, False)


@inner
def _first_node(holds: Holds, out: Decisions, w: int) -> int:
    """A node on which it sits, now or once it has started."""
    if out.action[w] == codes.ADMIT:
        return out.pool.node[out.pool.first[w]]
    return holds.node[holds.head[w]]


@inner
def _add_member(
    world: Session, w: int, n: int, who: Ints, node: Ints, device: Ints, grown: int
) -> int:
    """``w`` grows by a member on ``n``; returns how many seats have grown then."""
    work = world.work
    if grown + unit_of(work, w) > who.size:
        return grown
    end = sit_member(world.room, work, w, work.elastic_role[w], n, node, device, grown, NOW)
    for i in range(grown, end):
        who[i] = w
    _note_growth(world, w, end - grown)
    return int(end)


@inner
def _note_growth(world: Session, w: int, seats: int) -> None:
    c = _class_of(world.work, world.out, w)
    take_open(world.room, c, seats * world.work.need[GPUS, w])
    charge(world, w, c, seats, not world.ranks.preemptible[world.work.priority[w]])
    world.out.members[w] += seats


@inner
def _add_segment(world: Session, w: int, who: Ints, node: Ints, device: Ints, grown: int) -> int:
    """``w`` grows by a segment, in its domain if it needs one; returns how many have grown then."""
    work, room, seats = world.work, world.room, world.seats
    c, size, level = _class_of(work, world.out, w), segment_size(work, w), work.required[w]
    domain = 0
    if level != ANYWHERE:
        domain = domain_at(world.nodes, world.index, level, _first_node(world.holds, world.out, w))
    row = row_of(world, w, c, NOW)
    end = seat_segments(world, row, w, c, 0, size, NOW, level, domain)
    if grown + end > who.size:
        for i in range(end):
            rise(room, work, w, seats.node[i], seats.device[i], NOW)
        return grown
    for i in range(end):
        who[grown + i], node[grown + i], device[grown + i] = w, seats.node[i], seats.device[i]
    _note_growth(world, w, end)
    return grown + end


@inner
def _write_down(
    world: Session, who: Ints, node: Ints, device: Ints, first: int, grown: int
) -> None:
    """The gang's whole placement: where it sits, then the seats it grew by, which are struck out."""
    holds, work, out, seats, w = world.holds, world.work, world.out, world.seats, who[first]
    starts = out.action[w] == codes.ADMIT
    total = 0 if starts else _recall_holds(holds, seats, w)
    if starts:
        total = _recall_start(seats, out, w, who, first, grown)
    for i in range(first, grown):
        if who[i] == w:
            seats.node[total], seats.device[total] = node[i], device[i]
            who[i] = -1
            total += 1
    if starts:
        out.members[w] = total
        tell_start(world, w, out.gpu_class[w])
    else:
        c, usage = work.gpu_class[w], world.queues.usage.gpus
        decide(out, w, codes.GROW, codes.GROWS, c, total)
        q, figures = work.queue[w], out.figures
        out.blame[w], figures[w, GROWTH.holds] = q, usage[c, q]
        figures[w, GROWTH.members] = members_of_elastic(work, w, work.members[w])
        figures[w, GROWTH.members_after] = members_of_elastic(work, w, total)
        figures[w, GROWTH.members_max] = members_of_elastic(work, w, work.most[w])
    seat_out(out, seats, w, total)


@inner
def _recall_start(seats: Seats, out: Decisions, w: int, who: Ints, first: int, grown: int) -> int:
    """The seats with which it starts; returns how many."""
    for i in range(first, grown):
        if who[i] == w:
            out.members[w] -= 1
    return recall(out, seats, w)


@inner
def _recall_holds(holds: Holds, seats: Seats, w: int) -> int:
    """The seats on which it runs; returns how many."""
    total, h = 0, holds.head[w]
    while h >= 0:
        for _ in range(holds.members[h]):
            seats.node[total], seats.device[total] = holds.node[h], holds.device[h]
            total += 1
        h = holds.next[h]
    return total
