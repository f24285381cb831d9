"""What people keep beside the figures: budgets in money, which stop nobody, and views of reports."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q

from scheduling.models import Cluster, Queue


class Budget(models.Model):
    """``amount`` in the cluster's currency, of ``begin`` to the day ``end``, both within it (local days)."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="budgets")
    amount = models.DecimalField(max_digits=14, decimal_places=2, validators=[MinValueValidator(0)])
    begin = models.DateField()
    end = models.DateField()

    class Meta:
        ordering = ["queue__path", "begin"]
        constraints = [
            models.CheckConstraint(condition=Q(end__gte=F("begin")), name="budget_ends_after"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="budget_of_something"),
            models.UniqueConstraint(fields=["queue", "begin"], name="budget_one_a_begin"),
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.begin}"


class SavedView(models.Model):
    """A report with its filters, as its address has them, that a person keeps under a name."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=20)
    """Name of the report."""
    query = models.CharField(max_length=2000, blank=True)
    weekly = models.BooleanField(default=False)
    """Told each Monday."""
    told_on = models.DateField(null=True, blank=True)
    """The Monday of which it was told last."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "cluster", "name"], name="saved_view_one_a_name"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"
