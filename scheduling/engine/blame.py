"""Why a workload does not start: the first rule that stopped it, and the numbers behind it."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.arrays import ANYWHERE, BACKFILL, CPUS, EPS, GPUS, MEMORY, NOW, RAW
from scheduling.engine.compiled import inner, once
from scheduling.engine.index import free_to, row_of, tally
from scheduling.engine.limits import full_queue, pair_in, spent_hours, used_hours, user_limit
from scheduling.engine.placement import reach_of
from scheduling.engine.record import decide, quote
from scheduling.engine.seating import free_of, may_use, slots_of_gpus
from scheduling.engine.standing import (
    is_worn,
    kept_from,
    levels_over,
    over_limit,
    over_nominal,
    takes_kept,
    tamed,
)
from scheduling.engine.world import World


@inner
def conclude(world: World, w: int, c: int, first: int) -> None:
    """Decide that ``w`` waits, for what stands against it on class ``c``.

    ``first`` is the workload of its queue that goes before it, -1 if none: that is the reason only
    where nothing else is.
    """
    need = world.work.least[w] * world.work.need[GPUS, w]
    reason = _limit_reason(world, w, need)
    if reason < 0:
        reason = _quota_reason(world, w, c, need)
    if reason < 0:
        reason = _room_reason(world, w, c, need)
    if reason < 0 and first >= 0:
        reason = _turn_reason(world, w, c, first)
    decide(world.out, w, codes.WAIT, reason if reason >= 0 else codes.FRAGMENTED, c, 0)


@inner
def _limit_reason(world: World, w: int, need: int) -> int:
    """The limit on workloads or users that stands against it; -1 if none does."""
    book, tree = world.book, world.tree
    x = full_queue(world, w)
    if x >= 0:
        quote(world.out, w, x, book.running[x], tree.most_running[x], 0.0, 0.0)
        return codes.QUEUE_AT_JOB_LIMIT
    x = user_limit(world, w, need)
    if x < 0:
        return -1
    pair = pair_in(world, w, x)
    running, most = book.user_running[pair], tree.most_per_user[x]
    quote(world.out, w, x, running, most, book.user_gpus[pair], tree.most_gpus_per_user[x])
    return codes.USER_AT_LIMIT


@inner
def blame_hours(world: World, w: int, c: int) -> None:
    """``w`` cannot start before the next period: the GPU-hours of class ``c`` are spent."""
    x = spent_hours(world, world.work.queue[w], c)
    quotas, out = world.quotas, world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.HOURS_SPENT, c
    quote(out, w, x, used_hours(world, x, c), quotas.budget_hours[c, x], 0.0, 0.0)
    out.until[w] = quotas.period_ends[c, x] if quotas.period_ends[c, x] > world.rules.now else 0.0


@inner
def _quota_reason(world: World, w: int, c: int, need: int) -> int:
    """The limit, the nominal or the share that ``need`` would pass; -1 if none stands against it."""
    q = world.work.queue[w]
    book, quotas, out = world.book, world.quotas, world.out
    if spent_hours(world, q, c) >= 0:
        blame_hours(world, w, c)
        return codes.HOURS_SPENT
    x = over_limit(world, q, c, need)
    if x >= 0:
        quote(out, w, x, book.held[c, x], quotas.cap[c, x], need, quotas.limit[c, x])
        return codes.AT_LIMIT
    fixed = not world.ranks.preemptible[world.work.priority[w]]
    x = over_nominal(world, q, c, need) if fixed else -1
    if x >= 0:
        quote(out, w, x, book.fixed[c, x], quotas.nominal[c, x], need, world.division.fair[c, x])
        return codes.NON_PREEMPTIBLE
    over = levels_over(world.tree, book, world.division, q, c, need)
    return _share_reason(world, w, c, need) if over > 0 else -1


@inner
def _share_reason(world: World, w: int, c: int, need: int) -> int:
    """Why ``need``, which passes a share, is not borrowed; -1 if it might be."""
    q, book, out = world.work.queue[w], world.book, world.out
    free = _free(world, c)
    if free >= need and _is_left_to_another(world, w, c, need):
        return codes.RESERVED_FOR_OTHER
    kept = takes_kept(world, q, c, need)
    left = kept < 0 and free >= need
    if left and not is_worn(world, w):
        return -1
    x = _lowest_over(world, q, c, need)
    fair = world.division.fair[c, x]
    quote(out, w, x, book.held[c, x], fair, need, free)
    out.figures[w, 4] = kept_from(world, q, c, need, kept) if kept >= 0 else 0
    out.figures[w, 5] = world.work.evictions[w] if left else 0.0
    return codes.ABOVE_FAIR_SHARE if book.held[c, x] > fair + EPS else codes.WAITS_FOR_QUOTA


@once
def _is_left_to_another(world: World, w: int, c: int, need: int) -> bool:
    """Whether a queue above ``w`` passes its share no more, so that others are not evicted for it."""
    x = tamed(world, world.work.queue[w], c, need)
    if x >= 0:
        world.out.rival[w] = world.book.tame[c, x]
        quote(world.out, w, x, 0.0, need, 0.0, 0.0)
    return bool(x >= 0)


@once
def _lowest_over(world: World, q: int, c: int, need: int) -> int:
    while world.book.held[c, q] + need <= world.division.fair[c, q] + EPS:
        q = world.tree.parent[q]
    return q


@inner
def _free(world: World, c: int) -> int:
    """Unclaimed free GPUs of class ``c``, shares of GPUs included."""
    tally(world, c)
    return int(world.index.free_sum[c])


@inner
def _room_reason(world: World, w: int, c: int, need: int) -> int:
    """The quota would allow it: too few free, none unclaimed, the wrong domain, or scattered; of the nodes
    that it may use.
    """
    work, index, out = world.work, world.index, world.out
    free, some = free_to(world, w, c)
    least = work.least[w]
    raw = index.total[row_of(world, w, c, RAW)]
    row = row_of(world, w, c, NOW)
    slots = index.total[row]
    quote(out, w, work.queue[w], free, need, some, slots)
    first = _kept_for(world, w, c) if raw >= least and slots < least else -1
    if first >= 0:
        out.rival[w] = first
        until = world.book.holder_until[c] if world.book.holder[c] == first else np.inf
        out.figures[w, 4] = _seconds_to(world, until)
        return codes.RESERVED_FOR_OTHER
    if free < need or slots < least:
        lack = codes.NO_FREE_GPUS if free < need else _lack_beside_gpus(world, w, c)
        scarce = lack in (codes.NO_FREE_GPUS, codes.FRAGMENTED)
        return codes.NO_ROOM_ON_ITS_NODES if scarce and _count_nodes(world, w, c) else lack
    if work.required[w] == ANYWHERE:
        return -1
    many = reach_of(world, row, c, work.required[w], least)
    out.figures[w, 4] = many
    return codes.NO_ROOM_IN_TOPOLOGY if many < least else -1


@inner
def _count_nodes(world: World, w: int, c: int) -> bool:
    """Whether ``w`` may use some nodes of class ``c`` only: quotes how many, of how many."""
    nodes, many = world.nodes, 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        many += int(may_use(world.room, world.work, w, nodes.of_class[i]))
    every = nodes.class_start[c + 1] - nodes.class_start[c]
    if many < every:
        world.out.figures[w, 4], world.out.figures[w, 5] = many, every
    return bool(many < every)


@once
def _lack_beside_gpus(world: World, w: int, c: int) -> int:
    """The free GPUs are scattered; or they lie so that the least members would fit, but their nodes lack
    CPUs or memory: quotes what a member needs and the most that such a node has left.
    """
    work, nodes, room, out = world.work, world.nodes, world.room, world.out
    by_gpus = 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        by_gpus += slots_of_gpus(room, work, w, nodes.of_class[i], NOW)
    if by_gpus < work.least[w]:
        return codes.FRAGMENTED
    for r in (CPUS, MEMORY):
        slots, most = _slots_beside(world, w, c, r)
        if slots < work.least[w] or r == MEMORY:
            out.figures[w, 4], out.figures[w, 5] = work.need[r, w], most
            return codes.NO_FREE_CPUS if r == CPUS else codes.NO_FREE_MEMORY
    return codes.FRAGMENTED


@inner
def _slots_beside(world: World, w: int, c: int, r: int) -> tuple[int, int]:
    """Members that fit by GPUs and resource ``r``, and the most of it on a node that lacks it."""
    work, nodes, room = world.work, world.nodes, world.room
    found, most, need = 0, 0, max(1, work.need[r, w])
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        slots, free = slots_of_gpus(room, work, w, n, NOW), max(0, free_of(room, r, n, NOW))
        if free // need < slots:
            slots, most = free // need, max(most, free)
        found += slots
    return found, most


@once
def _kept_for(world: World, w: int, c: int) -> int:
    """Who has claimed free GPUs that ``w`` could use: the holder of nodes, else the first who was promised
    room; -1 if nobody.
    """
    holder, promised = world.book.holder[c], world.book.promised[c]
    if holder < 0 or promised < 0:
        return max(holder, promised)
    unpromised = world.index.total[row_of(world, w, c, BACKFILL)]
    return holder if unpromised >= world.work.least[w] else promised


@inner
def _turn_reason(world: World, w: int, c: int, first: int) -> int:
    q = world.work.queue[w]
    need = world.work.least[first] * world.work.need[GPUS, first]
    until = world.book.turn_until[c, q] if world.book.turn[c, q] == first else np.inf
    soon = _seconds_to(world, until)
    quote(world.out, w, q, world.book.held[c, q], world.division.fair[c, q], need, soon)
    world.out.rival[w] = first
    return codes.WAITS_FOR_TURN


@once
def _seconds_to(world: World, until: float) -> float:
    """0 if nobody knows."""
    return max(0.0, until - world.rules.now) if until < np.inf else 0.0


@inner
def never(world: World, w: int, c: int, x: int) -> None:
    """``w`` can never start: queue ``x`` allows too little, or (-1) the nodes are too few or small."""
    need = world.work.least[w] * world.work.need[GPUS, w]
    out = world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.NEVER_FITS, c
    most = world.quotas.cap[c, x] if x >= 0 else world.nodes.capacity[c]
    quote(out, w, x, need, most, world.work.least[w], world.work.need[GPUS, w])
    if x < 0:
        _count_nodes(world, w, c)
