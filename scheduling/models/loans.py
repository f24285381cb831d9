"""Nominal quota that one queue hands another for a time."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from scheduling.models.clusters import Cluster, GpuClass
from scheduling.models.queues import Queue


class Loan(models.Model):
    """``gpus`` (milli-GPU) of ``lender``'s nominal quota are ``borrower``'s during [starts_at, ends_at).

    The quotas themselves stay as they were granted: a loan is added where the engine reads them, so that it
    ends by itself and an edit of either queue in between is neither lost nor undone.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="loans")
    lender = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="lent")
    borrower = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="borrowed")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="loans")
    gpus = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        ordering = ["starts_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(gpus__gt=0), name="loan_above_zero"),
            models.CheckConstraint(
                condition=Q(ends_at__gte=F("starts_at")), name="loan_ends_after_it_begins"
            ),
            models.CheckConstraint(
                condition=~Q(lender=F("borrower")), name="loan_between_two_queues"
            ),
        ]
        indexes = [models.Index(fields=["cluster", "ends_at"], name="loan_running")]

    def __str__(self) -> str:
        return f"{self.lender} lends {self.borrower} {self.gpus / 1000:g} {self.gpu_class}"
