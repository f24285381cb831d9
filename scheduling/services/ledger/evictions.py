"""What an eviction is remembered by: the rule, the parties, and the numbers of that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduling.engine import Outline
from scheduling.engine import model as m
from scheduling.models import Decision, Eviction, EvictionRule, Workload

RULES = {
    m.Reason.RECLAIMED: EvictionRule.RECLAIM,
    m.Reason.PREEMPTED: EvictionRule.PREEMPT,
    m.Reason.GIVES_WAY: EvictionRule.GIVE_WAY,
    m.Reason.STALE_GANG: EvictionRule.STALE_GANG,
    m.Reason.DRAINED: EvictionRule.DRAIN,
    m.Reason.CONSOLIDATES: EvictionRule.CONSOLIDATE,
}


def eviction_of(victim: Workload, decision: Decision, *, at: datetime) -> Eviction:
    """The unsaved Eviction that ``decision`` led to when ``victim`` was seen suspended at ``at``."""
    preemptor = decision.for_workload
    numbers = decision.numbers
    return Eviction(
        workload=victim,
        cycle_id=decision.cycle_id,
        at=at,
        rule=RULES[m.Reason(decision.reason)],
        allowed_by=str(numbers.get("rule") or ""),
        queue_id=victim.queue_id,
        for_workload=preemptor,
        for_queue_id=preemptor.queue_id if preemptor else None,
        gpu_class_id=decision.gpu_class_id,
        gpus=victim.gpus * victim.members,
        asked_gpus=preemptor.requested_gpus if preemptor else 0,
        lost_gpu_s=float(numbers.get("lost_gpu_s") or 0),
        sentence=decision.sentence,
        sealed=decision.sealed,
        numbers=numbers,
    )


def numbers_at(
    decision: m.Decision, plan: Outline, by_name: Mapping[str, Workload]
) -> dict[str, Any]:
    """The decision's own numbers; for an eviction also what both queues held, before and after.

    GPUs are numbers of GPUs. ``after`` counts every eviction of the plan from the victim's queue, and
    the whole request of the workload it is for.
    """
    numbers: dict[str, Any] = dict(decision.numbers)
    if decision.rule:
        numbers["rule"] = decision.rule
    if decision.action not in (m.Action.EVICT, m.Action.MOVE):
        return numbers
    numbers["lost_gpu_s"] = decision.lost_gpu_s
    victim, gpu_class = by_name.get(decision.workload), decision.gpu_class
    if victim is None or gpu_class is None:
        return numbers
    leaving = _evicted_gpus(plan.acts, by_name, victim.queue_label, gpu_class)
    numbers |= _holdings("victim", plan, victim.queue_label, gpu_class, -leaving)
    if (
        "held" in numbers and "queue" not in numbers
    ):  # As its sentence says, what starts before it counted.
        numbers |= {"victim_held_before": numbers["held"], "victim_held_after": numbers["keeps"]}
    preemptor = by_name.get(decision.for_workload or "")
    if preemptor is not None:
        need = preemptor.requested_gpus
        numbers |= _holdings("for", plan, preemptor.queue_label, gpu_class, need)
    return numbers


def _holdings(who: str, plan: Outline, queue: str, gpu_class: str, change: int) -> dict[str, float]:
    share = plan.fair_share.get(queue, {}).get(gpu_class)
    if share is None:
        return {}
    return {
        f"{who}_held_before": share.allocated / m.MILLI,
        f"{who}_held_after": (share.allocated + change) / m.MILLI,
        f"{who}_fair_share": share.fair_share / m.MILLI,
    }


def _evicted_gpus(
    decisions: Sequence[m.Decision], by_name: Mapping[str, Workload], queue: str, gpu_class: str
) -> int:
    victims = (
        by_name.get(d.workload)
        for d in decisions
        if d.action in (m.Action.EVICT, m.Action.MOVE) and d.gpu_class == gpu_class
    )
    return sum(v.gpus * v.members for v in victims if v is not None and v.queue_label == queue)
