"""Whom an eviction could take: running preemptible work, listed when first somebody hunts in a cycle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine import codes
from scheduling.engine.arrays import (
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
from scheduling.engine.compiled import inner, once
from scheduling.engine.line import Line
from scheduling.engine.structs import declare

UNLISTED, LISTED, SPREAD = 0, 1, 2
"""Lists by node and by leaf wait for the first hunt that sums do not rule out."""
LOOSE, BOUND = 0, 1
"""Prey that may go for somebody, and prey inside its min run time whoever hunts."""


@declare
class Prey(NamedTuple):
    """Running preemptible work by class, node and leaf.

    Each part of a list is put in order, least work lost first, when somebody looks there.
    """

    listed: Ints  # [1]: how far it is prepared in this cycle
    hunts: Ints  # [1]: their number
    ranked: Ints  # by class: ranked[begin[c]:begin[c + 1]] run on class c
    begin: Ints
    start: Ints
    on_node: Ints
    leaf_start: Ints  # by leaf: in_leaf[leaf_start[q]:leaf_start[q + 1]]
    in_leaf: Ints
    spare: Ints
    class_done: Flags  # [class] its part of ``ranked`` is in order
    node_done: Flags  # [node]
    leaf_done: Flags  # [queue]
    lost: Floats  # [slot] GPU-seconds thrown away by an eviction
    chosen: Flags  # [slot]
    picked: Ints  # the chosen in order of choice, whole gangs and single members
    part: Ints  # the hold of which one member is given up, -1 for a whole gang
    count: Ints  # type: ignore[assignment] # [1]; nobody asks a struct for tuple.count
    given: Ints  # [slot] members given up, which are no longer its own
    gone: Ints  # [hold] the same of one hold
    heap: Ints  # nodes by cost, see ``heap``
    spot: Ints  # [node] its position in the heap
    size: Ints  # [1] nodes in the heap
    fresh: Ints  # [node] epoch at which its cost was computed, 0: never
    near: Ints  # [node] number of the last hunt inside a queue that has work there
    rate: Floats  # [node] least that any prey there loses per milli-GPU, infinite without
    cost: Floats  # [node]
    mass: Ints  # [loose or bound, class, queue, rank] milli-GPU that leaves could lose
    kept_mass: Ints  # the same before anybody was taken
    biggest: Ints  # [class, queue] the largest gang in the subtree
    take: Ints  # [queue] what a hunt could take from the subtree, of its children, and scratch
    below: Ints  # [queue]
    refused: (
        Ints  # [class, queue] the last workload whose hunt failed since somebody was evicted, -1
    )


def empty_prey(
    slots: int, nodes: int, holds: int, classes: int, queues: int, ranks: int, seats: int
) -> Prey:
    """Tables for these numbers of things; nothing is listed."""
    ints = np.zeros
    return Prey(
        listed=ints(1, np.int64), hunts=ints(1, np.int64), ranked=ints(slots + 1, np.int64),
        begin=ints(classes + 2, np.int64), start=ints(nodes + 2, np.int64),
        on_node=ints(max(holds, slots), np.int64), leaf_start=ints(queues + 2, np.int64),
        in_leaf=ints(slots, np.int64), spare=ints(max(holds, slots), np.int64),
        class_done=np.zeros(classes, np.bool_), node_done=np.zeros(nodes, np.bool_),
        leaf_done=np.zeros(queues, np.bool_), lost=np.zeros(slots),
        chosen=np.zeros(slots, np.bool_), picked=ints(slots + seats, np.int64),
        part=ints(slots + seats, np.int64),
        given=ints(slots, np.int64), gone=ints(holds, np.int64),
        count=ints(1, np.int64), heap=ints(nodes, np.int64), spot=ints(nodes, np.int64),
        size=ints(1, np.int64), fresh=ints(nodes, np.int64),
        near=ints(nodes, np.int64), rate=np.zeros(nodes), cost=np.zeros(nodes),
        mass=ints((2, classes, queues, ranks), np.int64),
        kept_mass=ints((2, classes, queues, ranks), np.int64),
        biggest=ints((classes, queues), np.int64), take=ints(queues, np.int64),
        below=ints(queues, np.int64), refused=ints((classes, queues), np.int64),
    )  # fmt: skip


@once
def gpus_of(work: Work, v: int) -> int:
    return work.need[GPUS, v] * work.members[v]


@inner
def work_lost(work: Work, v: int, now: float) -> float:
    """GPU-seconds an eviction throws away: GPUs x (time since the last checkpoint + restart)."""
    since = max(work.checkpointed[v], work.started[v])
    return gpus_of(work, v) / 1000.0 * (max(0.0, now - since) + work.restart[v])


@inner
def list_prey(
    work: Work, ranks: Ranks, rules: Rules, tree: Tree, line: Line, action: Ints, prey: Prey
) -> None:
    """Fill ``prey``, in no order, but for whom this cycle has decided on (``action``) already."""
    count = 0
    for k in range(line.runs[1], line.count[2]):
        w = line.running[k]
        prey.chosen[w] = False
        if work.leaving[w]:
            continue
        if work.priority[w] < 0 or not ranks.preemptible[work.priority[w]]:
            continue
        if action[w] != codes.UNDECIDED:
            continue
        prey.lost[w] = work_lost(work, w, rules.now)
        prey.ranked[count] = w
        count += 1
    _list_by_class(work, prey, count)
    _weigh(work, ranks, rules, tree, prey, count)
    prey.listed[0] = LISTED


@once
def _list_by_class(work: Work, prey: Prey, count: int) -> None:
    """Counting sort of ``ranked[:count]``."""
    begin = prey.begin
    for c in range(begin.size):
        begin[c] = 0
    for k in range(count):
        prey.spare[k] = prey.ranked[k]
        begin[work.gpu_class[prey.ranked[k]] + 2] += 1
    for c in range(2, begin.size):
        begin[c] += begin[c - 1]
    for k in range(count):
        at = work.gpu_class[prey.spare[k]] + 1
        prey.ranked[begin[at]] = prey.spare[k]
        begin[at] += 1
    for c in range(prey.class_done.size):
        prey.class_done[c] = False


@inner
def spread_prey(work: Work, holds: Holds, prey: Prey) -> None:
    """List by node and by leaf those listed by class."""
    count = prey.begin[prey.class_done.size]
    _list_by_node(holds, prey, count)
    _list_by_leaf(work, prey, count)
    for n in range(prey.spot.size):
        prey.spot[n] = -1
        prey.node_done[n] = False
        prey.rate[n] = np.inf
    for q in range(prey.leaf_done.size):
        prey.leaf_done[q] = False
    prey.size[0] = 0
    _rate(work, holds, prey, count)
    prey.listed[0] = SPREAD


@once
def _rate(work: Work, holds: Holds, prey: Prey, count: int) -> None:
    """Members that a gang can do without cost next to nothing, so they bound nothing."""
    for k in range(count):
        v = prey.ranked[k]
        lost = 0.0 if extra_of(work, v) > 0 else prey.lost[v] + gpus_of(work, v) / 1000.0
        h = holds.head[v]
        while h >= 0:
            n, gpus = holds.node[h], holds.members[h] * work.need[GPUS, v]
            prey.rate[n] = min(prey.rate[n], lost / gpus if gpus > 0 else 0.0)
            h = holds.next[h]


@inner
def order_class(work: Work, prey: Prey, c: int) -> None:
    if not prey.class_done[c]:
        _order(work, prey, prey.ranked, prey.begin[c], prey.begin[c + 1])
        prey.class_done[c] = True


@inner
def order_node(work: Work, prey: Prey, n: int) -> None:
    if not prey.node_done[n]:
        _order(work, prey, prey.on_node, prey.start[n], prey.start[n + 1])
        prey.node_done[n] = True


@inner
def order_leaf(work: Work, prey: Prey, q: int) -> None:
    if not prey.leaf_done[q]:
        _order(work, prey, prey.in_leaf, prey.leaf_start[q], prey.leaf_start[q + 1])
        prey.leaf_done[q] = True


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
    """Ladder: least work lost, started last, lowest name."""
    if prey.lost[a] != prey.lost[b]:
        return prey.lost[a] > prey.lost[b]
    if work.started[a] != work.started[b]:
        return work.started[a] < work.started[b]
    return work.tie[a] > work.tie[b]


@inner
def _list_by_leaf(work: Work, prey: Prey, count: int) -> None:
    """Counting sort by queue."""
    start = prey.leaf_start
    for q in range(start.size):
        start[q] = 0
    for k in range(count):
        start[work.queue[prey.ranked[k]] + 2] += 1
    for q in range(2, start.size):
        start[q] += start[q - 1]
    for k in range(count):
        q = work.queue[prey.ranked[k]]
        prey.in_leaf[start[q + 1]] = prey.ranked[k]
        start[q + 1] += 1


@inner
def _list_by_node(holds: Holds, prey: Prey, count: int) -> None:
    """Counting sort of the victims' holds by node."""
    for n in range(prey.start.size):
        prey.start[n] = 0
    for k in range(count):
        h = holds.head[prey.ranked[k]]
        while h >= 0:
            prey.start[holds.node[h] + 2] += 1
            h = holds.next[h]
    for n in range(2, prey.start.size):
        prey.start[n] += prey.start[n - 1]
    for k in range(count):
        h = holds.head[prey.ranked[k]]
        while h >= 0:
            at = holds.node[h] + 1
            prey.on_node[prey.start[at]] = prey.ranked[k]
            prey.start[at] += 1
            h = holds.next[h]


@inner
def _weigh(work: Work, ranks: Ranks, rules: Rules, tree: Tree, prey: Prey, count: int) -> None:
    """What each leaf could lose; nobody's hunt has failed yet."""
    classes, queues = prey.biggest.shape
    for c in range(classes):
        for q in range(queues):
            prey.biggest[c, q] = 0
            prey.refused[c, q] = -1
            for p in range(prey.mass.shape[3]):
                prey.mass[LOOSE, c, q, p] = prey.mass[BOUND, c, q, p] = 0
    for k in range(count):
        v = prey.ranked[k]
        c, q = work.gpu_class[v], work.queue[v]
        weigh_in(work, ranks, rules, tree, prey, v, 1)
        while q >= 0:
            prey.biggest[c, q] = max(prey.biggest[c, q], gpus_of(work, v))
            q = tree.parent[q]
    _copy_mass(prey.mass, prey.kept_mass)


@inner
def relist(prey: Prey) -> None:
    """Nobody has been taken yet, of the same prey as in the plan before."""
    if prey.listed[0] == UNLISTED:
        return
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
def weigh_in(
    work: Work, ranks: Ranks, rules: Rules, tree: Tree, prey: Prey, v: int, sign: int
) -> None:
    """Add ``v`` to what its leaf could lose, or take it away. No time protects its extra members."""
    kind, c, q, p = (
        kind_of(work, ranks, rules, tree, v), work.gpu_class[v], work.queue[v], work.priority[v],
    )  # fmt: skip
    gpus, extra = work.need[GPUS, v], extra_of(work, v)
    prey.mass[LOOSE, c, q, p] += sign * gpus * (extra - prey.given[v])
    prey.mass[kind, c, q, p] += sign * gpus * (work.members[v] - extra)


@inner
def forget_given(work: Work, holds: Holds, out: Out, prey: Prey) -> None:
    """The notes of what was given up are for one cycle."""
    for k in range(out.used[0]):
        v = out.order[k]
        if work.phase[v] != RUNNING or prey.given[v] == 0:
            continue
        prey.given[v] = 0
        h = holds.head[v]
        while h >= 0:
            prey.gone[h] = 0
            h = holds.next[h]


@once
def extra_of(work: Work, v: int) -> int:
    """Members that an elastic gang can do without."""
    return max(0, work.members[v] - work.least[v]) if work.elastic[v] else 0


@inner
def kind_of(work: Work, ranks: Ranks, rules: Rules, tree: Tree, v: int) -> int:
    """Whether the shortest of the min run times that may shield ``v`` still does."""
    q, least = work.queue[v], np.inf
    while q > 0:
        own = tree.min_run[q]
        least = min(least, own if own >= 0.0 else ranks.min_run[work.priority[v]])
        q = tree.parent[q]
    return BOUND if rules.now < work.started[v] + least else LOOSE
