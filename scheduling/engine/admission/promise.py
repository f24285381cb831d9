"""Step 2: those with a claim, for whom others leave, or left, by an earlier plan.

All of them claim their seats again before anybody starts. Then each, in line, starts where there is room for
it now: on its seats, whoever else still leaves their nodes (safe, as all of them fit together), or on any
other GPUs of the class that nobody claims; what still leaves for it is then free for others. Those whose own
victims are gone go first. A workload that finds none keeps its claim, whatever shares, turns and arrivals say
by now. It lapses only where its seats are gone, where people took it away, or where it is overdue.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.reserve import hold_nodes_again, let_nodes_of
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.sort import order_of
from scheduling.engine.compile.structs import Flags, Floats, Ints
from scheduling.engine.placement.node_room import sit, take_open
from scheduling.engine.placement.place import is_free, place_between, sit_as_promised
from scheduling.engine.placement.unlike import all_fit
from scheduling.engine.quota.standing import CLAIMS, PAST_NOMINAL, standing
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Work
from scheduling.engine.state.nodes import NodeRoom, Seats
from scheduling.engine.state.order import PendingSlots, RunningSlots
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, LATER, NOW
from scheduling.engine.statement.lines import recall, seat_out, take_back
from scheduling.engine.statement.operations import (
    admit,
    charge_promise,
    note_first_promised,
    promise,
)
from scheduling.engine.statement.statement import unseat


@inner
def seat_the_promised(world: Session) -> None:
    ordering = world.ordering
    if ordering.pending.promised == 0:
        return
    item = _in_line(ordering.pending, world.work.claims)
    item = _own_room_first(world.work, ordering.running, item)
    for w in item:
        _claim(world.work, world.holds, world.room, world.seats, world.out, w)
    # A start elsewhere leaves seats to others, who are asked once more.
    while _start_some(world, item, codes.UNDECIDED):
        pass
    for w in item:
        if world.out.members[w] > 0 and world.out.action[w] == codes.UNDECIDED:
            _wait_or_lapse(world, w)


@inner
def start_the_promised(world: Session) -> bool:
    """Whether anybody who claims room by now starts at once, as by step 2 of the next plan: on what is free
    beside the seats of the other claims, whose own free GPUs are kept for nobody meanwhile, nor are nodes.
    """
    work, room, out, queues, some = world.work, world.room, world.out, world.queues, False
    if not (queues.starts.first_promised >= 0).any():
        return False
    for c in range(queues.reservations.slot.size):
        let_nodes_of(work, room, queues, out, c)
    item = _in_line(world.ordering.pending, out.reason == codes.AWAITS_VICTIMS)
    item = _own_room_first(work, world.ordering.running, item)
    for w in item:
        charge_promise(world, w, -1, False)
    while _start_some(world, item, codes.RESERVE):
        some = True
    for w in item:
        if out.action[w] == codes.RESERVE:
            charge_promise(world, w, 1, True)
        else:
            note_first_promised(queues, out, out.gpu_class[w])
    for c in range(queues.reservations.slot.size):
        hold_nodes_again(work, room, queues, out, c)
    return some


@inner
def _in_line(pending: PendingSlots, claims: Flags) -> Ints:
    """Those who wait and have a claim, in line."""
    found, size = np.empty(pending.size[0], np.int64), 0
    for k in range(pending.size[0]):
        if claims[pending.slot[k]]:
            found[size] = pending.slot[k]
            size += 1
    return found[:size]


@inner
def _own_room_first(work: Work, running: RunningSlots, item: Ints) -> Ints:
    """Those whose own victims are all gone, in line, before those who wait for what still leaves: whoever
    takes a claim's room before it has others to wait for in its place, and may be one that left for it.
    """
    waits, order, size = np.ones(item.size, np.bool_), np.empty(item.size, np.int64), 0
    tie = np.empty(item.size)
    for i in range(item.size):
        waits[i], tie[i] = work.taken[item[i]] == 0, work.tie[item[i]]
    by_tie = order_of(tie)
    for k in range(running.size[0]):
        v = running.slot[k]
        i = _first_from(tie, by_tie, work.evicted_for[v]) if work.leaving[v] else item.size
        if i < item.size and tie[by_tie[i]] == work.evicted_for[v]:
            waits[by_tie[i]] = True
    for later in range(2):
        for i in range(item.size):
            if waits[i] == later:
                order[size] = item[i]
                size += 1
    return order


@inner
def _first_from(keys: Floats, order: Ints, key: float) -> int:
    """The first position in ``order``, by which ``keys`` ascend, whose key is not below ``key``."""
    low, high = 0, order.size
    while low < high:
        middle = (low + high) // 2
        if keys[order[middle]] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _claim(work: Work, holds: Holds, room: NodeRoom, seats: Seats, out: Decisions, w: int) -> None:
    """Sit down on the claimed seats, for later; ``out.members`` says how many, 0 where the claim lapses."""
    if out.action[w] != codes.UNDECIDED:
        out.lapsed[w] = _settled(out, w)
        return
    members = sit_as_promised(work, holds, room, seats, w)
    if members == 0:
        out.lapsed[w] = codes.SEATS_GONE
        return
    seat_out(out, seats, w, members)
    out.members[w], out.gpu_class[w] = members, work.gpu_class[w]


@inner
def _settled(out: Decisions, w: int) -> int:
    """Why a claim lapses whose workload cannot start whatever happens: the nodes, or people."""
    nodes = out.reason[w] == codes.NEVER_FITS and out.blame[w] < 0
    return codes.SEATS_GONE if nodes or out.reason[w] == codes.NO_SUCH_CLASS else codes.TAKEN_AWAY


@inner
def _start_some(world: Session, item: Ints, state: int) -> bool:
    """Whether anybody does whose action is ``state``."""
    work, out, some = world.work, world.out, False
    for w in item:
        if out.members[w] == 0 or out.action[w] != state:
            continue
        c, members = out.gpu_class[w], recall(out, world.seats, w)
        stands = standing(world, w, c, members * work.need[GPUS, w], CLAIMS)
        if stands.late or stands.says >= PAST_NOMINAL:
            continue
        if _finds_seats(world, w, c, members):
            if state == codes.RESERVE:
                take_back(out, w)
            admit(world, w, c, members)
            some = True
    return some


@inner
def _finds_seats(world: Session, w: int, c: int, members: int) -> bool:
    """Whether ``w`` has taken ``members`` seats that are free now: its own, else others of the class."""
    room, work, seats = world.room, world.work, world.seats
    gpus = members * work.need[GPUS, w]
    if is_free(room, work, seats, w, members):
        take_open(room, c, gpus)
        return True
    if room.open[c] < gpus:
        return False
    unseat(work, room, seats, w, members)
    is_wide = all_fit(world, w, c, members, NOW)
    if is_wide and place_between(world, w, c, members, members, NOW) == members:
        return True
    recall(world.out, seats, w)
    for i in range(members):
        sit(room, work, w, seats.node[i], seats.device[i], LATER)
    return False


@inner
def _wait_or_lapse(world: Session, w: int) -> None:
    """Its claim stands until its victims are gone, unless people took it away or it is overdue."""
    work, out, rules = world.work, world.out, world.rules
    c, members = work.gpu_class[w], recall(out, world.seats, w)
    # Shares, and what others keep back, take no claim away; quota does once a grace is over.
    if standing(world, w, c, members * work.need[GPUS, w], CLAIMS).says >= PAST_NOMINAL:
        out.lapsed[w] = codes.TAKEN_AWAY
    elif rules.now >= work.room_due[w] + rules.claim_hold:
        out.lapsed[w] = codes.OVERDUE
    out.members[w] = 0
    if out.lapsed[w] < 0:
        promise(world, w, c, members)
    else:
        unseat(work, world.room, world.seats, w, members)
