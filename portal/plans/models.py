"""Plans that pages ask for, each with what came of it."""

from __future__ import annotations

from django.db import models

from scheduling.models import Cluster


class PlanQuestion(models.Model):
    """A question to the engine, and its last answer. Times are the wall's.

    The answer is whole: whoever shows it leaves out what its reader may not see.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    """Of kind and question."""
    kind = models.CharField(max_length=16)
    question = models.JSONField()
    asked_at = models.DateTimeField()
    answer = models.JSONField(null=True)
    """NULL: there is none yet."""
    planned_at = models.DateTimeField(null=True)
    """Of the answer: when its planning began."""
    revision = models.PositiveBigIntegerField(default=0)
    """That of the cluster then."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "digest"], name="plan_question_once")
        ]
        indexes = [models.Index(fields=["asked_at"], name="plan_question_by_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.digest[:8]}"
