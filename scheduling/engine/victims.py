"""Who must leave so that one workload can start.

Victims are whole gangs. Limits come first, then room: the node that frees a member's room at the
least work lost is taken, again and again, until the gang sits. Then whoever is not needed is put
back, and the fairness test is repeated on the final set.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import ANYWHERE, EPS, LATER, Ints, Nodes, Room, Seats, Work
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import (
    CAP,
    PREEMPT,
    Hunt,
    allowed,
    choose,
    drop,
    protected_until,
    release,
    restore,
    still_above,
)
from scheduling.engine.heap import change, push
from scheduling.engine.prey import Prey, gpus_of
from scheduling.engine.seating import leave, pick_device, sit, slots_on
from scheduling.engine.sorting import order_of
from scheduling.engine.standing import levels_over, takes_kept
from scheduling.engine.world import World


@inner
def hunt_down(world: World, hunt: Hunt) -> bool:
    """Choose victims. On success they stand in ``world.prey``, released, and the workload's least
    members have claimed their seats; on failure everything is as before.
    """
    least = world.work.least[hunt.w]
    world.prey.count[0] = 0
    world.book.spent[0] = 0
    sat = 0
    if _free_quota(world, hunt):
        sat = _free_domain(world, hunt)
    if sat == least:
        _put_back(world, hunt)
        if world.prey.count[0] > 0 and _still_fair(world, hunt):
            return True
    unseat(world.work, world.room, world.seats, hunt.w, sat)
    drop(world, 0)
    return False


@inner
def give_up(world: World, hunt: Hunt) -> None:
    """Undo a search that succeeded."""
    unseat(world.work, world.room, world.seats, hunt.w, world.work.least[hunt.w])
    drop(world, 0)


@once
def last_release(world: World) -> float:
    """When the last of the chosen loses its protection."""
    until = 0.0
    for k in range(world.prey.count[0]):
        until = max(until, protected_until(world, world.prey.picked[k]))
    return until


@inner
def unseat(work: Work, room: Room, seats: Seats, w: int, sat: int) -> None:
    """Undo the claims of the first ``sat`` seats."""
    for i in range(sat):
        leave(room, work, w, seats.node[i], seats.device[i], 1)


@inner
def _free_quota(world: World, hunt: Hunt) -> bool:
    """Make room under the limits above the workload, lowest first; False if victims cannot."""
    q = world.work.queue[hunt.w]
    while q > 0:
        for k in range(world.prey.begin[hunt.c], world.prey.begin[hunt.c + 1]):
            v = world.prey.ranked[k]
            if not _lacks_quota(world, hunt, q):
                break
            if world.prey.chosen[v] or not _inside(world, world.work.queue[v], q):
                continue
            if allowed(world, hunt, v):
                choose(world, v)
        if _lacks_quota(world, hunt, q):
            return False
        q = world.tree.parent[q]
    return True


@inner
def _lacks_quota(world: World, hunt: Hunt, q: int) -> bool:
    """With the workload, ``q`` would be above its limit; or, preempting inside a queue, above its fair
    share and above what it held before.
    """
    after = world.book.held[hunt.c, q] + hunt.need
    if after > world.quotas.cap[hunt.c, q]:
        return True
    if hunt.rule != PREEMPT:
        return False
    before = float(world.book.held[hunt.c, q] + world.book.spent[0])
    return after > max(world.division.fair[hunt.c, q], before) + EPS


@once
def _inside(world: World, q: int, top: int) -> bool:
    while world.tree.depth[q] > world.tree.depth[top]:
        q = world.tree.parent[q]
    return q == top


@once
def _free_domain(world: World, hunt: Hunt) -> int:
    """Free room anywhere, or in the domain of the required level that loses least."""
    nodes, level = world.nodes, world.work.required[hunt.w]
    among = nodes.of_class[nodes.class_start[hunt.c] : nodes.class_start[hunt.c + 1]]
    if level == ANYWHERE:
        return _free_room(world, hunt, among)
    order, start = _by_domain(nodes, among, level)
    before = world.prey.count[0]
    best, best_lost = -1, np.inf
    for d in range(start.size - 1):
        sat = _free_room(world, hunt, order[start[d] : start[d + 1]])
        lost = _lost_so_far(world.prey, world.work)
        if sat == world.work.least[hunt.w] and lost < best_lost:
            best, best_lost = d, lost
        unseat(world.work, world.room, world.seats, hunt.w, sat)
        drop(world, before)
    return _free_room(world, hunt, order[start[best] : start[best + 1]]) if best >= 0 else 0


@inner
def _by_domain(nodes: Nodes, among: Ints, level: int) -> tuple[Ints, Ints]:
    """The nodes by domain, and where each domain begins (counting sort)."""
    top = 0
    for n in among:
        top = max(top, nodes.domain[level, n])
    start, order = np.zeros(top + 3, np.int64), np.empty(among.size, np.int64)
    for n in among:
        start[nodes.domain[level, n] + 2] += 1
    for d in range(2, top + 3):
        start[d] += start[d - 1]
    for n in among:
        d = nodes.domain[level, n] + 1
        order[start[d]] = n
        start[d] += 1
    return order, start[: top + 2]


@once
def _price(prey: Prey, work: Work, v: int) -> float:
    """Work lost; among equals fewer GPUs, at the price of a second each."""
    return prey.lost[v] + gpus_of(work, v) / 1000.0


@once
def _lost_so_far(prey: Prey, work: Work) -> float:
    lost = 0.0
    for k in range(prey.count[0]):
        lost += _price(prey, work, prey.picked[k])
    return lost


@inner
def _free_room(world: World, hunt: Hunt, among: Ints) -> int:
    """Seat the least members one by one, each on the node where it loses least; returns how many sat.

    A node's cost holds until the node is touched. Elsewhere each victim taken can only make others
    dearer, so the cheapest node is computed again before it is taken, and that is enough.
    """
    w, prey, seats = hunt.w, world.prey, world.seats
    epoch, sat = 1, 0
    for n in among:
        push(prey, n, _cost(world, hunt, n, False))
        prey.fresh[n] = epoch
    while sat < world.work.least[w] and prey.size[0] > 0:
        n = prey.heap[0]
        if prey.fresh[n] != epoch:
            change(prey, n, _cost(world, hunt, n, False))
            prey.fresh[n] = epoch
            continue
        if prey.cost[n] == np.inf:
            break
        if prey.cost[n] > 0.0:
            before = prey.count[0]
            _cost(world, hunt, n, True)
            epoch += 1
            _touch(world, hunt, before)
        device = pick_device(world.room, world.work, w, n, LATER)
        sit(world.room, world.work, w, n, device, LATER)
        seats.node[sat], seats.device[sat] = n, device
        change(prey, n, _cost(world, hunt, n, False))
        prey.fresh[n] = epoch
        sat += 1
    for n in among:
        prey.spot[n] = -1
    prey.size[0] = 0
    return sat


@once
def _touch(world: World, hunt: Hunt, before: int) -> None:
    """The other nodes of the last victims may have become cheaper."""
    holds, prey = world.holds, world.prey
    for k in range(before, prey.count[0]):
        h = holds.head[prey.picked[k]]
        while h >= 0:
            n = holds.node[h]
            if prey.spot[n] >= 0:
                change(prey, n, _cost(world, hunt, n, False))
            h = holds.next[h]


@inner
def _cost(world: World, hunt: Hunt, n: int, take: bool) -> float:
    """Price of one more seat on ``n``, infinite if the rules allow too little. ``take`` keeps the
    victims released, otherwise all is as before.
    """
    room, work, prey = world.room, world.work, world.prey
    if slots_on(room, work, hunt.w, n, LATER) > 0:
        return 0.0
    before, fits = prey.count[0], False
    for k in range(prey.start[n], prey.start[n + 1]):
        v = prey.on_node[k]
        if prey.chosen[v] or not allowed(world, hunt, v):
            continue
        choose(world, v)
        if slots_on(room, work, hunt.w, n, LATER) > 0:
            fits = True
            break
    price = _keep_needed(world, hunt, n, before) if fits else np.inf
    if not (fits and take):
        drop(world, before)
    return price


@inner
def _keep_needed(world: World, hunt: Hunt, n: int, before: int) -> float:
    """Put back, dearest first, whoever node ``n`` does not need; the price of the others."""
    prey, price = world.prey, 0.0
    for k in range(prey.count[0] - 1, before - 1, -1):
        v = prey.picked[k]
        restore(world, v)
        if slots_on(world.room, world.work, hunt.w, n, LATER) > 0:
            prey.chosen[v] = False
            prey.picked[k] = -1
            continue
        release(world, v)
        price += _price(prey, world.work, v)
    _squeeze(prey, before)
    return price


@inner
def _squeeze(prey: Prey, before: int) -> None:
    """Close the gaps (-1) in the list of the chosen."""
    end = before
    for k in range(before, prey.count[0]):
        if prey.picked[k] >= 0:
            prey.picked[end] = prey.picked[k]
            end += 1
    prey.count[0] = end


@inner
def _put_back(world: World, hunt: Hunt) -> None:
    """Put back, dearest first, every victim without whom seats and limits hold."""
    prey = world.prey
    price = np.empty(prey.count[0])
    for k in range(price.size):
        price[k] = -_price(prey, world.work, prey.picked[k])
    for k in order_of(price):
        v = prey.picked[k]
        restore(world, v)
        if _seats_hold(world, v) and _quota_holds(world, hunt):
            prey.chosen[v] = False
            prey.picked[k] = -1
        else:
            release(world, v)
    _squeeze(prey, 0)


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
        if _lacks_quota(world, hunt, q):
            return False
        q = world.tree.parent[q]
    return True


@inner
def _still_fair(world: World, hunt: Hunt) -> bool:
    """The tests again, on the final set: the cap, nothing kept back taken, no victim inside its share."""
    if hunt.overlook != CAP and world.book.spent[0] > world.rules.eviction_cap * hunt.need:
        world.book.forbidden[CAP] = 1
        return False
    q = world.work.queue[hunt.w]
    over = levels_over(world.tree, world.book, world.division, q, hunt.c, hunt.need)
    if over > 0 and takes_kept(world, q, hunt.c, hunt.need) >= 0:
        return False
    if hunt.rule == PREEMPT:
        return True
    for k in range(world.prey.count[0]):
        if not still_above(world, hunt, world.prey.picked[k]):
            return False
    return True
