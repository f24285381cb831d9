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
from scheduling.engine.state.units import DAY_S


@inner
def find_limits(tree: Tree, quotas: Quotas, rules: Rules, queues: Queues) -> None:
    """Which limits there are at all, so that nobody counts or looks in vain."""
    queues.limits.any = 0
    for q in range(tree.parent.size):
        most = min(tree.most_running[q], tree.most_per_user[q], tree.most_gpus_per_user[q])
        if most < UNLIMITED:
            queues.limits.any = 1
    ceiling = queues.limits.ceiling
    for c in range(ceiling.shape[0]):
        queues.limits.hours_spent[c], ceiling[c, 0] = 0, UNLIMITED
        for q in range(1, tree.parent.size):
            ceiling[c, q] = min(quotas.cap[c, q], ceiling[c, tree.parent[q]])
            if are_hours_spent(quotas, rules, q, c):
                queues.limits.hours_spent[c] = 1


@inner
def used_hours(quotas: Quotas, rules: Rules, q: int, c: int) -> float:
    """GPU-hours used in the present period: none of those stated for one that is over."""
    over = 0.0 < quotas.period_ends[c, q] <= rules.now
    return 0.0 if over else quotas.used_hours[c, q]


@inner
def are_hours_spent(quotas: Quotas, rules: Rules, q: int, c: int) -> bool:
    """Whether queue ``q`` has used the GPU-hours of class ``c`` that the present period has."""
    return bool(used_hours(quotas, rules, q, c) >= quotas.budget_hours[c, q])


@inner
def pair_in(tree: Tree, work: Work, users: Users, w: int, x: int) -> int:
    """The pair of queue ``x``, above the queue of ``w``, and the user of ``w``."""
    q, pair = work.queue[w], work.user[w]
    while q != x:
        q, pair = tree.parent[q], users.above[pair]
    return pair


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
