"""The act on one victim: whether the rules allow it, what it gives back. Elastic gangs above their least
members give members up before anybody is evicted.

Reclaim takes from another queue only what lies above fair share in every queue between the victim and
the common ancestor. Preempt takes lower priority inside the same leaf. Where neither is enough alone, one
search does both. All spare work inside its min run time, everybody for a while after the workload was
evicted itself, but for what nominal owes, queues whose eviction budget is spent, and what would pass the
eviction cap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.codes import SHRINK
from scheduling.engine.compile.kernel import inner
from scheduling.engine.order.by_merit import by_merit
from scheduling.engine.quota.fair_share import (
    PLAIN,
    ROUNDED,
    below_nominal,
    branch_of,
    common_ancestor,
    grace_over,
    is_below,
    kept_by,
)
from scheduling.engine.quota.limits import eviction_limit_reached, may_evict
from scheduling.engine.quota.standing import owes
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Ranks, Rules, Tree, Work, core_of, extra_of, need_of
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.roles import unit_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import LEAVES

RECLAIM, PREEMPT, BOTH, BOTH_OWED = 0, 1, 2, 3
MOVES, MIXED, OWN_TOO = 4, 5, 6
"""What an attempt is made by beside RECLAIM (``search``): others move; they move beside a reclaim; lower
priority of the own queue leaves too, by PREEMPT inside the leaf and by BOTH or BOTH_OWED above it.
"""
STRICT, DELAY, PROTECTED, BUDGET, CAP, EACH_BUDGET = 0, 1, 2, 3, 4, 5
"""What a search overlooks: nothing; how long the workload has to wait before; beyond that, protection of
victims by time, the queues' budgets, or the eviction cap; or budgets until the needless are put back.
"""

NOTHING, SOME, ALL = 0, 1, 2
"""At how many meeting points with others what they hold above their shares is owed to the workload."""


class VictimRequest(NamedTuple):
    """One search: for workload ``w`` on class ``c``, by ``rule``, below queue ``top``.

    For BOTH the victims have to leave the queues of ``w`` below ``top`` inside their shares, for BOTH_OWED
    inside their nominal. ``owed``: where its nominal covers what it asks for (``candidates.owing``), gangs
    that lie partly inside the victim's fair share, and those evicted often, may be taken. ``need``: milli-GPU
    the workload asks for. ``hasty``: it has waited long enough only for what is owed to it. ``stretch``: what
    a reclaim may do where nothing else does, see above. ``seat``: the slot with what a member needs for which
    a seat is sought: ``w`` itself, or that of one of its roles.
    """

    w: int
    c: int
    rule: int
    top: int
    owed: bool
    overlook: int
    need: int
    hasty: bool
    stretch: int
    seat: int


@inner
def asking(
    work: Work, w: int, c: int, rule: int, top: int, owed: bool, overlook: int
) -> VictimRequest:
    """For ``w`` on class ``c``, up to fair shares."""
    need = need_of(work, w)
    return VictimRequest(w, c, rule, top, owed, overlook, need, False, PLAIN, w)


@inner
def for_role(request: VictimRequest, seat: int) -> VictimRequest:
    """The same search, for members of that shape."""
    return _changed(request, request.rule, request.overlook, request.hasty, seat)


@inner
def overlooking(request: VictimRequest, overlook: int) -> VictimRequest:
    """The same search, which overlooks something else."""
    return _changed(request, request.rule, overlook, request.hasty, request.seat)


@inner
def hasty(request: VictimRequest) -> VictimRequest:
    """The same for one that has waited long enough only for what is owed to it."""
    rule = BOTH_OWED if request.rule == BOTH else request.rule
    return _changed(request, rule, request.overlook, rule == RECLAIM, request.seat)


@inner
def _changed(
    request: VictimRequest, rule: int, overlook: int, hasty: bool, seat: int
) -> VictimRequest:
    return VictimRequest(
        request.w, request.c, rule, request.top, request.owed, overlook, request.need,
        hasty, request.stretch, seat,
    )  # fmt: skip


@inner
def held_by(work: Work, out: Decisions, v: int) -> int:
    """Milli-GPU of ``v`` but for what it has given up for others in this cycle."""
    shrunk = out.action[v] == SHRINK
    members = out.members[v] if shrunk else work.members[v]
    return members * work.need[GPUS, v]


@inner
def protected_until(world: Session, request: VictimRequest, v: int) -> float:
    """When ``v`` may go for the workload: no shield left, and the grace of a lowered quota over."""
    tree, work, ranks, rules = world.tree, world.work, world.ranks, world.rules
    return max(
        shielded_until(tree, work, ranks, rules, world.candidates, request, v),
        grace_over(world, request.c, work.queue[v]),
    )


@inner
def shielded_until(
    tree: Tree, work: Work, ranks: Ranks, rules: Rules, candidates: Candidates,
    request: VictimRequest, v: int,
) -> float:  # fmt: skip
    """Until the end of its min run time, and of the cooldown of the workload."""
    until = work.started[v] + min_run_of(tree, work, ranks, request, v)
    return max(until, cooled_down(tree, work, rules, candidates, request, v))


@inner
def cooled_down(
    tree: Tree, work: Work, rules: Rules, candidates: Candidates, request: VictimRequest, v: int
) -> float:
    """Until when the workload, if it was evicted, takes nothing from ``v``: else one eviction would lead to
    the next. What nominal owes it may take at once, but from whom it left for, and where its wish names one
    class alone: of another its queue may be owed what nobody asked for while it ran. Minus infinity where
    it may.
    """
    w = request.w
    is_nominal = (
        not is_own(work, request, v)
        and request.stretch != ROUNDED
        and is_owing(tree, work, candidates, request, v)
    )
    names_one = work.wish.shape[0] < 2 or work.wish[1, w] < 0
    if names_one and work.evicted_for[w] != work.tie[v] and is_nominal:
        return -np.inf
    return work.evicted[w] + rules.cooldown


@inner
def min_run_of(tree: Tree, work: Work, ranks: Ranks, request: VictimRequest, v: int) -> float:
    """That of the queue in which both part, on the side of ``v`` (its leaf inside one queue), else that of
    the priority class.
    """
    q = branch_of(tree, work.queue[v], work.queue[request.w])
    return tree.min_run[q] if tree.min_run[q] >= 0.0 else ranks.min_run[work.priority[v]]


@inner
def allowed(world: Session, request: VictimRequest, v: int) -> bool:
    """Whether the rules let ``v`` go for the workload, as things stand now.

    What forbids it though the rule would take it is noted in ``search.forbidden``. The eviction cap is
    asked for ``v`` alone here, and for all victims together once nobody needless is among them.
    """
    tree, queues, candidates = world.tree, world.queues, world.candidates
    work, gpus, forbidden = world.work, core_of(world.work, v), STRICT
    if candidates.barred[v] == candidates.bounds.search_number[0]:
        return False
    own = is_own(work, request, v)
    owed = not own and request.owed and is_owing(tree, work, candidates, request, v)
    spares = not own and not owed
    if spares and candidates.by_queue.takeable[work.queue[v]] < gpus:
        return False  # What stands in its way was noted when its queue was summed up.
    for_nominal = owed and request.stretch != ROUNDED and not by_merit(tree, work.queue[v])
    limit_reached = not for_nominal and eviction_limit_reached(work, world.rules, v)
    if work.gpu_class[v] != request.c or limit_reached or not rule_allows(world, request, v, gpus):
        return False
    if request.overlook != PROTECTED and _is_protected(world, request, v):
        forbidden = PROTECTED
    elif request.overlook not in (BUDGET, EACH_BUDGET) and not in_budget(
        tree, queues, work.queue[v], gpus
    ):
        forbidden = BUDGET
    elif request.overlook != CAP and gpus > may_evict(work, world.rules, request.w, request.need):
        forbidden = CAP
    queues.search.forbidden[forbidden] = 1
    return forbidden == STRICT


@inner
def _is_protected(world: Session, request: VictimRequest, v: int) -> bool:
    """By time; or by the grace of a lowered quota, which no reclaim may break."""
    tree, work, ranks, rules = world.tree, world.work, world.ranks, world.rules
    if rules.now < shielded_until(tree, work, ranks, rules, world.candidates, request, v):
        return True
    graced = world.queues.redivision.grace_until_s[request.c] > 0.0 and not is_own(work, request, v)
    return graced and not _reclaimable(world, request, v, core_of(work, v), True)


@inner
def may_give(world: Session, request: VictimRequest, v: int) -> bool:
    """Whether ``v`` can do without one more member, or segment, and the rules would let as much of it go.

    No min run time, budget or cap speaks for the extra members of an elastic gang: it goes on.
    """
    work, candidates = world.work, world.candidates
    unit, gpus = unit_of(work, v), unit_of(work, v) * work.need[GPUS, v]
    if (
        candidates.log.leaves[v]
        or work.gpu_class[v] != request.c
        or candidates.log.members_given[v] + unit > extra_of(work, v)
    ):
        return False
    grows = world.out.action[v] != SHRINK and world.out.members[v] > 0
    if grows or candidates.barred[v] == candidates.bounds.search_number[0]:
        return False
    if (
        candidates.log.size + unit + candidates.log.leaves.size > candidates.log.slot.size
        or not rule_allows(world, request, v, gpus)
    ):
        return False
    if request.overlook == PROTECTED:
        return True
    if world.rules.now < cooled_down(world.tree, work, world.rules, candidates, request, v):
        return False
    graced = world.queues.redivision.grace_until_s[request.c] > 0.0
    return not graced or is_own(work, request, v) or _reclaimable(world, request, v, gpus, True)


@inner
def is_own(work: Work, request: VictimRequest, v: int) -> bool:
    """Whether ``v`` is in the queue of the workload: preempted, not reclaimed."""
    return bool(work.queue[v] == work.queue[request.w])


@inner
def rule_allows(world: Session, request: VictimRequest, v: int, gpus: int) -> bool:
    """Lower priority in the same leaf that had not risen above it, or above fair share in another."""
    work = world.work
    if not is_own(work, request, v):
        return request.rule != PREEMPT and _reclaimable(world, request, v, gpus, False)
    value, rank = world.ranks.value, work.priority
    if request.rule == RECLAIM or had_risen(work, world.ranks, v):
        return False
    return value[rank[v]] < value[rank[request.w]]


@inner
def had_risen(work: Work, ranks: Ranks, v: int) -> bool:
    """It had waited past the bound of its class when it started, so it went before any priority."""
    waited = work.started[v] - work.submitted[v]
    return waited >= ranks.max_wait[work.priority[v]]


@inner
def in_budget(tree: Tree, queues: Queues, q: int, gpus: int) -> bool:
    while q > 0:
        if queues.usage.eviction_budget[q] < gpus:
            return False
        q = tree.parent[q]
    return True


@inner
def overdraws(tree: Tree, work: Work, queues: Queues, candidates: Candidates) -> bool:
    """Whether the chosen leave any budget overdrawn."""
    log, budget = candidates.log, queues.usage.eviction_budget
    for k in range(log.first, log.size):
        q = work.queue[log.slot[k]] if log.slot[k] >= 0 else 0
        while q > 0:
            if budget[q] < 0:
                return True
            q = tree.parent[q]
    return False


@inner
def _reclaimable(world: Session, request: VictimRequest, v: int, gpus: int, graced: bool) -> bool:
    """Every queue of the victim below the common ancestor is above its fair share, or, ``graced``,
    above what a grace leaves it; and none ends below its nominal, unless that is oversubscribed.
    """
    tree, q = world.tree, world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[request.w])
    if meet == q or tree.depth[meet] < tree.depth[request.top]:
        return False
    owed = world.candidates.owing[meet]
    if (request.hasty or by_merit(tree, meet)) and not owed:
        return False
    if by_merit(tree, meet) and world.candidates.merit.calm[request.w]:
        return False
    while q != meet:
        keeps = kept_by(world, request.c, q, request.stretch, graced)
        above = world.queues.usage.gpus[request.c, q] - keeps
        if above <= EPS or (not (request.owed and owed) and above < gpus - EPS):
            return False
        short = below_nominal(world.quotas, world.division, world.queues, request.c, q, gpus)
        if short > 0 and short > given_below(world, q):
            return False
        q = tree.parent[q]
    return True


@inner
def given_by(work: Work, candidates: Candidates, out: Decisions, k: int) -> int:
    """Milli-GPU that the queue of the ``k``-th of the chosen holds less without it."""
    log = candidates.log
    v, part = log.slot[k], log.part[k]
    if part >= 0:
        return 0 if log.leaves[v] else int(work.need[GPUS, v])
    return held_by(work, out, v) if part == LEAVES else 0


@inner
def given_below(world: Session, q: int) -> int:
    """Milli-GPU that the chosen in ``q`` and below it give."""
    log, gpus = world.candidates.log, 0
    for k in range(log.first, log.size):
        if log.slot[k] >= 0 and is_below(world.tree, world.work.queue[log.slot[k]], q):
            gpus += given_by(world.work, world.candidates, world.out, k)
    return gpus


@inner
def is_owing(
    tree: Tree, work: Work, candidates: Candidates, request: VictimRequest, v: int
) -> bool:
    """Whether the queue in which both part owes the workload's nominal."""
    return bool(candidates.owing[common_ancestor(tree, work.queue[v], work.queue[request.w])])


@inner
def takes_only_owed(tree: Tree, work: Work, candidates: Candidates, request: VictimRequest) -> bool:
    """Whether all that the chosen give is owed to the workload."""
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        if not is_own(work, request, v) and not is_owing(tree, work, candidates, request, v):
            return False
    return True


@inner
def note_owed(world: Session, request: VictimRequest) -> int:
    """Note in ``candidates.owing``, for each queue from ``request.top`` down, whether what others hold in it
    above their shares is owed to the queue below it on the way to the workload: its nominal covers the
    workload. Returns in how many of them: NOTHING, SOME or ALL.
    """
    tree, quotas, queues = world.tree, world.quotas, world.queues
    q, kid, covered, passed = world.work.queue[request.w], -1, 0, 0
    while q != request.top:
        owed = request.rule == BOTH_OWED or request.stretch == ROUNDED
        owed = owed or owes(tree, quotas, queues, q, kid, request.c, request.need)
        q, kid = tree.parent[q], q if owed else -1
        world.candidates.owing[q] = owed
        covered += owed
        passed += 1
    return NOTHING if covered == 0 else (ALL if covered == passed else SOME)
