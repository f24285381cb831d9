"""Whom an eviction could take: running preemptible work, listed when first somebody searches in a cycle."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.state.decisions import Decisions
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
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, RUNNING
from scheduling.engine.state.victims import BOUND, LOOSE, UNRATED, Candidates


@inner
def ensure_candidates(world: Session) -> None:
    """List them if nobody did so in this cycle."""
    if not world.candidates.ready[0]:
        list_candidates(
            world.work, world.ranks, world.rules, world.tree, world.ordering, world.out.action,
            world.candidates,
        )  # fmt: skip


@inner
def list_candidates(
    work: Work,
    ranks: Ranks,
    rules: Rules,
    tree: Tree,
    ordering: Ordering,
    action: Ints,
    candidates: Candidates,
) -> None:
    """Fill ``candidates`` by leaf, and say what each leaf could lose. Left out is whom this cycle has decided
    on (``action``) already. Nobody's search has failed yet.
    """
    _forget(candidates)
    count = 0
    for q in range(tree.parent.size):
        candidates.leaf_begin[q] = count
        if ordering.running.queue_begin[q + 1] == ordering.running.queue_begin[q + 2]:
            continue
        find_shields(tree, ranks, candidates, q)
        for k in range(ordering.running.queue_begin[q + 1], ordering.running.queue_begin[q + 2]):
            w = ordering.running.slot[k]
            p = work.priority[w]
            candidates.log.leaves[w] = False
            if work.leaving[w] or action[w] != codes.UNDECIDED or p < 0 or not ranks.preemptible[p]:
                continue
            candidates.slot[count], candidates.listed_in[w] = w, candidates.number[0]
            candidates.lost_gpu_s[w] = work_lost(work, w, work.members[w], rules.now)
            _weigh_in(work, rules, candidates, w)
            count += 1
        _set_prices(work, ranks, rules, candidates, candidates.leaf_begin[q], count)
    candidates.leaf_begin[tree.parent.size] = count
    _sum_up(tree, candidates)
    _copy_mass(candidates.by_queue.evictable, candidates.by_queue.evictable_at_start)


@inner
def _set_prices(
    work: Work, ranks: Ranks, rules: Rules, candidates: Candidates, first: int, last: int
) -> None:
    """The price of candidates of one leaf, whose shields are found, is the work it loses; but none is cheaper
    than what runs there at a lower priority, however many GPUs that holds, which cost a second each: inside
    the queue that gives back, that leaves first.
    """
    dearest = candidates.dearest
    dearest.fill(-1.0)
    for k in range(first, last):
        w = candidates.slot[k]
        c, p = work.gpu_class[w], work.priority[w]
        candidates.price[w] = candidates.lost_gpu_s[w]
        if rules.now >= work.started[w] + candidates.shortest_min_run_s[p]:
            lost = candidates.lost_gpu_s[w] + gpus_of(work, w) / 1000.0
            dearest[c, p] = max(dearest[c, p], lost)
    for k in range(first, last):
        w = candidates.slot[k]
        for p in range(dearest.shape[1]):
            below = dearest[work.gpu_class[w], p]
            if below >= 0.0 and ranks.value[p] < ranks.value[work.priority[w]]:
                candidates.price[w] = max(candidates.price[w], below + 1.0)


@inner
def _weigh_in(work: Work, rules: Rules, candidates: Candidates, w: int) -> None:
    """What its leaf, whose shields are found, could lose with ``w``."""
    c, q, p = work.gpu_class[w], work.queue[w], work.priority[w]
    one, gpus = work.need[GPUS, w], gpus_of(work, w)
    extra = one * extra_of(work, w)
    bound = rules.now < work.started[w] + candidates.shortest_min_run_s[p]
    candidates.size_of_class[c] += 1
    candidates.by_queue.unbounded[q] = candidates.by_queue.unbounded[q] or extra > 0 or one < ONE
    candidates.by_queue.evictable[LOOSE, c, q, p] += extra - one * candidates.log.members_given[w]
    candidates.by_queue.evictable[BOUND if bound else LOOSE, c, q, p] += gpus - extra
    candidates.by_queue.largest_gang[c, q] = max(candidates.by_queue.largest_gang[c, q], gpus)


@inner
def _forget(candidates: Candidates) -> None:
    candidates.ready[0], candidates.bounds.rated[0] = True, UNRATED
    candidates.number[0] += 1
    candidates.order.node_used[0] = 0
    candidates.order.node_sorted.fill(False)
    candidates.order.leaf_sorted.fill(False)
    candidates.by_queue.unbounded.fill(False)
    candidates.size_of_class.fill(0)
    candidates.by_queue.largest_gang.fill(0)
    candidates.by_queue.evictable.fill(0)
    candidates.failed.slot.fill(-1)


@inner
def find_shields(tree: Tree, ranks: Ranks, candidates: Candidates, leaf: int) -> None:
    for p in range(ranks.min_run.size):
        candidates.shortest_min_run_s[p] = _shield(tree, ranks, leaf, p)


@inner
def _shield(tree: Tree, ranks: Ranks, leaf: int, p: int) -> float:
    """The shortest of the min run times that may shield work of ``leaf`` from any search."""
    q, least = leaf, np.inf
    while q > 0:
        own = tree.min_run[q]
        least = min(least, own if own >= 0.0 else ranks.min_run[p])
        q = tree.parent[q]
    return least


@inner
def _sum_up(tree: Tree, candidates: Candidates) -> None:
    largest = candidates.by_queue.largest_gang
    for c in range(largest.shape[0]):
        for q in range(tree.parent.size - 1, 0, -1):
            above = tree.parent[q]
            largest[c, above] = max(largest[c, above], largest[c, q])


@inner
def forget_candidates(candidates: Candidates) -> None:
    """The first search of this cycle lists them anew."""
    candidates.ready[0] = False


@inner
def reset_candidates(candidates: Candidates) -> None:
    """Nobody has been taken yet, of the same candidates as in the plan before."""
    if not candidates.ready[0]:
        return
    candidates.bounds.rated[0] = UNRATED
    _copy_mass(candidates.by_queue.evictable_at_start, candidates.by_queue.evictable)
    candidates.failed.slot.fill(-1)


@inner
def _copy_mass(mass: Ints, to: Ints) -> None:
    for kind in range(mass.shape[0]):
        for c in range(mass.shape[1]):
            for q in range(mass.shape[2]):
                for p in range(mass.shape[3]):
                    to[kind, c, q, p] = mass[kind, c, q, p]


@inner
def drop_weight(
    work: Work, ranks: Ranks, rules: Rules, tree: Tree, candidates: Candidates, v: int, sign: int
) -> None:
    """No later search of this cycle can take ``v`` (``sign`` 1), or one can after all (-1). No time protects
    its extra members.
    """
    c, q, p = work.gpu_class[v], work.queue[v], work.priority[v]
    gpus, extra, mass = sign * work.need[GPUS, v], extra_of(work, v), candidates.by_queue.evictable
    bound = rules.now < work.started[v] + _shield(tree, ranks, q, p)
    mass[LOOSE, c, q, p] -= gpus * (extra - candidates.log.members_given[v])
    mass[BOUND if bound else LOOSE, c, q, p] -= gpus * (work.members[v] - extra)


@inner
def forget_given(work: Work, holds: Holds, out: Decisions, candidates: Candidates) -> None:
    """The notes of what was given up are for one cycle, and so is a list in which somebody has less to
    lose for it.
    """
    for k in range(out.size[0]):
        v = out.order[k]
        if work.phase[v] != RUNNING or candidates.log.members_given[v] == 0:
            continue
        candidates.log.members_given[v], candidates.ready[0] = 0, False
        h = holds.head[v]
        while h >= 0:
            candidates.log.members_given_on[h] = 0
            h = holds.next[h]
