"""Loans as people make them. Times are cluster time, GPU columns milli-GPU; what runs has its ``term``, which
the engine reads."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Sum

from portal.approvals.loans.states import RUNNING, WAITING, LoanState
from scheduling.models import Cluster, GpuClass, Loan, Queue

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

NOTICE_H = 24


class Remainder(TypedDict):
    left: int
    """Milli-GPU that nobody has taken."""


class LoanOfferQuerySet(models.QuerySet["LoanOffer"]):
    def with_left(self) -> models.QuerySet[OpenOffer]:
        """Each with what is left of it."""
        taken = Sum("loans__gpus", filter=Q(loans__state__in=RUNNING), default=0)
        found: Any = self.annotate(left=F("gpus") - taken)
        return found


class LoanOffer(models.Model):
    """Idle nominal quota that a queue offers to whoever asks. Withdrawn, it lets what was lent of it run."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="loan_offers")
    lender = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="loan_offers")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    gpus = models.PositiveIntegerField()
    ends_at = models.DateTimeField()
    notice_h = models.PositiveIntegerField(default=NOTICE_H)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = LoanOfferQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(gpus__gt=0), name="loan_offer_above_zero")
        ]

    @property
    def notice(self) -> timedelta:
        return timedelta(hours=self.notice_h)

    def __str__(self) -> str:
        return f"O-{self.pk}"


if TYPE_CHECKING:
    OpenOffer = WithAnnotations[LoanOffer, Remainder]


class QuotaLoan(models.Model):
    """``notice_h``: a recall ends it so many hours later."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="quota_loans")
    lender = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="+")
    borrower = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="+")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    gpus = models.PositiveIntegerField()
    ends_at = models.DateTimeField()
    """As agreed; a recall ends the term sooner."""
    notice_h = models.PositiveIntegerField(default=NOTICE_H)
    state = models.CharField(max_length=9, choices=LoanState.choices)
    offer = models.ForeignKey(
        LoanOffer, on_delete=models.SET_NULL, null=True, blank=True, related_name="loans"
    )
    term = models.OneToOneField(
        Loan, on_delete=models.SET_NULL, null=True, blank=True, related_name="agreed"
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decider = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    reason = models.CharField(max_length=500)
    created_at = models.DateTimeField()
    since = models.DateTimeField()
    """Of the last step."""
    warned = models.BooleanField(default=False)
    """Whether it was said that it ends soon."""
    expected = models.JSONField(default=dict, blank=True)
    """What it was to do when it was consented to."""

    class Meta:
        ordering = ["-since", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(gpus__gt=0), name="quota_loan_above_zero"),
            models.CheckConstraint(
                condition=Q(state__in=WAITING, term=None) | ~Q(state__in=WAITING),
                name="quota_loan_waits_without_a_term",
            ),
        ]
        indexes = [models.Index(fields=["cluster", "state"], name="quota_loan_by_state")]

    @property
    def notice(self) -> timedelta:
        return timedelta(hours=self.notice_h)

    def __str__(self) -> str:
        return f"L-{self.pk}"
