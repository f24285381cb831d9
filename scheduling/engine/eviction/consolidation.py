"""Moving others so that a gang sits on GPUs that are free but scattered, or free in the wrong domain.

Nobody moves who is not seated again at once, on GPUs that are free now. A move interrupts and restarts
its workload like an eviction: it counts as lost work, in the eviction budgets and in the cap, and min run
time forbids it; so does the cooldown, from its last start or move on. It needs no excess, because nobody's
share changes. Only workloads that sit on one node and do not outrank the gang move, at most
``Policy.max_moves`` of them. Those whose shares lie on one GPU may clear it.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags, Ints
from scheduling.engine.eviction.free_seats import by_domain, clear_node
from scheduling.engine.eviction.minimal_set import passes_all
from scheduling.engine.eviction.rules import (
    RECLAIM,
    STRICT,
    VictimRequest,
    asking,
    for_role,
    in_budget,
    shielded_until,
)
from scheduling.engine.eviction.victim_order import order_node
from scheduling.engine.placement.node_index import row_of, shut
from scheduling.engine.placement.node_room import (
    ONE,
    free_of,
    leave,
    may_use,
    slots_on,
    touch_machine,
)
from scheduling.engine.placement.place import place
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.quota.limits import may_evict
from scheduling.engine.quota.standing import GROWS, STARTS, may_hold, standing
from scheduling.engine.state.input import Holds, Work, gpus_of, need_of
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.roles import (
    has_roles,
    many_roles,
    members_in,
    needs_segments,
    parts_of,
    segment_level,
    segment_size,
    shape_of,
    unit_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, LATER, NOW
from scheduling.engine.statement.lines import seat_out
from scheduling.engine.statement.statement import (
    MOVES,
    begin,
    how_many,
    lift,
    mark,
    redo_one,
    squeeze,
    strike,
    undo,
    undo_all,
    undo_one,
    unseat,
)

MOST_DOMAINS = 8
"""Domains of a required level that are tried, those with most free GPUs first."""
MOST_TRIES = 8
"""Nodes that are tried though those who left the ones before did not all find room."""
ANY_GPU = -1
"""In place of the one shared GPU that is cleared: anyone on the node may leave."""


@inner
def consolidate(world: Session, w: int, c: int) -> bool:
    """Moves after which the least members of ``w`` fit and have claimed their seats, in the log; or False."""
    work, need = world.work, need_of(world.work, w)
    if world.room.open[c] < need:
        return False
    stands = standing(world, w, c, need, STARTS)
    if stands.late or not may_hold(stands, 0):
        return False
    return _clear_some(world, asking(work, w, c, RECLAIM, 0, False, STRICT), False)


@inner
def move_beside_victims(world: Session, request: VictimRequest) -> bool:
    """The same where those who may go for ``search`` are in its way as well: what is chosen passes the tests
    of victims alone.
    """
    if not _clear_some(world, request, True):
        return False
    if passes_all(world, request):
        return True
    unseat(world.work, world.room, world.seats, request.w, world.work.least[request.w])
    undo_all(world)
    return False


@inner
def _clear_some(world: Session, request: VictimRequest, evicts: bool) -> bool:
    """On any nodes, or in one domain of the required level."""
    nodes, level = world.nodes, world.work.required[request.w]
    among = nodes.of_class[nodes.class_start[request.c] : nodes.class_start[request.c + 1]]
    if level == ANYWHERE:
        return _clear(world, request, among, evicts)
    order, start = by_domain(nodes, among, level)
    tried = np.zeros(start.size - 1, np.bool_)
    for _ in range(min(MOST_DOMAINS, tried.size)):
        d = _freest(world.work, world.room, request.w, order, start, tried)
        tried[d] = True
        if _clear(world, request, order[start[d] : start[d + 1]], evicts):
            return True
    return False


@inner
def _freest(work: Work, room: NodeRoom, w: int, order: Ints, start: Ints, tried: object) -> int:
    best, most = -1, -1
    for d in range(start.size - 1):
        free = 0
        for i in range(start[d], start[d + 1]):
            if may_use(room, work, w, order[i]):
                free += max(0, free_of(room, GPUS, order[i], LATER))
        if not tried[d] and free > most:  # type: ignore[index]
            best, most = d, free
    return best


@inner
def _clear(world: Session, request: VictimRequest, among: Ints, evicts: bool) -> bool:
    """Seat the least members on these nodes, moving others away where there is no room."""
    work, room, seats, candidates = world.work, world.room, world.seats, world.candidates
    w, least = request.w, work.least[request.w]
    node, device = np.empty(least, np.int64), np.empty(least, np.int64)
    begin(world.queues, candidates)
    sat = 0
    if needs_segments(work, w):
        sat = _clear_segments(world, request, among, evicts, node, device)
    for role in range(0 if needs_segments(work, w) else many_roles(work, w)):
        end = sat + members_in(work, w, role) * parts_of(work, w, role)
        of_role = for_role(request, shape_of(work, w, role))
        sat = _clear_for(world, of_role, role, among, evicts, node, device, sat, end, MOST_TRIES)
        if sat < end:
            break
    for i in range(sat):
        seats.node[i], seats.device[i] = node[i], device[i]
    if sat == least and how_many(candidates) > 0:
        return True
    unseat(work, room, seats, w, sat)
    undo_all(world)
    return False


@inner
def _clear_segments(
    world: Session, request: VictimRequest, among: Ints, evicts: bool, node: Ints, device: Ints
) -> int:
    """Seat segment by segment: first those that find room, then those for which others have to move, the
    domains with most free GPUs first. Returns how many sit.
    """
    work, w, sat = world.work, request.w, 0
    least, size = work.least[w], segment_size(work, w)
    order, start = by_domain(world.nodes, among, segment_level(work, w))
    for moves in (False, True):
        tried = np.zeros(start.size - 1, np.bool_)
        for _ in range(min(MOST_DOMAINS, tried.size) if moves else tried.size):
            d = _freest(work, world.room, w, order, start, tried)
            tried[d], end = True, -1
            while sat < least and sat != end:
                end, before = sat, mark(world.candidates)
                inside = order[start[d] : start[d + 1]]
                sat = _clear_for(
                    world, request, 0, inside, evicts, node, device, sat, sat + size,
                    MOST_TRIES if moves else 0,
                )  # fmt: skip
                if sat < end + size:
                    for i in range(end, sat):
                        leave(world.room, work, w, node[i], device[i], 1)
                    undo(world, before)
                    sat = end
    return sat


@inner
def _clear_for(
    world: Session,
    request: VictimRequest,
    role: int,
    among: Ints,
    evicts: bool,
    node: Ints,
    device: Ints,
    sat: int,
    end: int,
    most_tries: int,
) -> int:
    """Seat members of one role until ``end`` seats are taken; returns how many are. Others move for it as
    long as fewer than ``most_tries`` nodes were tried in vain.
    """
    room, work, w, tries = world.room, world.work, request.w, 0
    barred = np.zeros(room.gpu_class.size, np.bool_)
    for n in among:
        while sat < end and slots_on(room, work, request.seat, n, LATER) > 0:
            sat = sit_member(room, work, w, role, n, node, device, sat, LATER)
    while sat < end and tries < most_tries:
        n, d = _easiest(world, request, among, barred, evicts)
        before, first = mark(world.candidates), sat
        if n < 0 or not _lift(world, request, n, d, evicts):
            break
        sat = sit_member(room, work, w, role, n, node, device, sat, LATER)
        if not _resettle(world, request.c, n, before):
            for i in range(first, sat):
                leave(room, work, w, n, device[i], 1)
            sat = first
            undo(world, before)
            barred[n] = True
            tries += 1
    return sat


@inner
def _easiest(
    world: Session, request: VictimRequest, among: Ints, barred: Flags, evicts: bool
) -> tuple[int, int]:
    """The node, and the shared GPU on it or ANY_GPU, where fewest GPUs have to move for one seat; lowest
    name on ties; node -1 if none.
    """
    room, gpus = world.room, world.work.need[GPUS, request.seat]
    best, which, fewest = -1, ANY_GPU, -1
    devices = room.shared_later.shape[1] if 0 < gpus <= ONE else 0
    for n in among:
        if not may_use(room, world.work, request.seat, n):
            continue
        for d in range(ANY_GPU, devices):
            if barred[n] or (d >= 0 and room.shared_later[n, d] <= 0):
                continue
            free = ONE - room.shared_later[n, d] if d >= 0 else free_of(room, GPUS, n, LATER)
            if best >= 0 and gpus - free >= fewest:
                continue
            moved = _gpus_to_move(world, request, n, d, evicts)
            if moved >= 0 and (best < 0 or moved < fewest):
                best, which, fewest = n, d, moved
    return best, which


@inner
def _gpus_to_move(world: Session, request: VictimRequest, n: int, d: int, evicts: bool) -> int:
    before = mark(world.candidates)
    gpus = world.queues.search.evicted[0]
    fits = _lift(world, request, n, d, evicts)
    gpus = world.queues.search.evicted[0] - gpus
    undo(world, before)
    return int(gpus) if fits else -1


@inner
def _lift(world: Session, request: VictimRequest, n: int, d: int, evicts: bool) -> bool:
    """Movable workloads leave node ``n``, least work lost first, until one seat fits; whether it does.
    Only those on GPU ``d`` and those without GPUs, if it is not ANY_GPU. Where ``evicts``, all that may go
    for ``search`` goes first, but for elastic gangs.
    """
    work, order = world.work, world.candidates.order
    w, candidates, before, moved = request.seat, world.candidates, mark(world.candidates), 0
    order_node(work, world.room, candidates, n)
    if evicts and clear_node(world, request, n, True, False):
        _let_stay(world, w, n, before)
        return True
    for k in range(candidates.log.first, before):
        moved += candidates.log.part[k] == MOVES
    for k in range(order.node_begin[n], order.node_end[n]):
        v = order.node_slot[k]
        beside = d != ANY_GPU and world.holds.device[world.holds.head[v]] != d
        if beside and work.need[GPUS, v] > 0:
            continue
        if moved == world.rules.max_moves or not _may_move(world, request, v):
            continue
        lift(world, v)
        moved += 1
        if slots_on(world.room, work, w, n, LATER) > 0:
            _let_stay(world, w, n, before)
            return True
    return False


@inner
def _let_stay(world: Session, w: int, n: int, before: int) -> None:
    """Of those lifted from number ``before`` on, whoever leaves the seat room enough stays, dearest first."""
    candidates = world.candidates
    for k in range(candidates.log.size - 1, before - 1, -1):
        undo_one(world, k)
        if slots_on(world.room, world.work, w, n, LATER) > 0:
            strike(candidates, k)
        else:
            redo_one(world, k)
    squeeze(candidates, before)


@inner
def _may_move(world: Session, request: VictimRequest, v: int) -> bool:
    tree, ranks, rules, queues = world.tree, world.ranks, world.rules, world.queues
    w, c, work, value = request.w, request.c, world.work, ranks.value
    gpus, decided = gpus_of(work, v), world.out.action[v] != codes.UNDECIDED
    decided = decided or work.claims[v]
    if world.candidates.log.leaves[v] or decided or not _sits_together(work, world.holds, v):
        return False
    outranks = value[work.priority[v]] > value[work.priority[w]]
    if outranks or not in_budget(tree, queues, work.queue[v], gpus):
        return False
    until = shielded_until(tree, work, ranks, rules, world.candidates, request, v)
    if rules.now < max(work.started[v] + rules.cooldown, until):
        return False
    capped = queues.search.evicted[0] + gpus > may_evict(work, rules, w, request.need)
    if capped or standing(world, v, c, gpus, GROWS).late:
        return False
    return bool(world.index.total[row_of(world, v, c, NOW)] >= work.members[v])


@inner
def _shut_to(world: Session, v: int, c: int, n: int) -> None:
    """No member of ``v`` finds room on ``n``, until that is touched."""
    work = world.work
    shut(world.nodes, world.index, row_of(world, v, c, NOW), n)
    for role in range(many_roles(work, v) if has_roles(work, v) else 0):
        shut(world.nodes, world.index, row_of(world, shape_of(work, v, role), c, NOW), n)


@inner
def _sits_together(work: Work, holds: Holds, v: int) -> bool:
    """Whether ``v`` sits on one node, its shares of GPUs on one GPU; of unlike members nobody is missing but
    those that it can do without.
    """
    h = holds.head[v]
    if not has_roles(work, v):
        return bool(holds.next[h] < 0)
    extra, n = work.members[v] - work.least[v], holds.node[h]
    while h >= 0:
        if holds.node[h] != n:
            return False
        h = holds.next[h]
    return bool(extra >= 0 and extra % unit_of(work, v) == 0)


@inner
def _resettle(world: Session, c: int, n: int, first: int) -> bool:
    """Seat those taken off node ``n``, from number ``first`` on, elsewhere now: all of them, or nobody.

    Only a share of a GPU may stay on its node: the GPU that it left has no room for it any more.
    """
    candidates, work, out, seats = world.candidates, world.work, world.out, world.seats
    for k in range(first, candidates.log.size):
        if candidates.log.part[k] != MOVES:
            continue
        v = candidates.log.slot[k]
        shares = 0 < work.need[GPUS, v] < ONE
        if not shares:
            _shut_to(world, v, c, n)
        members = place(world, v, c, work.members[v], NOW)
        if not shares:
            touch_machine(world.room, n)
        seat_out(out, seats, v, members)
        out.members[v] = members
        if members < work.members[v]:
            return False
    return True
