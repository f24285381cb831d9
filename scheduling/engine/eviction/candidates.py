"""Whom an eviction could take: running preemptible work, listed when first somebody hunts in a cycle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import declare
from scheduling.engine.order.pending import Line
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.state.input import (
    GPUS,
    RUNNING,
    Flags,
    Floats,
    Holds,
    Ints,
    Out,
    Ranks,
    Rules,
    Tree,
    Work,
)

ANY, READY = 0, 1
"""All prey, and that of which its queue has too much, inside no min run time whoever hunts."""
UNRATED = 1 << 40
LOOSE, BOUND = 0, 1
"""Prey that may go for somebody, and prey inside its min run time whoever hunts."""
END, FIRST = 0, 1
"""Of ``count``: where the log of what is tried ends, and where that of the search at work begins."""


@declare
class Prey(NamedTuple):
    """Running preemptible work by leaf, and by node once somebody looks there (``ladder``)."""

    listed: Flags  # [1]: whether it is in this cycle
    hunts: Ints  # [1]: their number
    leaf_start: Ints  # by leaf: in_leaf[leaf_start[q]:leaf_start[q + 1]]
    in_leaf: Ints
    leaf_done: Flags  # [queue] its part of ``in_leaf`` is in order
    of_class: Ints  # [class] how many of it are listed
    ranked: Ints  # those of one class below one queue, in order, for one hunt
    start: Ints  # by node: on_node[start[n]:stop[n]]
    stop: Ints
    on_node: Ints
    filled: Ints  # [1] of on_node
    node_done: Flags  # [node] it has its part of ``on_node``, in order
    spare: Ints
    listings: Ints  # [1]: their number
    listing: Ints  # [slot] number of the listing that it was in last
    shield: (
        Floats  # [priority class] shortest min run time that may shield it in the queue looked at
    )
    lost: Floats  # [slot] GPU-seconds thrown away by an eviction
    chosen: Flags  # [slot]
    picked: Ints  # the log of what is tried (``statement``): who, in order of choice
    part: Ints  # the hold of which one member is given up, or what else it does
    count: Ints  # type: ignore[assignment] # [END, FIRST]; nobody asks a struct for tuple.count
    given: Ints  # [slot] members given up, which are no longer its own
    gone: Ints  # [hold] the same of one hold
    heap: Ints  # nodes by cost, see ``heap``
    spot: Ints  # [node] its position in the heap
    size: Ints  # [1] nodes in the heap
    fresh: Ints  # [node] epoch at which its cost was computed, 0: never
    near: Ints  # [node] number of the last hunt inside a queue that has work there
    rated: Ints  # [1]: evictions since ``rate`` was found, or UNRATED
    rate: (
        Floats  # [any or ready, node] least that such prey there loses per milli-GPU, else infinite
    )
    own_rate: Floats  # [node] the same of the leaf of the last hunt inside one
    yields: Ints  # [any or ready, node] milli-GPU that such prey there gives back at most
    of_leaf: Ints  # [any or ready, node] scratch: what one leaf holds there
    cost: Floats  # [node]
    mass: Ints  # [loose or bound, class, queue, rank] milli-GPU that leaves could lose
    kept_mass: Ints  # the same before anybody was taken
    barred: Ints  # [slot] number of the last hunt that does without it
    owing: Flags  # [queue] on the way from whoever hunts: see ``eviction.note_owed``
    price: Floats  # [slot] GPU-seconds by which victims are compared, see ``_set_prices``
    dearest: Floats  # [class, rank] scratch: the most that prey of one leaf loses there
    biggest: Ints  # [class, queue] the largest gang in the subtree
    unbounded: Flags  # [queue] it has shares of GPUs, or elastic gangs that can do without some
    take: Ints  # [queue] what a hunt could take from the subtree, of its children, and scratch
    below: Ints  # [queue]
    refused: (
        Ints  # [class, queue] the last workload whose hunt failed since somebody was evicted, -1
    )
    refused_at: Ints  # [class, queue] how many had started then


def empty_prey(
    slots: int, nodes: int, holds: int, classes: int, queues: int, ranks: int, seats: int
) -> Prey:
    """Tables for these numbers of things; nothing is listed."""
    ints, flags, many = np.zeros, np.zeros, max(holds, slots)
    return Prey(
        listed=flags(1, np.bool_), hunts=ints(1, np.int64),
        leaf_start=ints(queues + 1, np.int64), in_leaf=ints(slots, np.int64),
        leaf_done=flags(queues, np.bool_), of_class=ints(classes, np.int64),
        ranked=ints(slots, np.int64),
        start=ints(nodes, np.int64), stop=ints(nodes, np.int64),
        on_node=ints(holds, np.int64), filled=ints(1, np.int64),
        node_done=flags(nodes, np.bool_), spare=ints(many, np.int64),
        listings=ints(1, np.int64), listing=ints(slots, np.int64),
        shield=np.zeros(ranks), lost=np.zeros(slots),
        chosen=flags(slots, np.bool_), picked=ints(2 * slots + seats, np.int64),
        part=ints(2 * slots + seats, np.int64), count=ints(2, np.int64),
        given=ints(slots, np.int64), gone=ints(holds, np.int64),
        heap=ints(nodes, np.int64), spot=ints(nodes, np.int64) - 1,
        size=ints(1, np.int64), fresh=ints(nodes, np.int64), near=ints(nodes, np.int64),
        rated=ints(1, np.int64) + UNRATED, rate=np.zeros((2, nodes)), own_rate=np.zeros(nodes),
        yields=ints((2, nodes), np.int64), of_leaf=ints((2, nodes), np.int64),
        cost=np.zeros(nodes), mass=ints((2, classes, queues, ranks), np.int64),
        kept_mass=ints((2, classes, queues, ranks), np.int64),
        biggest=ints((classes, queues), np.int64),
        unbounded=flags(queues, np.bool_), take=ints(queues, np.int64),
        below=ints(queues, np.int64), refused=ints((classes, queues), np.int64),
        refused_at=ints((classes, queues), np.int64), barred=ints(slots, np.int64),
        owing=flags(queues, np.bool_), price=np.zeros(slots), dearest=np.zeros((classes, ranks)),
    )  # fmt: skip


@inner
def how_many(prey: Prey) -> int:
    """What the search at work has tried."""
    return prey.count[END] - prey.count[FIRST]


@once
def gpus_of(work: Work, v: int) -> int:
    return work.need[GPUS, v] * work.members[v]


@once
def work_lost(work: Work, v: int, members: int, now: float) -> float:
    """GPU-seconds an eviction of ``v`` with ``members`` throws away: GPUs x (time since the last
    checkpoint + restart).
    """
    since = max(work.checkpointed[v], work.started[v])
    gpus = work.need[GPUS, v] * members
    return gpus / 1000.0 * (max(0.0, now - since) + work.restart[v])


@inner
def list_prey(
    work: Work, ranks: Ranks, rules: Rules, tree: Tree, line: Line, action: Ints, prey: Prey
) -> None:
    """Fill ``prey`` by leaf, and say what each leaf could lose. Left out is whom this cycle has decided on
    (``action``) already. Nobody's hunt has failed yet.
    """
    _forget(prey)
    count = 0
    for q in range(tree.parent.size):
        prey.leaf_start[q] = count
        if line.runs[q + 1] == line.runs[q + 2]:
            continue
        find_shields(tree, ranks, prey, q)
        for k in range(line.runs[q + 1], line.runs[q + 2]):
            w = line.running[k]
            p = work.priority[w]
            prey.chosen[w] = False
            if work.leaving[w] or action[w] != codes.UNDECIDED or p < 0 or not ranks.preemptible[p]:
                continue
            prey.in_leaf[count], prey.listing[w] = w, prey.listings[0]
            prey.lost[w] = work_lost(work, w, work.members[w], rules.now)
            _weigh_in(work, rules, prey, w)
            count += 1
        _set_prices(work, ranks, rules, prey, prey.leaf_start[q], count)
    prey.leaf_start[tree.parent.size] = count
    _sum_up(tree, prey)
    _copy_mass(prey.mass, prey.kept_mass)


@inner
def _set_prices(work: Work, ranks: Ranks, rules: Rules, prey: Prey, first: int, last: int) -> None:
    """The price of prey of one leaf, whose shields are found, is the work it loses; but none is cheaper than
    what runs there at a lower priority: inside the queue that gives back, that leaves first.
    """
    dearest = prey.dearest
    for c in range(dearest.shape[0]):
        for p in range(dearest.shape[1]):
            dearest[c, p] = -1.0
    for k in range(first, last):
        w = prey.in_leaf[k]
        c, p = work.gpu_class[w], work.priority[w]
        prey.price[w] = prey.lost[w]
        if rules.now >= work.started[w] + prey.shield[p]:
            dearest[c, p] = max(dearest[c, p], prey.lost[w])
    for k in range(first, last):
        w = prey.in_leaf[k]
        for p in range(dearest.shape[1]):
            below = dearest[work.gpu_class[w], p]
            if below >= 0.0 and ranks.value[p] < ranks.value[work.priority[w]]:
                prey.price[w] = max(prey.price[w], below + 1.0)


@once
def _weigh_in(work: Work, rules: Rules, prey: Prey, w: int) -> None:
    """What its leaf, whose shields are found, could lose with ``w``."""
    c, q, p = work.gpu_class[w], work.queue[w], work.priority[w]
    one, gpus = work.need[GPUS, w], gpus_of(work, w)
    extra = one * extra_of(work, w)
    bound = rules.now < work.started[w] + prey.shield[p]
    prey.of_class[c] += 1
    prey.unbounded[q] = prey.unbounded[q] or extra > 0 or one < ONE
    prey.mass[LOOSE, c, q, p] += extra - one * prey.given[w]
    prey.mass[BOUND if bound else LOOSE, c, q, p] += gpus - extra
    prey.biggest[c, q] = max(prey.biggest[c, q], gpus)


@once
def _forget(prey: Prey) -> None:
    prey.listed[0], prey.rated[0] = True, UNRATED
    prey.listings[0] += 1
    prey.filled[0] = 0
    for n in range(prey.node_done.size):
        prey.node_done[n] = False
    for q in range(prey.leaf_done.size):
        prey.leaf_done[q] = prey.unbounded[q] = False
    for c in range(prey.of_class.size):
        prey.of_class[c] = 0
        for q in range(prey.leaf_done.size):
            prey.biggest[c, q] = 0
            prey.refused[c, q] = -1
            for p in range(prey.mass.shape[3]):
                prey.mass[LOOSE, c, q, p] = prey.mass[BOUND, c, q, p] = 0


@inner
def find_shields(tree: Tree, ranks: Ranks, prey: Prey, leaf: int) -> None:
    for p in range(ranks.min_run.size):
        prey.shield[p] = _shield(tree, ranks, leaf, p)


@inner
def _shield(tree: Tree, ranks: Ranks, leaf: int, p: int) -> float:
    """The shortest of the min run times that may shield work of ``leaf``, whoever hunts."""
    q, least = leaf, np.inf
    while q > 0:
        own = tree.min_run[q]
        least = min(least, own if own >= 0.0 else ranks.min_run[p])
        q = tree.parent[q]
    return least


@once
def _sum_up(tree: Tree, prey: Prey) -> None:
    for c in range(prey.of_class.size):
        for q in range(tree.parent.size - 1, 0, -1):
            above = tree.parent[q]
            prey.biggest[c, above] = max(prey.biggest[c, above], prey.biggest[c, q])


@inner
def relist(prey: Prey) -> None:
    """Nobody has been taken yet, of the same prey as in the plan before."""
    if not prey.listed[0]:
        return
    prey.rated[0] = UNRATED
    _copy_mass(prey.kept_mass, prey.mass)
    for c in range(prey.refused.shape[0]):
        for q in range(prey.refused.shape[1]):
            prey.refused[c, q] = -1


@inner
def _copy_mass(mass: Ints, to: Ints) -> None:
    for kind in range(mass.shape[0]):
        for c in range(mass.shape[1]):
            for q in range(mass.shape[2]):
                for p in range(mass.shape[3]):
                    to[kind, c, q, p] = mass[kind, c, q, p]


@inner
def drop_weight(
    work: Work, ranks: Ranks, rules: Rules, tree: Tree, prey: Prey, v: int, sign: int
) -> None:
    """No later hunt of this cycle can take ``v`` (``sign`` 1), or one can after all (-1). No time protects
    its extra members.
    """
    c, q, p = work.gpu_class[v], work.queue[v], work.priority[v]
    gpus, extra = sign * work.need[GPUS, v], extra_of(work, v)
    bound = rules.now < work.started[v] + _shield(tree, ranks, q, p)
    prey.mass[LOOSE, c, q, p] -= gpus * (extra - prey.given[v])
    prey.mass[BOUND if bound else LOOSE, c, q, p] -= gpus * (work.members[v] - extra)


@inner
def forget_given(work: Work, holds: Holds, out: Out, prey: Prey) -> None:
    """The notes of what was given up are for one cycle, and so is a list in which somebody has less to
    lose for it.
    """
    for k in range(out.used[0]):
        v = out.order[k]
        if work.phase[v] != RUNNING or prey.given[v] == 0:
            continue
        prey.given[v], prey.listed[0] = 0, False
        h = holds.head[v]
        while h >= 0:
            prey.gone[h] = 0
            h = holds.next[h]


@once
def extra_of(work: Work, v: int) -> int:
    """Members that an elastic gang can do without."""
    return max(0, work.members[v] - work.least[v]) if work.elastic[v] else 0


@once
def core_of(work: Work, v: int) -> int:
    """Milli-GPU that count as evicted when ``v`` is: not the members it can do without, which it would
    give up first.
    """
    return (work.members[v] - extra_of(work, v)) * work.need[GPUS, v]
