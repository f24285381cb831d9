"""The final set of victims: who is not needed is put back, and the tests are repeated on the others."""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import ANYWHERE, EPS, GPUS, LATER, Room, Seats, Work
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import (
    BOTH,
    CAP,
    PREEMPT,
    Hunt,
    held_by,
    put_back,
    still_above,
    take_again,
)
from scheduling.engine.prey import Prey
from scheduling.engine.seating import leave, pick_device, sit, slots_on
from scheduling.engine.sorting import order_of
from scheduling.engine.standing import inside_nominal, levels_over, takes_kept
from scheduling.engine.world import World


@inner
def unseat(work: Work, room: Room, seats: Seats, w: int, sat: int) -> None:
    """Undo the claims of the first ``sat`` seats."""
    for i in range(sat):
        leave(room, work, w, seats.node[i], seats.device[i], 1)


@inner
def lacks_quota(world: World, hunt: Hunt, q: int) -> bool:
    """With the workload, ``q`` would be above its limit, or above what it is entitled to."""
    held = world.book.held[hunt.c, q] + hunt.need
    return bool(held > world.quotas.cap[hunt.c, q] or not is_entitled(world, hunt, q, 0))


@inner
def is_entitled(world: World, hunt: Hunt, q: int, gain: int) -> bool:
    """Whether ``q``, on the way from the workload up, may hold it as well where both kinds of victims leave,
    ``gain`` milli-GPU more of them: inside its fair share, and inside its nominal for what is owed. Reclaim
    alone starts below that, and preempt alone needs no entitlement.
    """
    if hunt.rule < BOTH or world.tree.depth[q] <= world.tree.depth[hunt.top]:
        return True
    more = hunt.need - gain
    if world.book.held[hunt.c, q] + more > world.division.fair[hunt.c, q] + EPS:
        return False
    if hunt.rule == BOTH:
        return True
    return inside_nominal(world, q, _child_to(world, hunt, q), hunt.c, more)


@once
def _child_to(world: World, hunt: Hunt, q: int) -> int:
    """The child of ``q`` on the way from the workload, -1 in its leaf."""
    kid, up = -1, world.work.queue[hunt.w]
    while up != q:
        kid, up = up, world.tree.parent[up]
    return kid


@once
def price_of(world: World, k: int) -> float:
    """Work lost; among equals fewer GPUs, at the price of a second each. A member given up costs less
    than any eviction, and nothing where its gang is evicted as well.
    """
    prey, work = world.prey, world.work
    v = prey.picked[k]
    if prey.part[k] < 0:
        return prey.lost[v] + held_by(world, v) / 1000.0
    return 0.0 if prey.chosen[v] else work.need[GPUS, v] / 1e9


@inner
def squeeze(prey: Prey, before: int) -> None:
    """Close the gaps (-1) in the list of the chosen."""
    end = before
    for k in range(before, prey.count[0]):
        if prey.picked[k] >= 0:
            prey.picked[end], prey.part[end] = prey.picked[k], prey.part[k]
            end += 1
    prey.count[0] = end


@inner
def put_needless_back(world: World, hunt: Hunt) -> None:
    """Put back, dearest first, every victim without whom seats and limits hold."""
    prey = world.prey
    price = np.empty(prey.count[0])
    for k in range(price.size):
        price[k] = -price_of(world, k)
    for k in order_of(price):
        v = prey.picked[k]
        if prey.part[k] >= 0 and prey.chosen[v]:
            continue
        put_back(world, k)
        if _seats_hold(world, v) and _quota_holds(world, hunt):
            prey.picked[k] = -1
        else:
            take_again(world, k)
    squeeze(prey, 0)


@once
def _seats_hold(world: World, v: int) -> bool:
    """No node of ``v`` is promised twice."""
    holds, room = world.holds, world.room
    h = holds.head[v]
    while h >= 0:
        n, d = holds.node[h], holds.device[h]
        for r in range(3):
            if room.later[r, n] < 0:
                return False
        if d >= 0 and room.shared_later[n, d] > 1000:
            return False
        h = holds.next[h]
    return True


@once
def _quota_holds(world: World, hunt: Hunt) -> bool:
    q = world.work.queue[hunt.w]
    while q > 0:
        if lacks_quota(world, hunt, q):
            return False
        q = world.tree.parent[q]
    return True


@once
def is_within_cap(world: World, hunt: Hunt) -> bool:
    """The eviction cap, asked for all victims together."""
    if hunt.overlook == CAP or world.book.spent[0] <= world.rules.eviction_cap * hunt.need:
        return True
    world.book.forbidden[CAP] = 1
    return False


@inner
def is_still_fair(world: World, hunt: Hunt) -> bool:
    """The tests again, on the final set: nothing kept back taken, no victim inside its share."""
    q = world.work.queue[hunt.w]
    over = levels_over(world.tree, world.book, world.division, q, hunt.c, hunt.need)
    if over > 0 and takes_kept(world, q, hunt.c, hunt.need) >= 0:
        return False
    if hunt.rule == PREEMPT:
        return True
    for k in range(world.prey.count[0]):
        if not _may_stay_gone(world, hunt, k):
            return False
    return True


@once
def _may_stay_gone(world: World, hunt: Hunt, k: int) -> bool:
    merged = world.prey.part[k] >= 0 and world.prey.chosen[world.prey.picked[k]]
    return bool(merged or still_above(world, hunt, k))


@inner
def do_without(world: World, hunt: Hunt) -> None:
    """Put back victims that a larger one made needless: other members sit in the room it leaves."""
    prey = world.prey
    for k in range(prey.count[0]):
        if _may_stay_gone(world, hunt, k):
            continue
        put_back(world, k)
        if _quota_holds(world, hunt) and _sit_elsewhere(world, hunt):
            prey.picked[k] = -1
        else:
            take_again(world, k)
    squeeze(prey, 0)


@inner
def _sit_elsewhere(world: World, hunt: Hunt) -> bool:
    """Seat the workload afresh on what the victims leave, in the domain where it sits; False if it
    cannot, and then it sits as before.
    """
    room, work, seats, w = world.room, world.work, world.seats, hunt.w
    least, level = work.least[w], work.required[w]
    node, device = seats.node[:least].copy(), seats.device[:least].copy()
    home = world.nodes.domain[level, node[0]] if level != ANYWHERE else 0
    unseat(work, room, seats, w, least)
    sat = 0
    for i in range(world.nodes.class_start[hunt.c], world.nodes.class_start[hunt.c + 1]):
        n = world.nodes.of_class[i]
        if level != ANYWHERE and world.nodes.domain[level, n] != home:
            continue
        while sat < least and slots_on(room, work, w, n, LATER) > 0:
            seats.node[sat], seats.device[sat] = n, pick_device(room, work, w, n, LATER)
            sit(room, work, w, n, seats.device[sat], LATER)
            sat += 1
    if sat == least:
        return True
    unseat(work, room, seats, w, sat)
    for i in range(least):
        seats.node[i], seats.device[i] = node[i], device[i]
        sit(room, work, w, node[i], device[i], LATER)
    return False
