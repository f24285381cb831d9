"""Limits beside quota: workloads at once, what one user may hold, GPU-hours of a period.

Limits of a queue count what runs in it and all below it. They bound what leaves ask for as well, so
nobody is entitled to GPUs that a limit would leave idle.
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.model import UNLIMITED
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS


@inner
def find_limits(world: Session) -> None:
    """Which limits there are at all, so that nobody counts or looks in vain."""
    tree, quotas, queues = world.tree, world.quotas, world.queues
    queues.limits.any = 0
    for q in range(tree.parent.size):
        most = min(tree.most_running[q], tree.most_per_user[q], tree.most_gpus_per_user[q])
        if most < UNLIMITED:
            queues.limits.any = 1
    for c in range(queues.limits.ceiling.shape[0]):
        queues.limits.hours_spent[c], queues.limits.ceiling[c, 0] = 0, UNLIMITED
        for q in range(1, tree.parent.size):
            queues.limits.ceiling[c, q] = min(
                quotas.cap[c, q], queues.limits.ceiling[c, tree.parent[q]]
            )
            if used_hours(world, q, c) >= quotas.budget_hours[c, q]:
                queues.limits.hours_spent[c] = 1


@once
def used_hours(world: Session, q: int, c: int) -> float:
    """GPU-hours used in the present period: none of those stated for one that is over."""
    quotas = world.quotas
    over = 0.0 < quotas.period_ends[c, q] <= world.rules.now
    return 0.0 if over else quotas.used_hours[c, q]


@inner
def full_queue(world: Session, w: int) -> int:
    """The lowest queue that runs as many workloads as it may, -1 if none."""
    q = world.work.queue[w]
    while world.queues.limits.any and q > 0:
        if world.queues.usage.running[q] >= world.tree.most_running[q]:
            return q
        q = world.tree.parent[q]
    return -1


@inner
def user_limit(world: Session, w: int, gpus: int) -> int:
    """The lowest queue in which ``gpus`` more would lift the user past a limit, -1 if none."""
    tree, queues = world.tree, world.queues
    q, pair = world.work.queue[w], world.work.user[w]
    while queues.limits.any and q > 0:
        full = queues.usage.user_running[pair] >= tree.most_per_user[q]
        if full or queues.usage.user_gpus[pair] + gpus > tree.most_gpus_per_user[q]:
            return q
        q, pair = tree.parent[q], world.users.above[pair]
    return -1


@inner
def user_gpu_limit(world: Session, w: int, gpus: int) -> int:
    """The lowest queue in which the user of ``w`` would hold more than it may, -1 if none."""
    q, pair = world.work.queue[w], world.work.user[w]
    while world.queues.limits.any and q > 0:
        if world.queues.usage.user_gpus[pair] + gpus > world.tree.most_gpus_per_user[q]:
            return q
        q, pair = world.tree.parent[q], world.users.above[pair]
    return -1


@inner
def pair_in(world: Session, w: int, x: int) -> int:
    """The pair of queue ``x``, above the queue of ``w``, and the user of ``w``."""
    q, pair = world.work.queue[w], world.work.user[w]
    while q != x:
        q, pair = world.tree.parent[q], world.users.above[pair]
    return pair


@inner
def spent_hours(world: Session, q: int, c: int) -> int:
    """The lowest queue whose GPU-hours of class ``c`` are spent, -1 if none."""
    while world.queues.limits.hours_spent[c] and q > 0:
        if used_hours(world, q, c) >= world.quotas.budget_hours[c, q]:
            return q
        q = world.tree.parent[q]
    return -1


@once
def eviction_limit_reached(world: Session, w: int) -> bool:
    """Evicted so often that it is spared, and borrows no more."""
    return world.work.evictions[w] >= world.rules.max_evictions


@inner
def limit_too_low(world: Session, w: int, c: int) -> int:
    """The lowest queue whose limit is below the least the gang needs, -1 if none."""
    need = world.work.least[w] * world.work.need[GPUS, w]
    q = world.work.queue[w]
    if need <= world.queues.limits.ceiling[c, q]:
        return -1
    while q > 0:
        if world.quotas.cap[c, q] < need:
            return q
        q = world.tree.parent[q]
    return -1
