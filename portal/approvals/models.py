"""Requests for quota, boosts, queues and access: the way from a wish to an entitlement.

Times are cluster time, GPU columns milli-GPU. Only ``portal.approvals`` writes these rows. GPU classes and
priority classes are kept by name: a request outlives what it asked for.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from portal.approvals.loans.models import LoanOffer, QuotaLoan
from portal.approvals.states import EDITABLE, GRANTED, OPEN, Figure, Kind, State, Verb
from scheduling.models import Cluster, Queue, QuotaChange

__all__ = ["ApprovalRule", "Comment", "LoanOffer", "QuotaLoan", "QuotaRequest", "Step"]


def _person(**more: Any) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", **more
    )


class QuotaRequest(models.Model):
    """What somebody asks for, and what became of it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="requests")
    kind = models.CharField(max_length=6, choices=Kind.choices)
    state = models.CharField(max_length=9, choices=State.choices, default=State.DRAFT)
    queue = models.ForeignKey(Queue, on_delete=models.SET_NULL, null=True, related_name="requests")
    """That gets it; of a new queue, the one above it. NULL: it is gone, ``place`` is its path."""
    place = models.CharField(max_length=500)
    gpu_class = models.CharField(max_length=63, blank=True)
    priority_class = models.CharField(max_length=63, blank=True)
    figure = models.CharField(max_length=15, choices=Figure.choices, default=Figure.NOMINAL)
    gpus = models.PositiveIntegerField(null=True, blank=True)
    """How much more is asked for; ``granted_gpus`` is what was given of it."""
    granted_gpus = models.PositiveIntegerField(null=True, blank=True)
    giver = models.ForeignKey(
        Queue, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """From whose nominal quota it is taken; NULL: from what the parent has left, or the lead says."""
    name = models.CharField(max_length=63, blank=True)
    """Of the new queue."""
    starts_at = models.DateTimeField(null=True, blank=True)
    """NULL: with the approval."""
    ends_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=1000)

    author = _person()
    forwarder = _person(blank=True)
    decider = _person(blank=True)
    """NULL with a decision: the rule of the queue above approved it."""
    decision = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField()
    since = models.DateTimeField()
    """Of the last step."""
    granted_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=300, blank=True)
    """What its end did, where that is not plain."""

    preview = models.JSONField(default=dict, blank=True)
    """What it would have done when it was submitted."""
    expected = models.JSONField(default=dict, blank=True)
    """What it was to do when it was approved."""
    changes = models.ManyToManyField(QuotaChange, blank=True, related_name="requests")
    made_queue = models.ForeignKey(
        Queue, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    renews = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="renewals"
    )

    class Meta:
        ordering = ["-since", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at=None) | Q(starts_at=None) | Q(ends_at__gt=F("starts_at")),
                name="request_ends_after_it_begins",
            ),
            models.UniqueConstraint(
                fields=["renews"],
                condition=Q(state__in=[*OPEN, *GRANTED]),
                name="request_renewed_once_at_a_time",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "state", "-since"], name="request_by_state"),
            models.Index(fields=["author", "-since"], name="request_by_author"),
        ]

    def __str__(self) -> str:
        return f"R-{self.pk}"

    @property
    def is_editable(self) -> bool:
        return self.state in EDITABLE

    @property
    def is_about_quota(self) -> bool:
        return self.kind in (Kind.QUOTA, Kind.BOOST)

    @property
    def amount(self) -> int:
        """Milli-GPU given, else asked for; 0 for what is not counted in GPUs."""
        return (self.gpus if self.granted_gpus is None else self.granted_gpus) or 0

    def begins(self, now: datetime) -> datetime:
        """When it would begin, approved at ``now``."""
        return max(now, self.starts_at or now)


class Step(models.Model):
    """One step of a request's life."""

    request = models.ForeignKey(QuotaRequest, on_delete=models.CASCADE, related_name="steps")
    at = models.DateTimeField()
    verb = models.CharField(max_length=11, choices=Verb.choices)
    by = _person(blank=True)
    """NULL: Weir itself, by its clock or by a rule."""
    before = models.CharField(max_length=9, choices=State.choices, blank=True)
    after = models.CharField(max_length=9, choices=State.choices)
    note = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.request} {self.verb}"


class Comment(models.Model):
    request = models.ForeignKey(QuotaRequest, on_delete=models.CASCADE, related_name="comments")
    at = models.DateTimeField()
    by = _person()
    text = models.CharField(max_length=2000)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.request}: {self.text[:40]}"


class ApprovalRule(models.Model):
    """What the queues directly below one are given without asking anybody.

    ``below_gpus``: all that such a queue has of a class by this rule stays below it.
    """

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="approval_rules")
    below_gpus = models.PositiveIntegerField()
    most_days = models.PositiveIntegerField(null=True, blank=True)
    """Only what ends within so many days; NULL: what has no end too."""
    from_siblings = models.BooleanField(default=False)
    """Whether it may be taken from another of these queues, or only from what nobody was given."""
    author = _person()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue"], name="approval_rule_one_a_queue"),
            models.CheckConstraint(condition=Q(below_gpus__gt=0), name="approval_rule_above_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.queue}: below {self.below_gpus / 1000:g}"
