"""Limits beside quota: workloads at once, what one user may hold, GPU-hours of a period.

Limits of a queue count what runs in it and all below it. They bound what leaves ask for as well, so
nobody is entitled to GPUs that a limit would leave idle.
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.model import UNLIMITED
from scheduling.engine.state.session import World
from scheduling.engine.state.units import GPUS


@inner
def find_limits(world: World) -> None:
    """Which limits there are at all, so that nobody counts or looks in vain."""
    tree, quotas, book = world.tree, world.quotas, world.book
    book.limited[0] = 0
    for q in range(tree.parent.size):
        most = min(tree.most_running[q], tree.most_per_user[q], tree.most_gpus_per_user[q])
        if most < UNLIMITED:
            book.limited[0] = 1
    for c in range(book.ceiling.shape[0]):
        book.rationed[c], book.ceiling[c, 0] = 0, UNLIMITED
        for q in range(1, tree.parent.size):
            book.ceiling[c, q] = min(quotas.cap[c, q], book.ceiling[c, tree.parent[q]])
            if used_hours(world, q, c) >= quotas.budget_hours[c, q]:
                book.rationed[c] = 1


@once
def used_hours(world: World, q: int, c: int) -> float:
    """GPU-hours used in the present period: none of those stated for one that is over."""
    quotas = world.quotas
    over = 0.0 < quotas.period_ends[c, q] <= world.rules.now
    return 0.0 if over else quotas.used_hours[c, q]


@inner
def full_queue(world: World, w: int) -> int:
    """The lowest queue that runs as many workloads as it may, -1 if none."""
    q = world.work.queue[w]
    while world.book.limited[0] and q > 0:
        if world.book.running[q] >= world.tree.most_running[q]:
            return q
        q = world.tree.parent[q]
    return -1


@inner
def user_limit(world: World, w: int, gpus: int) -> int:
    """The lowest queue in which ``gpus`` more would lift the user past a limit, -1 if none."""
    tree, book = world.tree, world.book
    q, pair = world.work.queue[w], world.work.user[w]
    while book.limited[0] and q > 0:
        full = book.user_running[pair] >= tree.most_per_user[q]
        if full or book.user_gpus[pair] + gpus > tree.most_gpus_per_user[q]:
            return q
        q, pair = tree.parent[q], world.users.above[pair]
    return -1


@inner
def user_gpu_limit(world: World, w: int, gpus: int) -> int:
    """The lowest queue in which the user of ``w`` would hold more than it may, -1 if none."""
    q, pair = world.work.queue[w], world.work.user[w]
    while world.book.limited[0] and q > 0:
        if world.book.user_gpus[pair] + gpus > world.tree.most_gpus_per_user[q]:
            return q
        q, pair = world.tree.parent[q], world.users.above[pair]
    return -1


@inner
def pair_in(world: World, w: int, x: int) -> int:
    """The pair of queue ``x``, above the queue of ``w``, and the user of ``w``."""
    q, pair = world.work.queue[w], world.work.user[w]
    while q != x:
        q, pair = world.tree.parent[q], world.users.above[pair]
    return pair


@inner
def spent_hours(world: World, q: int, c: int) -> int:
    """The lowest queue whose GPU-hours of class ``c`` are spent, -1 if none."""
    while world.book.rationed[c] and q > 0:
        if used_hours(world, q, c) >= world.quotas.budget_hours[c, q]:
            return q
        q = world.tree.parent[q]
    return -1


@once
def is_worn(world: World, w: int) -> bool:
    """Evicted so often that it is spared, and borrows no more."""
    return world.work.evictions[w] >= world.rules.max_evictions


@inner
def limit_too_low(world: World, w: int, c: int) -> int:
    """The lowest queue whose limit is below the least the gang needs, -1 if none."""
    need = world.work.least[w] * world.work.need[GPUS, w]
    q = world.work.queue[w]
    if need <= world.book.ceiling[c, q]:
        return -1
    while q > 0:
        if world.quotas.cap[c, q] < need:
            return q
        q = world.tree.parent[q]
    return -1
