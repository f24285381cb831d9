"""In which order victims are looked at: least work lost first, inside a leaf lowest priority first. Each part
of the prey is put in order when first somebody looks there.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.candidates import find_shields
from scheduling.engine.model import UNLIMITED
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.quota.fair_share import PLAIN, is_below, left_by
from scheduling.engine.quota.limits import is_worn
from scheduling.engine.state.input import Work, extra_of, gpus_of, work_lost
from scheduling.engine.state.session import World
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.state.victims import ANY, END, READY, Prey

RATED_FOR = 200
"""Evictions after which rates are found anew."""


@inner
def order_leaf(world: World, q: int) -> None:
    """Puts ``prey.in_leaf`` in order for leaf ``q``."""
    prey = world.prey
    if not prey.leaf_done[q]:
        prey.leaf_done[q] = True
        _order(world.work, prey, prey.in_leaf, prey.leaf_start[q], prey.leaf_start[q + 1])


@inner
def order_below(world: World, c: int, top: int, own: int) -> int:
    """Fills ``prey.ranked`` with the prey of class ``c`` below queue ``top``, in order: that of leaf ``own``,
    and of the others that hold more than their shares. Returns how many.
    """
    work, prey, size = world.work, world.prey, 0
    for q in range(prey.leaf_done.size):
        if prey.leaf_start[q] == prey.leaf_start[q + 1] or not is_below(world.tree, q, top):
            continue
        if q != own and _above(world, c, q, PLAIN) <= EPS:
            continue
        for k in range(prey.leaf_start[q], prey.leaf_start[q + 1]):
            if work.gpu_class[prey.in_leaf[k]] == c:
                prey.ranked[size] = prey.in_leaf[k]
                size += 1
    _order(work, prey, prey.ranked, 0, size)
    return size


@inner
def order_node(world: World, n: int) -> None:
    """Fills ``prey.on_node`` for node ``n``, in order; a gang is there once for each of its holds."""
    prey, room = world.prey, world.room
    if prey.node_done[n]:
        return
    prey.node_done[n] = True
    at = prey.start[n] = prey.filled[0]
    h = room.first[n]
    while h >= 0:
        v = room.owner[h]
        if prey.listing[v] == prey.listings[0]:
            prey.on_node[at] = v
            at += 1
        h = room.after[h]
    prey.stop[n] = prey.filled[0] = at
    _order(world.work, prey, prey.on_node, prey.start[n], at)


@inner
def rate_nodes(world: World, stretch: int) -> None:
    """What a milli-GPU on each node costs at least, whoever there leaves, and how many there are to take.

    Evictions only take prey away, so these hold on as bounds; now and then they are found anew.
    """
    prey = world.prey
    if prey.rated[0] < RATED_FOR:
        _rate_the_risen(world)
        return
    prey.rated[0] = 0
    _forget_the_risen(prey)
    for n in range(prey.rate.shape[1]):
        prey.rate[ANY, n] = prey.rate[READY, n] = np.inf
        prey.yields[ANY, n] = prey.yields[READY, n] = 0
    for q in range(prey.leaf_done.size):
        if prey.leaf_start[q] < prey.leaf_start[q + 1] and _has_too_much(world, q, stretch):
            find_shields(world.tree, world.ranks, prey, q)
            _rate(world, q, True, stretch)
            _add_yields(world, q, stretch)


@inner
def _has_too_much(world: World, q: int, stretch: int) -> bool:
    """Whether leaf ``q`` is above what is left to it in any class."""
    for c in range(world.book.held.shape[0]):
        if _above(world, c, q, stretch) > EPS:
            return True
    return False


@inner
def _rate_the_risen(world: World) -> None:
    """Leaves that hold more than when nodes were rated: any of their prey may be too much now. They are
    looked at again while anything is only tried, since undoing it lets them hold still more.
    """
    prey = world.prey
    for q in range(prey.risen.size):
        if prey.risen[q] and _has_too_much(world, q, PLAIN):
            _rate(world, q, False, PLAIN)
            _add_yields(world, q, PLAIN)
    if prey.count[END] == 0:
        _forget_the_risen(prey)


@once
def _forget_the_risen(prey: Prey) -> None:
    for q in range(prey.risen.size):
        prey.risen[q] = False


@inner
def reprice(world: World, v: int, members: int) -> None:
    """``v`` goes on with ``members``. Less is lost with those, so it stands further ahead in each list."""
    work, prey, holds = world.work, world.prey, world.holds
    q = work.queue[v]
    as_lost = prey.price[v] == prey.lost[v]
    prey.lost[v] = work_lost(work, v, members, world.rules.now)
    if as_lost:
        prey.price[v] = prey.lost[v]
    if prey.leaf_done[q]:
        _move_up(work, prey, prey.in_leaf, prey.leaf_start[q], prey.leaf_start[q + 1], v)
    h = holds.head[v]
    while h >= 0:
        n = holds.node[h]
        if prey.node_done[n]:
            _move_up(work, prey, prey.on_node, prey.start[n], prey.stop[n], v)
        h = holds.next[h]


@inner
def _move_up(work: Work, prey: Prey, table: Ints, first: int, last: int, v: int) -> None:
    for k in range(first, last):
        at = k
        while table[at] == v and at > first and _after(work, prey, table[at - 1], v):
            table[at], table[at - 1] = table[at - 1], v
            at -= 1


@once
def _is_ready(world: World, v: int, above: float) -> bool:
    """Of prey in a leaf that is ``above`` its share."""
    work, prey = world.work, world.prey
    if extra_of(work, v) > 0:
        return True
    bound = world.rules.now < work.started[v] + prey.shield[work.priority[v]]
    enough = above >= gpus_of(work, v) - EPS
    return enough and not bound and not prey.chosen[v] and not is_worn(world, v)


@inner
def _rate(world: World, q: int, afresh: bool, stretch: int) -> None:
    """The prey of leaf ``q`` in classes of which it holds too much: of others nobody takes any. Not
    ``afresh``, when it holds more than before. Arrays are looked up once.
    """
    prey, holds, work = world.prey, world.holds, world.work
    head, after, node, members = holds.head, holds.next, holds.node, holds.members
    least, of_leaf = prey.rate, prey.of_leaf
    for k in range(prey.leaf_start[q], prey.leaf_start[q + 1]):
        v = prey.in_leaf[k]
        above = _above(world, work.gpu_class[v], q, stretch)
        if above <= EPS:
            continue
        ready = extra_of(work, v) > 0 or not is_worn(world, v)
        if afresh:
            ready = _is_ready(world, v, above)
        h, one = head[v], _taken_by(work.need[GPUS, v])
        while h >= 0:
            n, rate = node[h], rate_of(world, v, h)
            least[ANY, n] = min(least[ANY, n], rate)
            of_leaf[ANY, n] += members[h] * one
            if ready:
                least[READY, n] = min(least[READY, n], rate)
                of_leaf[READY, n] += members[h] * one
            h = after[h]


@once
def _taken_by(gpus: int) -> int:
    """Milli-GPU that come free at most where a member leaves: with a share a whole GPU."""
    return max(gpus, ONE) if gpus > 0 else 0


@once
def _add_yields(world: World, q: int, stretch: int) -> None:
    """On each node leaf ``q``, just rated, gives no more than it holds there, nor than ``_gives`` says."""
    prey, holds, work = world.prey, world.holds, world.work
    for k in range(prey.leaf_start[q], prey.leaf_start[q + 1]):
        v = prey.in_leaf[k]
        c = work.gpu_class[v]
        most, beyond = _gives(world, c, q, stretch), prey.biggest[c, q]
        h = holds.head[v] if most > 0 else -1
        while h >= 0:
            n = holds.node[h]
            prey.yields[READY, n] += min(most, prey.of_leaf[READY, n])
            prey.yields[ANY, n] += min(most + beyond, prey.of_leaf[ANY, n])
            prey.of_leaf[ANY, n] = prey.of_leaf[READY, n] = 0
            h = holds.next[h]


@once
def _gives(world: World, c: int, q: int, stretch: int) -> int:
    """Milli-GPU of class ``c`` that leaf ``q`` holds too much of; a hunt for what is owed takes one gang
    beyond. Shares of GPUs and what elastic gangs can do without are not bounded so.
    """
    above = _above(world, c, q, stretch)
    if above <= EPS:
        return 0
    return UNLIMITED if world.prey.unbounded[q] else int(above) + 1


@once
def _above(world: World, c: int, q: int, stretch: int) -> float:
    return float(world.book.held[c, q] - left_by(world, c, q, stretch))


@once
def rate_of(world: World, v: int, h: int) -> float:
    """What a milli-GPU of hold ``h`` costs at least. Members that a gang can do without cost next to
    nothing, so they bound nothing.
    """
    work, gpus = world.work, world.holds.members[h] * world.work.need[GPUS, v]
    free = gpus == 0 or extra_of(work, v) > 0
    return 0.0 if free else (world.prey.price[v] + gpus_of(work, v) / 1000.0) / gpus


@inner
def _order(work: Work, prey: Prey, table: Ints, first: int, last: int) -> None:
    """Bottom-up merge sort of ``table[first:last]``."""
    width, spare = 1, prey.spare
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and not _after(work, prey, table[i], table[j])):
                    spare[k - first] = table[i]
                    i += 1
                else:
                    spare[k - first] = table[j]
                    j += 1
        for k in range(first, last):
            table[k] = spare[k - first]
        width *= 2


@inner
def _after(work: Work, prey: Prey, a: int, b: int) -> bool:
    """Ladder: lowest price, started last, submitted last, lowest name."""
    if prey.price[a] != prey.price[b]:
        return prey.price[a] > prey.price[b]
    if work.started[a] != work.started[b]:
        return work.started[a] < work.started[b]
    if work.submitted[a] != work.submitted[b]:
        return work.submitted[a] < work.submitted[b]
    return work.tie[a] > work.tie[b]
