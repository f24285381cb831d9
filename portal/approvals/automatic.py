"""What is approved at once, by the rule that whoever divides the queue above has set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from portal.accounts.models import User
from portal.approvals.models import ApprovalRule, QuotaRequest
from portal.approvals.states import GRANTED, Figure
from portal.teams.access import dividable_queues
from scheduling.models import MILLI, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

MOST_DAYS = 3660


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Whether a rule lets a request pass: ``least_missed`` says why not, in one sentence."""

    rule: ApprovalRule | None
    least_missed: str = ""

    @property
    def passes(self) -> bool:
        return self.rule is not None and not self.least_missed


def rule_over(queue: Queue) -> ApprovalRule | None:
    """The rule that the queue directly above has."""
    return ApprovalRule.objects.filter(queue=queue.parent_id).select_related("queue").first()


def passing(request: QuotaRequest, now: datetime) -> RuleVerdict:
    rule = rule_over(request.queue) if request.queue and request.is_about_quota else None
    if rule is None:
        return RuleVerdict(None)
    return RuleVerdict(rule, _missed(request, rule, now))


def _missed(request: QuotaRequest, rule: ApprovalRule, now: datetime) -> str:
    most = rule.below_gpus / MILLI
    if request.figure != Figure.NOMINAL:
        return "Limits are raised by an approver."
    if request.giver is not None and not _may_take(request, rule):
        return "It takes from another queue, which the rule does not allow."
    if rule.most_days is not None and _is_longer(request, rule.most_days, now):
        return f"The rule gives for {rule.most_days} days at most."
    already = given_by_rule(request)
    if already + request.amount >= rule.below_gpus:
        has = f", and has {already / MILLI:g} by it already" if already else ""
        return f"The rule gives below {most:g} in all{has}."
    return ""


def _may_take(request: QuotaRequest, rule: ApprovalRule) -> bool:
    return bool(rule.from_siblings and request.giver and request.giver.parent_id == rule.queue_id)


def _is_longer(request: QuotaRequest, days: int, now: datetime) -> bool:
    end = request.ends_at
    return end is None or end - request.begins(now) > timedelta(days=days)


def given_by_rule(request: QuotaRequest) -> int:
    """Milli-GPU of the class that its queue has, or is to have, by the rule: many small ones add up."""
    rows = QuotaRequest.objects.filter(
        queue=request.queue, gpu_class=request.gpu_class, state__in=GRANTED, decider=None
    )
    return sum(row.amount for row in rows.exclude(pk=request.pk))


def settable_queues(user: User) -> list[Queue]:
    """Queues whose children's requests the person may set a rule for: those that they divide."""
    rows = dividable_queues(user).filter(children__isnull=False).distinct()
    return list(rows.select_related("cluster").order_by("cluster__name", "path"))


@transaction.atomic
def set_rule(
    *,
    by: User,
    queue: Queue,
    below_gpus: int | None,
    most_days: int | None = None,
    from_siblings: bool = False,
) -> ApprovalRule | None:
    """Set what queues directly below ``queue`` get at once; None takes the rule away.

    Raises ServiceError ``forbidden``, or at ``below_gpus`` or ``most_days``.
    """
    if not dividable_queues(by).filter(pk=queue.pk).exists():
        raise ServiceError("forbidden", "You do not divide this queue.", "Ask its lead.")
    _check_rule(below_gpus, most_days)
    before = ApprovalRule.objects.select_for_update().filter(queue=queue).first()
    old = _as_json(before)
    if below_gpus is None:
        if before is not None:
            before.delete()
        made = None
    else:
        made, _ = ApprovalRule.objects.update_or_create(
            queue=queue,
            defaults={
                "below_gpus": below_gpus,
                "most_days": most_days,
                "from_siblings": from_siblings,
                "author": by,
                "at": queue.cluster.now(),
            },
        )
    if old != _as_json(made):
        announce(
            "request.rule_set",
            actor=by,
            cluster=queue.cluster,
            queue=queue.path,
            subject=queue.name,
            before=old,
            after=_as_json(made),
        )
    return made


def _check_rule(below_gpus: int | None, most_days: int | None) -> None:
    if below_gpus is not None and not 0 < below_gpus <= 1_000_000 * MILLI:
        raise ServiceError(
            "bad_rule", "That is no threshold.", "Write a number above 0, or leave it empty.",
            field="below_gpus",
        )  # fmt: skip
    if most_days is not None and not 1 <= most_days <= MOST_DAYS:
        raise ServiceError(
            "bad_rule", "So many days cannot be.", f"Write 1 to {MOST_DAYS}, or leave it empty.",
            field="most_days",
        )  # fmt: skip


def _as_json(rule: ApprovalRule | None) -> dict[str, object]:
    if rule is None:
        return {}
    return {
        "below_gpus": rule.below_gpus / MILLI,
        "most_days": rule.most_days,
        "from_siblings": rule.from_siblings,
    }


NOTE = "Below the threshold that {} has set."


def note_of(rule: ApprovalRule) -> str:
    return NOTE.format(rule.queue.name)
