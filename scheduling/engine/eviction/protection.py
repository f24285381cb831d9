"""Who must not leave yet: until when a workload has to wait before others leave for it, and what it is told
where only time, a budget or the cap forbid it.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.eviction.free_seats import last_release
from scheduling.engine.eviction.rules import (
    BOTH,
    BUDGET,
    CAP,
    DELAY,
    PREEMPT,
    PROTECTED,
    Hunt,
    takes_only_owed,
)
from scheduling.engine.model import UNLIMITED
from scheduling.engine.quota.fair_share import ROUNDED, grace_over, is_below
from scheduling.engine.reasons.figures import (
    COOLDOWN,
    GRACE,
    MIN_RUN_TIME,
    OVER_BUDGET,
    OVER_CAP,
    WOULD_LEAVE,
)
from scheduling.engine.state.input import core_of
from scheduling.engine.state.session import World
from scheduling.engine.state.units import GPUS
from scheduling.engine.state.victims import END, FIRST
from scheduling.engine.statement.lines import decide

"""What protects victims until a moment."""


@inner
def patient_until(world: World, w: int, rule: int, nominal: bool) -> float:
    """Until when ``w`` has to wait before others leave for it: longer for what it would borrow."""
    rules = world.rules
    wait = rules.delay if rule == PREEMPT or nominal else max(rules.delay, rules.fair_delay)
    return world.work.submitted[w] + wait


@inner
def is_lawful(world: World, hunt: Hunt) -> bool:
    """Whether the chosen, though the search overlooked protection by time, may all leave now."""
    now, lasting = world.rules.now, hunt.rule == BOTH or hunt.stretch == ROUNDED
    nominal = not lasting and takes_only_owed(world, hunt)
    patient = now >= patient_until(world, hunt.w, hunt.rule, nominal)
    return bool(patient and hunt.overlook == PROTECTED and last_release(world, hunt) <= now)


@inner
def blame_protection(world: World, hunt: Hunt) -> None:
    """Quote the first victim that would go, its queue, and until when it is safe."""
    w, v, out = hunt.w, world.prey.picked[world.prey.count[FIRST]], world.out
    reason, overlook = codes.VICTIMS_PROTECTED, hunt.overlook
    if overlook == PROTECTED and last_release(world, hunt) <= world.rules.now:
        overlook = DELAY
    if overlook == DELAY:
        out.until[w] = patient_until(world, w, hunt.rule, _is_urgent(world, hunt))
    elif overlook == PROTECTED:
        out.until[w] = last_release(world, hunt)
    elif overlook == BUDGET:
        reason = codes.BUDGET_SPENT
        out.until[w] = _budgets_until(world)
    else:
        reason = codes.EVICTION_CAP
    decide(out, w, codes.WAIT, reason, hunt.c, 0)
    q = world.work.queue[v]
    fair = world.division.fair[hunt.c, q]
    held = world.book.held[hunt.c, q] + _chosen_of(world, q)
    out.blame[w], out.rival[w] = q, v
    figures = out.figures
    figures[w, WOULD_LEAVE.holds], figures[w, WOULD_LEAVE.fair_share] = held, fair
    figures[w, WOULD_LEAVE.needs] = hunt.need
    figures[w, WOULD_LEAVE.would_leave] = world.book.spent[0]
    if overlook == BUDGET:
        figures[w, OVER_BUDGET.budget_left] = _budget_left(world)
    elif overlook == CAP:
        figures[w, OVER_CAP.may_leave] = world.rules.eviction_cap * hunt.need
    else:
        figures[w, WOULD_LEAVE.waits_itself] = overlook == DELAY
        figures[w, WOULD_LEAVE.protection] = 0.0
        if overlook == PROTECTED:
            figures[w, WOULD_LEAVE.protection] = _what_protects(world, hunt, out.until[w])


@once
def _is_urgent(world: World, hunt: Hunt) -> bool:
    """Whether it waits for what is owed to it, for which the wait is shorter, and is not over yet."""
    if hunt.rule == BOTH or hunt.stretch == ROUNDED or not takes_only_owed(world, hunt):
        return False
    return bool(world.rules.now < patient_until(world, hunt.w, hunt.rule, True))


@once
def _what_protects(world: World, hunt: Hunt, until: float) -> int:
    """Which protection of the chosen ends last, at ``until``."""
    work, prey = world.work, world.prey
    for k in range(prey.count[FIRST], prey.count[END]):
        v = prey.picked[k]
        if grace_over(world, hunt.c, work.queue[v]) == until:
            return GRACE
        spared = work.evicted_for[hunt.w] == work.tie[v]
        if spared and work.evicted[hunt.w] + world.rules.cooldown == until:
            return COOLDOWN
    return MIN_RUN_TIME


@inner
def _budgets_until(world: World) -> float:
    """When the last of the budgets that the chosen would overdraw may be drawn on again, 0 unknown."""
    until = 0.0
    for k in range(world.prey.count[FIRST], world.prey.count[END]):
        q = world.work.queue[world.prey.picked[k]]
        while q > 0 and world.prey.part[k] < 0:
            if world.book.budget[q] < 0:
                until = max(until, world.tree.budget_until[q])
            q = world.tree.parent[q]
    return until if until > world.rules.now else 0.0


@once
def _budget_left(world: World) -> int:
    """What the smallest of the budgets that the chosen would overdraw still had."""
    prey, least = world.prey, UNLIMITED
    for k in range(prey.count[FIRST], prey.count[END]):
        q = world.work.queue[prey.picked[k]]
        while q > 0:
            if world.book.budget[q] < 0:
                least = min(least, world.book.budget[q] + _cores_below(world, q))
            q = world.tree.parent[q]
    return least


@once
def _cores_below(world: World, top: int) -> int:
    """Milli-GPU that count as evicted of the chosen in ``top`` and below it."""
    gpus = 0
    for k in range(world.prey.count[FIRST], world.prey.count[END]):
        v = world.prey.picked[k]
        inside = is_below(world.tree, world.work.queue[v], top)
        gpus += core_of(world.work, v) if inside and world.prey.part[k] < 0 else 0
    return gpus


@once
def _chosen_of(world: World, q: int) -> int:
    """Milli-GPU of the chosen in ``q``, without what they have given up before."""
    prey, gpus = world.prey, 0
    for k in range(prey.count[FIRST], prey.count[END]):
        v = prey.picked[k]
        if world.work.queue[v] == q:
            members = 1 if prey.part[k] >= 0 else world.work.members[v] - prey.given[v]
            gpus += members * world.work.need[GPUS, v]
    return gpus
