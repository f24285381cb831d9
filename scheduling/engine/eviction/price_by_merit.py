"""Which work may leave by merit, and what each eviction is weighed with.

Nobody leaves within their min run time, above their priority's head, or once they were evicted as often as
the policy allows. They leave soon after a checkpoint or their start, so little work is lost.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.rules import (
    VictimRequest,
    had_risen,
    in_budget,
    protected_until,
)
from scheduling.engine.order.by_merit import expected_of, lead_of
from scheduling.engine.quota.limits import eviction_limit_reached
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Tree, Work, core_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.victims import Candidates

AHEAD_S, AHEAD_FRESH_S = 7200.0, 300.0
"""Work further ahead of its own quota may leave for late work, as soon after a checkpoint or start."""
TIMES_LONGER, LONGER_FRESH_S = 10.0, 120.0
"""What expects so many times the work may leave, as soon after one."""
PER_EVICTION, PER_LATE = 900.0, 20_000.0
"""GPU-seconds that an eviction is weighed with beside its lost work; one of a workload that is not AHEAD_S
ahead in addition.
"""
SILENT_S = 7200.0
"""Of work without a checkpoint for longer none is to be waited for: it may leave at any time."""


@inner
def price_all(world: Session, request: VictimRequest) -> bool:
    """What each eviction would be weighed with, infinite where it may not be; whether any may."""
    tree, work, candidates, now = world.tree, world.work, world.candidates, world.rules.now
    running, price, any_may = world.ordering.running, candidates.merit.price, False
    for k in range(running.size[0]):
        v = running.slot[k]
        price[v] = np.inf
        if _may_leave(world, request, v):
            price[v] = _price(tree, work, candidates, v, now)
            any_may = True
    return any_may


@inner
def _may_leave(world: Session, request: VictimRequest, v: int) -> bool:
    ranks, rules = world.ranks, world.rules
    tree, work, now = world.tree, world.work, rules.now
    if not _is_below(tree, work, request, v) or not _is_there(work, world.candidates, world.out, v):
        return False
    if (
        eviction_limit_reached(work, rules, v)
        or work.started[v] >= now
        or had_risen(work, ranks, v)
    ):
        return False
    value, rank = ranks.value, work.priority
    expected = world.ordering.merit.expected[request.w]
    if value[rank[v]] > value[rank[request.w]] or not _is_worth_it(tree, work, v, expected, now):
        return False
    is_over = now >= protected_until(world, request, v)
    return bool(is_over and in_budget(tree, world.queues, work.queue[v], core_of(work, v)))


@inner
def _is_below(tree: Tree, work: Work, request: VictimRequest, v: int) -> bool:
    """It runs on the class, in the subtree of the request."""
    q = work.queue[v]
    if work.gpu_class[v] != request.c or q < 0:
        return False
    return bool(tree.sharing.top[q] == request.top)


@inner
def _is_there(work: Work, candidates: Candidates, out: Decisions, v: int) -> bool:
    """It is a candidate, whole, and nothing is decided on it."""
    if candidates.listed_in[v] != candidates.number[0] or work.leaving[v]:
        return False
    if candidates.log.leaves[v] or candidates.log.members_given[v] != 0:
        return False
    return bool(out.action[v] == codes.UNDECIDED)


@inner
def _is_worth_it(tree: Tree, work: Work, v: int, expected: float, now: float) -> bool:
    """It is well ahead of its own quota, or is far longer than the ``expected`` work of whom it leaves for,
    and little of it is lost.
    """
    lost_s = now - max(work.started[v], work.checkpointed[v])
    silent = lost_s > SILENT_S
    is_longer = TIMES_LONGER * expected < expected_of(tree, work, v) < np.inf
    if is_longer and (lost_s <= LONGER_FRESH_S or silent):
        return True
    promises = tree.sharing.rule[work.queue[v]] == codes.PROMISE
    fresh = lost_s <= AHEAD_FRESH_S or silent
    return bool(promises and fresh and lead_of(work, v, now) > AHEAD_S)


@inner
def _price(tree: Tree, work: Work, candidates: Candidates, v: int, now: float) -> float:
    price = PER_EVICTION + candidates.lost_gpu_s[v]
    promises = tree.sharing.rule[work.queue[v]] == codes.PROMISE
    if promises and lead_of(work, v, now) < AHEAD_S:
        price += PER_LATE
    return float(price)
