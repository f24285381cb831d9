"""The final set of victims: who is not needed is put back, and the tests are repeated on the others."""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import (
    ANYWHERE,
    EPS,
    GPUS,
    LATER,
    Floats,
    Tree,
)
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import (
    BOTH,
    CAP,
    PREEMPT,
    Hunt,
    held_by,
    still_above,
)
from scheduling.engine.prey import END, FIRST, how_many
from scheduling.engine.seating import pick_device, sit, slots_on
from scheduling.engine.sorting import order_of
from scheduling.engine.standing import (
    LENT,
    PLAIN,
    inside_nominal,
    is_below,
    levels_over,
    takes_kept,
)
from scheduling.engine.statement import LEAVES, MOVES, redo_one, squeeze, strike, undo_one, unseat
from scheduling.engine.world import World


@inner
def lacks_quota(world: World, hunt: Hunt, q: int) -> bool:
    """With the workload, ``q`` would be above its limit, or above what it is entitled to; or its leaf ``q``
    would borrow beside a preemption what is kept back.
    """
    held = world.book.held[hunt.c, q] + hunt.need
    if held > world.quotas.cap[hunt.c, q] or not is_entitled(world, hunt, q, 0):
        return True
    return hunt.rule == PREEMPT and q == world.work.queue[hunt.w] and borrows_kept(world, hunt)


@inner
def borrows_kept(world: World, hunt: Hunt) -> bool:
    """Whether the workload would use above its share what a lending limit keeps back."""
    q = world.work.queue[hunt.w]
    over = levels_over(world.tree, world.book, world.division, q, hunt.c, hunt.need)
    return bool(over > 0 and takes_kept(world, q, hunt.c, hunt.need) >= 0)


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
    """The price of the prey; among equals fewer GPUs, at the price of a second each. A member given up costs
    less than any eviction, and nothing where its gang is evicted as well.
    """
    prey, work = world.prey, world.work
    v = prey.picked[k]
    if prey.part[k] < 0:
        return prey.price[v] + held_by(world, v) / 1000.0
    return 0.0 if prey.chosen[v] else work.need[GPUS, v] / 1e9


@inner
def put_needless_back(world: World, hunt: Hunt) -> None:
    """Put back, dearest first, every victim without whom seats and limits hold."""
    prey = world.prey
    first, price = prey.count[FIRST], np.empty(how_many(prey))
    for k in range(price.size):
        price[k] = -price_of(world, first + k)
    for k in first + order_of(price):
        v = prey.picked[k]
        if prey.part[k] == MOVES or (prey.part[k] >= 0 and prey.chosen[v]):
            continue
        undo_one(world, k)
        if seats_hold(world, v) and quota_holds(world, hunt):
            strike(prey, k)
        else:
            redo_one(world, k)
    squeeze(prey, prey.count[FIRST])


@inner
def seats_hold(world: World, v: int) -> bool:
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


@inner
def quota_holds(world: World, hunt: Hunt) -> bool:
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
    if borrows_kept(world, hunt):
        return False
    return first_unfair(world, hunt) < 0 and (hunt.stretch == PLAIN or _narrows(world, hunt))


@once
def _narrows(world: World, hunt: Hunt) -> bool:
    """Whether what queues hold and their shares are closer to each other with the workload and without the
    chosen, summed over all queues, and in none further apart. Of what was LENT no more goes than is asked
    for.
    """
    tree, held, prey = world.tree, world.book.held, world.prey
    before, more, given = np.zeros(tree.parent.size), 0.0, 0
    for k in range(prey.count[FIRST], prey.count[END]):
        v = prey.picked[k]
        if v < 0 or prey.part[k] == MOVES or (prey.part[k] >= 0 and prey.chosen[v]):
            continue
        gpus = held_by(world, v) if prey.part[k] < 0 else world.work.need[GPUS, v]
        _add_up(tree, before, world.work.queue[v], gpus)
        given += gpus
    if hunt.stretch == LENT:
        return bool(given <= hunt.need)
    for q in range(1, before.size):
        fair, has = world.division.fair[hunt.c, q], held[hunt.c, q]
        mine = hunt.need if is_below(tree, world.work.queue[hunt.w], q) else 0
        change = abs(has + mine - fair) - abs(has + before[q] - fair)
        if change > EPS:
            return False
        more += change
    return bool(more < -EPS)


@once
def _add_up(tree: Tree, sums: Floats, q: int, gpus: int) -> None:
    while q > 0:
        sums[q] += gpus
        q = tree.parent[q]


@inner
def first_unfair(world: World, hunt: Hunt) -> int:
    """The first of the chosen whose queues need not do without it, -1 if none. Gaps are passed over."""
    if hunt.rule == PREEMPT:
        return -1
    for k in range(world.prey.count[FIRST], world.prey.count[END]):
        if world.prey.picked[k] >= 0 and not _may_stay_gone(world, hunt, k):
            return int(world.prey.picked[k])
    return -1


@inner
def whom_to_spare(world: World, hunt: Hunt) -> int:
    """Whom another set should do without: the first who fails the fairness test; where that is about all of
    them, the largest; -1 if none.
    """
    unfair = first_unfair(world, hunt)
    if unfair >= 0 or hunt.stretch == PLAIN:
        return unfair
    prey, most = world.prey, 0
    for k in range(prey.count[FIRST], prey.count[END]):
        gpus = held_by(world, prey.picked[k]) if prey.part[k] == LEAVES else 0
        if gpus > most:
            unfair, most = prey.picked[k], gpus
    return unfair


@inner
def _may_stay_gone(world: World, hunt: Hunt, k: int) -> bool:
    part = world.prey.part[k]
    merged = part >= 0 and world.prey.chosen[world.prey.picked[k]]
    return bool(merged or part == MOVES or still_above(world, hunt, k))


@inner
def do_without(world: World, hunt: Hunt) -> None:
    """Put back victims that a larger one made needless: other members sit in the room it leaves."""
    prey = world.prey
    for k in range(prey.count[FIRST], prey.count[END]):
        if _may_stay_gone(world, hunt, k):
            continue
        undo_one(world, k)
        if quota_holds(world, hunt) and _sit_elsewhere(world, hunt):
            strike(prey, k)
        else:
            redo_one(world, k)
    squeeze(prey, prey.count[FIRST])


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
