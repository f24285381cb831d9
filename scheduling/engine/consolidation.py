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
from scheduling.engine.admission import fills_what_leaves, need_of, quota_allows, start_or_promise
from scheduling.engine.arrays import ANYWHERE, GPUS, LATER, MOVED, NOW, Flags, Ints
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import RECLAIM, STRICT, Hunt, in_budget, shielded_until, spend
from scheduling.engine.index import row_of, shut
from scheduling.engine.ladder import order_node
from scheduling.engine.needed import squeeze, unseat
from scheduling.engine.placement import place
from scheduling.engine.prey import gpus_of
from scheduling.engine.prospects import forget_failures, weigh_out
from scheduling.engine.record import decide, note_coming, quote, seat_out
from scheduling.engine.seating import (
    ONE,
    free_of,
    leave,
    occupy,
    pick_device,
    sit,
    slots_on,
    stay,
    touch_machine,
)
from scheduling.engine.victims import by_domain
from scheduling.engine.world import World

MOST_DOMAINS = 8
"""Domains of a required level that are tried, those with most free GPUs first."""
MOST_TRIES = 8
"""Nodes that are tried though those who left the ones before did not all find room."""
ANY_GPU = -1
"""In place of the one shared GPU that is cleared: anyone on the node may leave."""


@inner
def consolidate(world: World, w: int, c: int) -> bool:
    """Decide moves after which the least members of ``w`` fit, and promise them the room; or False."""
    need, q = need_of(world, w), world.work.queue[w]
    if world.room.open[c] < need:
        return False
    if not quota_allows(world, w, c, need, 0) or fills_what_leaves(world, q, c, need):
        return False
    nodes, level = world.nodes, world.work.required[w]
    among = nodes.of_class[nodes.class_start[c] : nodes.class_start[c + 1]]
    if level == ANYWHERE:
        return _clear(world, w, c, among)
    order, start = by_domain(nodes, among, level)
    tried = np.zeros(start.size - 1, np.bool_)
    for _ in range(min(MOST_DOMAINS, tried.size)):
        d = _freest(world, order, start, tried)
        tried[d] = True
        if _clear(world, w, c, order[start[d] : start[d + 1]]):
            return True
    return False


@once
def _freest(world: World, order: Ints, start: Ints, tried: object) -> int:
    best, most = -1, -1
    for d in range(start.size - 1):
        free = 0
        for i in range(start[d], start[d + 1]):
            free += max(0, free_of(world.room, GPUS, order[i], LATER))
        if not tried[d] and free > most:  # type: ignore[index]
            best, most = d, free
    return best


@inner
def _clear(world: World, w: int, c: int, among: Ints) -> bool:
    """Seat the least members on these nodes, moving others away where there is no room."""
    least, prey = world.work.least[w], world.prey
    node, device = np.empty(least, np.int64), np.empty(least, np.int64)
    prey.count[0] = world.book.spent[0] = 0
    pool, sat, tries = world.out.used[1], 0, 0
    barred = np.zeros(world.room.kind.size, np.bool_)
    for n in among:
        while sat < least and slots_on(world.room, world.work, w, n, LATER) > 0:
            sat = _take_seat(world, w, n, node, device, sat)
    while sat < least and tries < MOST_TRIES:
        n, d = _easiest(world, w, c, among, barred)
        before = prey.count[0]
        if n < 0 or not _lift(world, w, c, n, d):
            break
        sat = _take_seat(world, w, n, node, device, sat)
        if not _resettle(world, c, n, before):
            sat -= 1
            leave(world.room, world.work, w, n, device[sat], 1)
            _put_down(world, before)
            barred[n] = True
            tries += 1
    for i in range(sat):
        world.seats.node[i], world.seats.device[i] = node[i], device[i]
    if sat == least and prey.count[0] > 0:
        _carry_out(world, w, c)
        return True
    unseat(world.work, world.room, world.seats, w, sat)
    _undo(world, c)
    world.out.used[1] = pool
    return False


@once
def _take_seat(world: World, w: int, n: int, node: Ints, device: Ints, sat: int) -> int:
    node[sat], device[sat] = n, pick_device(world.room, world.work, w, n, LATER)
    sit(world.room, world.work, w, n, device[sat], LATER)
    return sat + 1


@inner
def _easiest(world: World, w: int, c: int, among: Ints, barred: Flags) -> tuple[int, int]:
    """The node, and the shared GPU on it or ANY_GPU, where fewest GPUs have to move for one seat; lowest
    name on ties; node -1 if none.
    """
    room, gpus = world.room, world.work.need[GPUS, w]
    best, which, fewest = -1, ANY_GPU, -1
    devices = room.shared_later.shape[1] if 0 < gpus <= ONE else 0
    for n in among:
        for d in range(ANY_GPU, devices):
            if barred[n] or (d >= 0 and room.shared_later[n, d] <= 0):
                continue
            free = ONE - room.shared_later[n, d] if d >= 0 else free_of(room, GPUS, n, LATER)
            if best >= 0 and gpus - free >= fewest:
                continue
            moved = _gpus_to_move(world, w, c, n, d)
            if moved >= 0 and (best < 0 or moved < fewest):
                best, which, fewest = n, d, moved
    return best, which


@inner
def _gpus_to_move(world: World, w: int, c: int, n: int, d: int) -> int:
    before = world.prey.count[0]
    gpus = world.book.spent[0]
    fits = _lift(world, w, c, n, d)
    gpus = world.book.spent[0] - gpus
    _put_down(world, before)
    return int(gpus) if fits else -1


@inner
def _lift(world: World, w: int, c: int, n: int, d: int) -> bool:
    """Movable workloads leave node ``n``, least work lost first, until one seat fits; whether it does.
    Only those on GPU ``d`` and those without GPUs, if it is not ANY_GPU.
    """
    prey, before = world.prey, world.prey.count[0]
    order_node(world, n)
    for k in range(prey.start[n], prey.stop[n]):
        v = prey.on_node[k]
        beside = d != ANY_GPU and world.holds.device[world.holds.head[v]] != d
        if beside and world.work.need[GPUS, v] > 0:
            continue
        if prey.count[0] == world.rules.max_moves or not _may_move(world, w, c, v):
            continue
        _take_off(world, v)
        prey.picked[prey.count[0]], prey.part[prey.count[0]] = v, -1
        prey.count[0] += 1
        if slots_on(world.room, world.work, w, n, LATER) > 0:
            _let_stay(world, w, n, before)
            return True
    return False


@once
def _let_stay(world: World, w: int, n: int, before: int) -> None:
    """Of those lifted from number ``before`` on, whoever leaves the seat room enough stays, dearest first."""
    prey = world.prey
    for k in range(prey.count[0] - 1, before - 1, -1):
        v = prey.picked[k]
        _put_on(world, v)
        if slots_on(world.room, world.work, w, n, LATER) > 0:
            prey.picked[k] = -1
        else:
            _take_off(world, v)
    squeeze(prey, before)


@inner
def _take_off(world: World, v: int) -> None:
    h = world.holds.head[v]
    leave(
        world.room, world.work, v, world.holds.node[h], world.holds.device[h], world.work.members[v]
    )
    spend(world, v, gpus_of(world.work, v))
    world.prey.chosen[v] = True


@inner
def _put_on(world: World, v: int) -> None:
    """Undo ``_take_off``."""
    h = world.holds.head[v]
    stay(
        world.room, world.work, v, world.holds.node[h], world.holds.device[h], world.work.members[v]
    )
    spend(world, v, -gpus_of(world.work, v))
    world.prey.chosen[v] = False


@inner
def _put_down(world: World, keep: int) -> None:
    """Undo ``_lift`` for all but the first ``keep``."""
    prey = world.prey
    while prey.count[0] > keep:
        prey.count[0] -= 1
        _put_on(world, prey.picked[prey.count[0]])


@inner
def _may_move(world: World, w: int, c: int, v: int) -> bool:
    work, out, value = world.work, world.out, world.ranks.value
    h, gpus = world.holds.head[v], gpus_of(work, v)
    if world.prey.chosen[v] or out.action[v] != codes.UNDECIDED or world.holds.next[h] >= 0:
        return False
    if value[work.priority[v]] > value[work.priority[w]] or not in_budget(
        world, work.queue[v], gpus
    ):
        return False
    hunt = Hunt(w, c, RECLAIM, 0, False, STRICT, need_of(world, w))
    rested = work.started[v] + world.rules.cooldown
    if world.rules.now < max(rested, shielded_until(world, hunt, v)):
        return False
    capped = world.book.spent[0] + gpus > world.rules.eviction_cap * hunt.need
    if capped or fills_what_leaves(world, work.queue[v], c, gpus):
        return False
    return bool(world.index.total[row_of(world, v, c, NOW)] >= work.members[v])


@inner
def _resettle(world: World, c: int, n: int, first: int) -> bool:
    """Seat those taken off node ``n``, from number ``first`` on, elsewhere now: all of them, or nobody."""
    work, out, seats = world.work, world.out, world.seats
    for k in range(first, world.prey.count[0]):
        v = world.prey.picked[k]
        shut(world, row_of(world, v, c, NOW), n)
        members = place(world, v, c, work.members[v], NOW)
        touch_machine(world.room, n)
        seat_out(out, seats, v, members)
        out.members[v] = members
        if members < work.members[v]:
            for i in range(first, k + 1):
                _stand_up(world, world.prey.picked[i], c)
            return False
    return True


@inner
def _stand_up(world: World, v: int, c: int) -> None:
    """Give back the new seats of ``v``."""
    out = world.out
    for i in range(out.first[v], out.first[v] + out.members[v]):
        occupy(world.room, world.work, v, out.pool_node[i], out.pool_device[i], -1)
    world.room.open[c] += out.members[v] * world.work.need[GPUS, v]
    out.members[v] = 0


@once
def _undo(world: World, c: int) -> None:
    for k in range(world.prey.count[0]):
        _stand_up(world, world.prey.picked[k], c)
    _put_down(world, 0)


@once
def _carry_out(world: World, w: int, c: int) -> None:
    work, out, prey = world.work, world.out, world.prey
    for k in range(prey.count[0]):
        v = prey.picked[k]
        gpus = gpus_of(work, v)
        decide(out, v, codes.MOVE, codes.CONSOLIDATES, c, work.members[v])
        quote(out, v, work.queue[v], gpus, need_of(world, w), prey.count[0], 0.0)
        out.rival[v], out.lost[v] = w, prey.lost[v]
        note_coming(world, v, gpus)
        weigh_out(world, v)
    out.served[w] = True
    world.book.rounds[MOVED] += prey.count[0]
    forget_failures(world, c)
    start_or_promise(world, w, c, work.least[w])
    if out.action[w] == codes.RESERVE:
        out.figures[w, 4] = prey.count[0]
