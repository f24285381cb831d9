"""Who must leave so that one workload can start.

Victims are whole gangs, or members that elastic gangs can do without. Limits come first, then room:
the node that frees a member's room at the least work lost is taken, again and again, until the gang
sits. Then whoever is not needed is put back, and the fairness test is repeated on the final set.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import ANYWHERE, GPUS, LATER, Ints, Nodes
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import (
    Hunt,
    allowed,
    may_give,
    note_owed,
    protected_until,
)
from scheduling.engine.exchange import exchange
from scheduling.engine.heap import change, push
from scheduling.engine.ladder import order_below, order_leaf, order_node
from scheduling.engine.nearby import is_near, least_cost, mark_nodes
from scheduling.engine.needed import (
    do_without,
    is_still_fair,
    is_within_cap,
    lacks_quota,
    price_of,
    put_needless_back,
    whom_to_spare,
)
from scheduling.engine.prey import END, FIRST, extra_of, how_many
from scheduling.engine.seating import ONE, pick_device, sit, slots_on
from scheduling.engine.statement import (
    LEAVES,
    begin,
    give_member,
    let_go,
    mark,
    redo_one,
    squeeze,
    strike,
    undo,
    undo_all,
    undo_one,
    unseat,
)
from scheduling.engine.world import World

FOUND = -1
MOST_SETS = 8
"""Sets that one hunt chooses: where the fairness test fails, the next does without whom it fails for."""


@inner
def hunt_down(world: World, hunt: Hunt) -> bool:
    """Choose victims. On success they stand in ``world.prey``, released, and the workload's least
    members have claimed their seats; on failure everything is as before.
    """
    mark_nodes(world, hunt)
    note_owed(world, hunt)
    for _ in range(MOST_SETS):
        sat = _choose_set(world, hunt)
        if sat == FOUND:
            exchange(world, hunt)
            return True
        unfair = whom_to_spare(world, hunt) if sat == world.work.least[hunt.w] else -1
        if unfair >= 0:
            world.prey.barred[unfair] = world.prey.hunts[0]
        unseat(world.work, world.room, world.seats, hunt.w, sat)
        undo_all(world)
        if unfair < 0:
            return False
    return False


@inner
def _choose_set(world: World, hunt: Hunt) -> int:
    """FOUND, or how many members sit: all of them where what was chosen fails the tests at the end."""
    begin(world)
    sat = _free_domain(world, hunt) if _free_quota(world, hunt) else 0
    if sat < world.work.least[hunt.w]:
        return sat
    put_needless_back(world, hunt)
    if how_many(world.prey) > 0 and is_within_cap(world, hunt):
        if is_still_fair(world, hunt):
            return FOUND
        do_without(world, hunt)
        if is_still_fair(world, hunt):
            return FOUND
    return sat


@inner
def give_up(world: World, hunt: Hunt) -> None:
    """Undo a search that succeeded."""
    unseat(world.work, world.room, world.seats, hunt.w, world.work.least[hunt.w])
    undo_all(world)


@once
def last_release(world: World, hunt: Hunt) -> float:
    """When the last of the chosen loses its protection."""
    until = 0.0
    for k in range(world.prey.count[FIRST], world.prey.count[END]):
        if world.prey.part[k] == LEAVES:
            until = max(until, protected_until(world, hunt, world.prey.picked[k]))
    return until


@inner
def _free_quota(world: World, hunt: Hunt) -> bool:
    """Make room under the limits above the workload, lowest first; False if victims cannot."""
    q = world.work.queue[hunt.w]
    while q > 0:
        if lacks_quota(world, hunt, q):
            among, first, last = _prey_in(world, hunt, q)
            _shrink_in(world, hunt, q, among[first:last])
            _evict_in(world, hunt, q, among[first:last])
        if lacks_quota(world, hunt, q):
            return False
        q = world.tree.parent[q]
    return True


@once
def _evict_in(world: World, hunt: Hunt, q: int, among: Ints) -> None:
    """Victims ``among`` those of ``q`` and below go until it does not lack quota."""
    for v in among:
        if not lacks_quota(world, hunt, q):
            return
        if not world.prey.chosen[v] and allowed(world, hunt, v):
            let_go(world, v)


@once
def _shrink_in(world: World, hunt: Hunt, q: int, among: Ints) -> None:
    """Elastic gangs ``among`` those of ``q`` and below give up members until it does not lack quota."""
    prey = world.prey
    for v in among:
        h = world.holds.head[v]
        while h >= 0 and lacks_quota(world, hunt, q) and may_give(world, hunt, v):
            if prey.gone[h] < world.holds.members[h]:
                give_member(world, v, h)
            else:
                h = world.holds.next[h]


@once
def _prey_in(world: World, hunt: Hunt, q: int) -> tuple[Ints, int, int]:
    """Where to look for victims of ``q`` and below, in order."""
    tree, prey = world.tree, world.prey
    if tree.kid_start[q] == tree.kid_start[q + 1]:
        order_leaf(world, q)
        return prey.in_leaf, prey.leaf_start[q], prey.leaf_start[q + 1]
    return prey.ranked, 0, order_below(world, hunt.c, q, world.work.queue[hunt.w])


@once
def _free_domain(world: World, hunt: Hunt) -> int:
    """Free room anywhere, or in the domain of the required level that loses least."""
    nodes, level = world.nodes, world.work.required[hunt.w]
    among = nodes.of_class[nodes.class_start[hunt.c] : nodes.class_start[hunt.c + 1]]
    if level == ANYWHERE:
        return _free_room(world, hunt, among)
    order, start = by_domain(nodes, among, level)
    before = mark(world)
    best, best_lost = -1, np.inf
    for d in range(start.size - 1):
        sat = _free_room(world, hunt, order[start[d] : start[d + 1]])
        lost = lost_so_far(world)
        if sat == world.work.least[hunt.w] and lost < best_lost:
            best, best_lost = d, lost
        unseat(world.work, world.room, world.seats, hunt.w, sat)
        undo(world, before)
    return _free_room(world, hunt, order[start[best] : start[best + 1]]) if best >= 0 else 0


@inner
def by_domain(nodes: Nodes, among: Ints, level: int) -> tuple[Ints, Ints]:
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


@inner
def lost_so_far(world: World) -> float:
    """The price of the chosen."""
    lost = 0.0
    for k in range(world.prey.count[FIRST], world.prey.count[END]):
        lost += price_of(world, k)
    return lost


@inner
def _free_room(world: World, hunt: Hunt, among: Ints) -> int:
    """Seat the least members one by one, each on the node where it loses least; returns how many sat.

    A node's cost holds until the node is touched. Elsewhere each victim taken can only make others
    dearer, so the cheapest node is computed again before it is taken, and that is enough. Nodes enter
    with a lower bound of their cost.
    """
    w, prey, seats = hunt.w, world.prey, world.seats
    epoch, sat = 1, 0
    for n in among:
        if slots_on(world.room, world.work, w, n, LATER) > 0:
            push(prey, n, 0.0)
        elif is_near(world, hunt, n):
            push(prey, n, least_cost(world, hunt, n))
        prey.fresh[n] = 0
    while sat < world.work.least[w] and prey.size[0] > 0:
        n = prey.heap[0]
        if prey.fresh[n] != epoch:
            change(prey, n, _cost(world, hunt, n, False))
            prey.fresh[n] = epoch
            continue
        if prey.cost[n] == np.inf:
            break
        if prey.cost[n] > 0.0:
            before = mark(world)
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
    for k in range(before, prey.count[END]):
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
    room, work = world.room, world.work
    if slots_on(room, work, hunt.w, n, LATER) > 0:
        return 0.0
    before = mark(world)
    fits = give_members_on(world, hunt, n) or _evict_on(world, hunt, n)
    price = _keep_needed(world, hunt, n, before) if fits else np.inf
    if not (fits and take):
        undo(world, before)
    return price


@inner
def _evict_on(world: World, hunt: Hunt, n: int) -> bool:
    """Victims on node ``n`` leave in order until one seat fits; whether it does.

    A share of a GPU on which others stay makes no room for whole GPUs and yet leaves its queue less to
    lose, so they are tried without shares as well.
    """
    before = mark(world)
    if _clear_node(world, hunt, n, True):
        return True
    if world.work.need[GPUS, hunt.w] < ONE or not _has_shares(world, before):
        return False
    undo(world, before)
    return _clear_node(world, hunt, n, False)


@inner
def _clear_node(world: World, hunt: Hunt, n: int, shares: bool) -> bool:
    prey, work = world.prey, world.work
    for k in range(prey.start[n], prey.stop[n]):
        v = prey.on_node[k]
        if prey.chosen[v] or not (shares or work.need[GPUS, v] >= ONE):
            continue
        if prey.given[v] > 0 and not _still_sits_on(world, v, n):
            continue
        if allowed(world, hunt, v):
            let_go(world, v)
            if slots_on(world.room, work, hunt.w, n, LATER) > 0:
                return True
    return False


@once
def _still_sits_on(world: World, v: int, n: int) -> bool:
    """Whether a member of ``v`` that it has not given up sits on node ``n``."""
    holds, h = world.holds, world.holds.head[v]
    while h >= 0:
        if holds.node[h] == n and world.prey.gone[h] < holds.members[h]:
            return True
        h = holds.next[h]
    return False


@once
def _has_shares(world: World, first: int) -> bool:
    """Whether one of the chosen, from number ``first`` on, holds shares of GPUs."""
    for k in range(first, world.prey.count[END]):
        if 0 < world.work.need[GPUS, world.prey.picked[k]] < ONE:
            return True
    return False


@inner
def give_members_on(world: World, hunt: Hunt, n: int) -> bool:
    """Members on node ``n`` are given up until one seat fits; whether it does.

    A member given first may leave its queue too little above its share for a larger one of another
    gang, so each gang is tried alone as well.
    """
    order_node(world, n)
    prey, first, last = world.prey, world.prey.start[n], world.prey.stop[n]
    if world.line.count[5] == 0:
        return False
    before = mark(world)
    if _give_on(world, hunt, n, first, last):
        return True
    if prey.count[END] == before:
        return False
    for k in range(first, last):
        undo(world, before)
        if _give_on(world, hunt, n, k, k + 1):
            return True
    undo(world, before)
    return _give_on(world, hunt, n, first, last)


@inner
def _give_on(world: World, hunt: Hunt, n: int, first: int, last: int) -> bool:
    """Those listed from ``first`` to ``last`` on node ``n`` give members up until one seat fits."""
    prey, holds = world.prey, world.holds
    for k in range(first, last):
        v = prey.on_node[k]
        if extra_of(world.work, v) == 0:
            continue
        h = holds.head[v]
        while h >= 0:
            here = holds.node[h] == n and prey.gone[h] < holds.members[h]
            if here and may_give(world, hunt, v):
                give_member(world, v, h)
                if slots_on(world.room, world.work, hunt.w, n, LATER) > 0:
                    return True
            else:
                h = holds.next[h]
    return False


@inner
def _keep_needed(world: World, hunt: Hunt, n: int, before: int) -> float:
    """Put back, dearest first, whoever node ``n`` does not need; the price of the others."""
    prey, price = world.prey, 0.0
    for k in range(prey.count[END] - 1, before - 1, -1):
        if prey.part[k] >= 0 and prey.chosen[prey.picked[k]]:
            continue
        undo_one(world, k)
        if slots_on(world.room, world.work, hunt.w, n, LATER) > 0:
            strike(prey, k)
            continue
        redo_one(world, k)
        price += price_of(world, k)
    squeeze(prey, before)
    return price
