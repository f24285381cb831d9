"""Limits beside quota: workloads at once, what one user may hold, GPU-hours of a period.

Limits of a queue count what runs in it and all below it. They bound what leaves ask for as well, so
nobody is entitled to GPUs that a limit would leave idle.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.model import UNLIMITED
from scheduling.engine.state.input import Quotas, Rules, Tree, Users, Work
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.units import DAY_S, GPUS


@inner
def find_limits(tree: Tree, quotas: Quotas, rules: Rules, queues: Queues) -> None:
    """Which limits there are at all, so that nobody counts or looks in vain."""
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
            if used_hours(quotas, rules, q, c) >= quotas.budget_hours[c, q]:
                queues.limits.hours_spent[c] = 1


@inner
def used_hours(quotas: Quotas, rules: Rules, q: int, c: int) -> float:
    """GPU-hours used in the present period: none of those stated for one that is over."""
    over = 0.0 < quotas.period_ends[c, q] <= rules.now
    return 0.0 if over else quotas.used_hours[c, q]


@inner
def full_queue(tree: Tree, work: Work, queues: Queues, w: int) -> int:
    """The lowest queue that runs as many workloads as it may, -1 if none."""
    q = work.queue[w]
    while queues.limits.any and q > 0:
        if queues.usage.running[q] >= tree.most_running[q]:
            return q
        q = tree.parent[q]
    return -1


@inner
def user_limit(tree: Tree, work: Work, queues: Queues, users: Users, w: int, gpus: int) -> int:
    """The lowest queue in which ``gpus`` more would lift the user past a limit, -1 if none."""
    q, pair = work.queue[w], work.user[w]
    while queues.limits.any and q > 0:
        full = queues.usage.user_running[pair] >= tree.most_per_user[q]
        if full or queues.usage.user_gpus[pair] + gpus > tree.most_gpus_per_user[q]:
            return q
        q, pair = tree.parent[q], users.above[pair]
    return -1


@inner
def user_gpu_limit(tree: Tree, work: Work, queues: Queues, users: Users, w: int, gpus: int) -> int:
    """The lowest queue in which the user of ``w`` would hold more than it may, -1 if none."""
    q, pair = work.queue[w], work.user[w]
    while queues.limits.any and q > 0:
        if queues.usage.user_gpus[pair] + gpus > tree.most_gpus_per_user[q]:
            return q
        q, pair = tree.parent[q], users.above[pair]
    return -1


@inner
def pair_in(tree: Tree, work: Work, users: Users, w: int, x: int) -> int:
    """The pair of queue ``x``, above the queue of ``w``, and the user of ``w``."""
    q, pair = work.queue[w], work.user[w]
    while q != x:
        q, pair = tree.parent[q], users.above[pair]
    return pair


@inner
def spent_hours(tree: Tree, quotas: Quotas, rules: Rules, queues: Queues, q: int, c: int) -> int:
    """The lowest queue whose GPU-hours of class ``c`` are spent, -1 if none."""
    while queues.limits.hours_spent[c] and q > 0:
        if used_hours(quotas, rules, q, c) >= quotas.budget_hours[c, q]:
            return q
        q = tree.parent[q]
    return -1


@inner
def may_evict(work: Work, rules: Rules, w: int, need: int) -> float:
    """Milli-GPU that may still be evicted for ``w``, which asks for ``need``: the cap counts the wait."""
    return float(max(0.0, rules.eviction_cap * need - work.taken[w]))


@inner
def eviction_limit_reached(work: Work, rules: Rules, w: int) -> bool:
    """Evicted so often in the last day that it is spared, and borrows no more. A caller that counts on
    without looking (a simulated life) is held to a day since the last one.
    """
    is_past = -np.inf < work.evicted[w] <= rules.now - DAY_S
    return bool(work.evictions[w] >= rules.max_evictions and not is_past)


@inner
def limit_too_low(tree: Tree, quotas: Quotas, work: Work, queues: Queues, w: int, c: int) -> int:
    """The lowest queue whose limit is below the least the gang needs, -1 if none."""
    need = work.least[w] * work.need[GPUS, w]
    q = work.queue[w]
    if need <= queues.limits.ceiling[c, q]:
        return -1
    while q > 0:
        if quotas.cap[c, q] < need:
            return q
        q = tree.parent[q]
    return -1
