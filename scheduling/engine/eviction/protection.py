"""Which work must not leave yet: until when a workload has to wait before others leave for it, and what it
is told where only time, a budget or the cap forbid it.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.rules import (
    BOTH,
    BUDGET,
    CAP,
    DELAY,
    PREEMPT,
    PROTECTED,
    VictimRequest,
    cooled_down,
    given_below,
    overdraws,
    protected_until,
    takes_only_owed,
)
from scheduling.engine.model import UNLIMITED
from scheduling.engine.quota.fair_share import ROUNDED, grace_over, is_below
from scheduling.engine.quota.limits import may_evict
from scheduling.engine.reasons.figures import (
    COOLDOWN,
    GRACE,
    MIN_RUN_TIME,
    OVER_BUDGET,
    OVER_CAP,
    WOULD_LEAVE,
)
from scheduling.engine.state.input import Rules, Tree, Work, core_of
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import LEAVES

"""What protects victims until a moment."""


@inner
def patient_until(work: Work, rules: Rules, w: int, rule: int, nominal: bool) -> float:
    """Until when ``w`` has to wait before others leave for it: longer for what it would borrow."""
    wait = rules.delay if rule == PREEMPT or nominal else max(rules.delay, rules.fair_delay)
    return work.submitted[w] + wait


@inner
def last_release(world: Session, request: VictimRequest) -> float:
    """When the last of the chosen loses its protection; of members only the cooldown protects any."""
    until, ends, candidates = 0.0, 0.0, world.candidates
    for k in range(candidates.log.first, candidates.log.size):
        v, part = candidates.log.slot[k], candidates.log.part[k]
        if part == LEAVES:
            ends = protected_until(world, request, v)
        elif part >= 0:
            ends = cooled_down(world.tree, world.work, world.rules, candidates, request, v)
        until = max(until, ends)
    return until


@inner
def is_lawful(world: Session, request: VictimRequest) -> bool:
    """Whether the chosen may all leave now, though the search overlooked protection by time or budgets: who
    stood in its way may not be among them.
    """
    now, lasting = world.rules.now, request.rule == BOTH or request.stretch == ROUNDED
    nominal = not lasting and takes_only_owed(world.tree, world.work, world.candidates, request)
    if now < patient_until(world.work, world.rules, request.w, request.rule, nominal):
        return False
    if request.overlook == BUDGET:
        return not overdraws(world.tree, world.work, world.queues, world.candidates)
    return bool(request.overlook == PROTECTED and last_release(world, request) <= now)


@inner
def ends_sooner(world: Session, request: VictimRequest) -> bool:
    """Whether the protection of the chosen ends before what the workload is told to wait for by time."""
    out, w = world.out, request.w
    if out.action[w] != codes.WAIT or out.reason[w] != codes.VICTIMS_PROTECTED:
        return False
    return bool(world.rules.now < last_release(world, request) < out.until[w])


@inner
def blame_protection(world: Session, request: VictimRequest) -> None:
    """The line of the workload, which waits, quotes the first victim that would go, its queue, and until when
    it is safe.
    """
    tree, work, rules, queues = world.tree, world.work, world.rules, world.queues
    candidates = world.candidates
    w, v, out = request.w, candidates.log.slot[candidates.log.first], world.out
    reason, overlook, until = codes.VICTIMS_PROTECTED, request.overlook, 0.0
    if overlook == PROTECTED and last_release(world, request) <= rules.now:
        overlook = DELAY
    if overlook == DELAY:
        urgent = _is_urgent(tree, work, rules, candidates, request)
        until = patient_until(work, rules, w, request.rule, urgent)
    elif overlook == PROTECTED:
        until = last_release(world, request)
    elif overlook == BUDGET:
        reason = codes.BUDGET_SPENT
        until = _budgets_until(tree, work, world.rules, queues, candidates)
    else:
        reason = codes.EVICTION_CAP
    out.reason[w], out.gpu_class[w], out.until[w] = reason, request.c, until
    q = work.queue[v]
    fair = world.division.fair[request.c, q]
    usage = queues.usage.gpus[request.c, q] + given_below(world, q)
    out.blame[w], out.rival[w] = q, v
    figures = out.figures
    figures[w, WOULD_LEAVE.holds], figures[w, WOULD_LEAVE.fair_share] = usage, fair
    figures[w, WOULD_LEAVE.needs] = request.need
    figures[w, WOULD_LEAVE.would_leave] = queues.search.evicted[0]
    if overlook == BUDGET:
        figures[w, OVER_BUDGET.budget_left] = _budget_left(tree, work, queues, candidates)
    elif overlook == CAP:
        figures[w, OVER_CAP.may_leave] = may_evict(work, rules, w, request.need)
    else:
        figures[w, WOULD_LEAVE.waits_itself] = overlook == DELAY
        figures[w, WOULD_LEAVE.protection] = 0.0
        if overlook == PROTECTED:
            figures[w, WOULD_LEAVE.protection] = _what_protects(world, request, until)


@inner
def _is_urgent(
    tree: Tree, work: Work, rules: Rules, candidates: Candidates, request: VictimRequest
) -> bool:
    """Whether it waits for what is owed to it, for which the wait is shorter, and is not over yet."""
    lasting = request.rule == BOTH or request.stretch == ROUNDED
    if lasting or not takes_only_owed(tree, work, candidates, request):
        return False
    return bool(rules.now < patient_until(work, rules, request.w, request.rule, True))


@inner
def _what_protects(world: Session, request: VictimRequest, until: float) -> int:
    """Which protection of the chosen ends last, at ``until``."""
    work, candidates = world.work, world.candidates
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        if grace_over(world, request.c, work.queue[v]) == until:
            return GRACE
        if cooled_down(world.tree, work, world.rules, candidates, request, v) == until:
            return COOLDOWN
    return MIN_RUN_TIME


@inner
def _budgets_until(
    tree: Tree, work: Work, rules: Rules, queues: Queues, candidates: Candidates
) -> float:
    """When the last of the budgets that the chosen would overdraw may be drawn on again, 0 unknown."""
    until = 0.0
    for k in range(candidates.log.first, candidates.log.size):
        q = work.queue[candidates.log.slot[k]]
        while q > 0 and candidates.log.part[k] < 0:
            if queues.usage.eviction_budget[q] < 0:
                until = max(until, tree.budget_until[q])
            q = tree.parent[q]
    return until if until > rules.now else 0.0


@inner
def _budget_left(tree: Tree, work: Work, queues: Queues, candidates: Candidates) -> int:
    """What the smallest of the budgets that the chosen would overdraw still had."""
    least = UNLIMITED
    for k in range(candidates.log.first, candidates.log.size):
        q = work.queue[candidates.log.slot[k]]
        while q > 0:
            left = queues.usage.eviction_budget[q]
            if left < 0:
                least = min(least, left + _cores_below(tree, work, candidates, q))
            q = tree.parent[q]
    return least


@inner
def _cores_below(tree: Tree, work: Work, candidates: Candidates, top: int) -> int:
    """Milli-GPU that count as evicted of the chosen in ``top`` and below it."""
    gpus = 0
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        inside = is_below(tree, work.queue[v], top)
        gpus += core_of(work, v) if inside and candidates.log.part[k] < 0 else 0
    return gpus
