"""Budgets in money: what a queue may cost in a time. They stop nobody; reports and alerts read them."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q

from scheduling.models import Queue


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
