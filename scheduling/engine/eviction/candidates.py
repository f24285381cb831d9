"""Whom an eviction could take: running preemptible work, listed when first somebody hunts in a cycle."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Ints
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.state.decisions import Out
from scheduling.engine.state.input import (
    Holds,
    Ranks,
    Rules,
    Tree,
    Work,
    extra_of,
    gpus_of,
    work_lost,
)
from scheduling.engine.state.order import Line
from scheduling.engine.state.units import GPUS, RUNNING
from scheduling.engine.state.victims import BOUND, LOOSE, UNRATED, Prey


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
