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
from scheduling.engine.cycle.growth_line import empty_line, join, next_to_grow, strike
from scheduling.engine.eviction.regain import regain_member, settled_classes
from scheduling.engine.placement.node_index import free_to, row_of
from scheduling.engine.placement.node_room import free_of, rise, slots_on, take_open
from scheduling.engine.placement.segments import domain_at, seat_segments
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.quota.standing import GROWS, may_hold, owes, past_shares_of, standing
from scheduling.engine.quota.usage import charge
from scheduling.engine.reasons.figures import GROWTH
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Work, need_of
from scheduling.engine.state.nodes import Seats
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.roles import (
    elastic_shape,
    members_of_elastic,
    needs_segments,
    segment_size,
    unit_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, LATER, NOW, RUNNING, SPREADS
from scheduling.engine.statement.lines import decide, recall, seat_out, state_last
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
    work = world.work
    if not _anybody_elastic(work, world.out, world.ordering):
        return
    owed = _is_owed(world)
    ones = _elastic_ones(work, world.out, world.ordering, _parting(work, world.ordering))
    room_for, grown = int(world.seats.node.size), 0
    who, node = np.empty(room_for, np.int64), np.empty(room_for, np.int64)
    device = np.empty(room_for, np.int64)
    for turn in range(world.tree.depth.max() + 1):
        grown = _one_pass(world, turn, owed, ones, who, node, device, grown)
    _regain_all(world, owed, ones)
    for i in range(grown):
        if who[i] >= 0:
            _write_down(world, who, node, device, i, grown)


@inner
def _one_pass(
    world: Session, turn: int, owed: Flags, ones: Ints, who: Ints, node: Ints, device: Ints, grown: int,
) -> int:  # fmt: skip
    """Growth that passes shares at no more than ``turn`` levels: nobody borrows a member before everybody
    inside the share has all that fit. ``grown`` have their seats already; returns how many do then.
    """
    work, tree = world.work, world.tree
    line = empty_line(tree, work)
    for w in ones:
        if _may_grow(world, w, owed, turn, False):
            join(tree, work, line, w)
    while line.left[0] > 0 and grown < who.size:
        w = next_to_grow(tree, work, world.ranks, world.queues, line)
        # Others of the queue, or of queues beside it, may have taken what was left.
        may, before = _may_grow(world, w, owed, turn, False), grown
        whole = may and needs_segments(work, w)
        n = _node_for(world, w, who, node, grown) if may and not whole else -1
        if whole:
            grown = _add_segment(world, w, who, node, device, grown)
        elif n >= 0:
            grown = _add_member(world, w, n, who, node, device, grown)
        if grown == before:
            strike(tree, work, line, w)
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
def _may_grow(world: Session, w: int, owed: Flags, turn: int, later: bool) -> bool:
    """``out.members`` counts what it starts with, or has grown by, in this cycle; ``later``, once all that
    leaves is gone, what it claims as well.
    """
    tree, quotas, queues, work, out = world.tree, world.quotas, world.queues, world.work, world.out
    starts = out.action[w] == codes.ADMIT or (later and out.reason[w] == codes.AWAITS_VICTIMS)
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
    if (stands.late and not later) or not may_hold(stands, 0 if owed[c] else turn):
        return False
    holder = queues.reservations.slot[c]
    beside = need_of(work, holder) + gpus if holder >= 0 and work.queue[holder] == q else 0
    # A gang of the same queue that keeps nodes would lose them once this takes it past its share.
    if beside > 0 and past_shares_of(world, holder, c, beside)[0] > 0:
        return False
    return not owed[c] or owes(tree, quotas, queues, q, -1, c, gpus)


@inner
def _class_of(work: Work, out: Decisions, w: int) -> int:
    """On which it starts, or will by its claim, or runs."""
    begins = out.action[w] in (codes.ADMIT, codes.RESERVE)
    return out.gpu_class[w] if begins else work.gpu_class[w]


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
def _regain_all(world: Session, owed: Flags, ones: Ints) -> None:
    """Others give up at once what is owed to those that would grow by it in a later plan.

    On paper those that claim room by this plan have started, and all grow into what is free once what leaves
    is gone. For a claim of an earlier plan nobody more gives anything up.
    """
    work, tree, out = world.work, world.tree, world.out
    settled = settled_classes(work, out, world.ordering, world.room.open.size)
    line, before = empty_line(tree, work), out.members.copy()
    for w in ones:
        asks = settled[_class_of(work, out, w)] and not work.claims[w]
        if asks and _may_grow(world, w, owed, 0, True):
            join(tree, work, line, w)
    while line.left[0] > 0:
        w = next_to_grow(tree, work, world.ranks, world.queues, line)
        while _may_grow(world, w, owed, 0, True) and _adds_later(world, w):
            charge(world, w, _class_of(work, out, w), unit_of(work, w), False)
            out.members[w] += unit_of(work, w)
        strike(tree, work, line, w)
    for w in ones:
        if out.action[w] != codes.SHRINK and out.members[w] != before[w]:
            charge(world, w, _class_of(work, out, w), before[w] - out.members[w], False)
            out.members[w] = before[w]


@inner
def _adds_later(world: Session, w: int) -> bool:
    """Whether a member more finds a seat once what leaves is gone, or others give it up."""
    work, nodes, seats = world.work, world.nodes, world.seats
    c, one, level = _class_of(work, world.out, w), elastic_shape(work, w), work.required[w]
    home = _first_node(world.holds, world.out, w)
    for i in range(
        0 if needs_segments(work, w) else nodes.class_start[c], nodes.class_start[c + 1]
    ):
        n = nodes.of_class[i]
        inside = level == ANYWHERE or nodes.domain[level, n] == nodes.domain[level, home]
        if inside and slots_on(world.room, work, one, n, LATER) > 0:
            sit_member(
                world.room, work, w, work.elastic_role[w], n, seats.node, seats.device, 0, LATER
            )
            return True
    if not regain_member(world, w, c, home):
        return False
    if world.out.action[w] == codes.RESERVE:
        state_last(world.out, w)
    return True


@inner
def _first_node(holds: Holds, out: Decisions, w: int) -> int:
    """A node on which it sits, now or once it has started."""
    if out.action[w] in (codes.ADMIT, codes.RESERVE):
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
