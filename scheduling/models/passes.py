"""What background tasks remember of their last pass, so that the next does what has changed since."""

from __future__ import annotations

from django.db import models

from scheduling.models.clusters import Cluster


class TaskPass(models.Model):
    """One task over one cluster. Without its row the next pass does everything, and ends the same."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="passes")
    task = models.CharField(max_length=40)
    mark = models.JSONField(default=dict)
    """What the pass saw of its sources, read before the rows themselves."""
    found = models.JSONField(default=dict)
    """What it made of them, where no other row holds it."""

    class Meta:
        ordering = ["cluster", "task"]
        constraints = [models.UniqueConstraint(fields=["cluster", "task"], name="task_pass_unique")]

    def __str__(self) -> str:
        return f"{self.task} over {self.cluster}"
