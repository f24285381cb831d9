"""Consolidations that people ordered. Only ``services.clusters.consolidation`` writes these rows.

Times are cluster time; GPU columns milli-GPU.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduling.models.clusters import Cluster, GpuClass
from scheduling.models.ledger import Cycle


class ConsolidationState(models.TextChoices):
    WAITING = "waiting", "Waits for the next cycle"
    MOVING = "moving", "Moving"
    """Its moves are decided and committed; what came of writing them is not known yet."""
    DONE = "done", "Done"
    NOT_DONE = "not_done", "Not done"
    """Nothing could be moved."""
    CANCELLED = "cancelled", "Cancelled"


PARTLY_DONE = ("partly_done", "Partly done")
"""How an order that is done stands where some of its moves were not made: told, not kept."""
OPEN = (ConsolidationState.WAITING, ConsolidationState.MOVING)


class Consolidation(models.Model):
    """Move work together until ``nodes`` more nodes of the class are whole."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="consolidations")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    nodes = models.PositiveIntegerField()
    author = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    most_moves = models.PositiveIntegerField()
    """As many as its author confirmed; the cycle moves no more."""
    state = models.CharField(
        max_length=9, choices=ConsolidationState.choices, default=ConsolidationState.WAITING
    )
    cycle = models.ForeignKey(Cycle, on_delete=models.SET_NULL, null=True, related_name="+")
    """That took it."""
    moves = models.JSONField(default=list)
    """As decided by that cycle: {workload (its key), uid, name, origin, target, gpus, lost_gpu_s, moved,
    why}; ``moved`` is null until it is known."""
    outcome = models.CharField(max_length=300, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-asked_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"], condition=Q(state__in=OPEN), name="consolidation_one_open"
            )
        ]

    @property
    def is_partial(self) -> bool:
        """Over, and some of its moves were not made: Weir was stopped in between, or one was refused."""
        return self.state == ConsolidationState.DONE and not all(m["moved"] for m in self.moves)

    @property
    def stands(self) -> str:
        """Its state as people and programs are told it."""
        return PARTLY_DONE[0] if self.is_partial else self.state

    def __str__(self) -> str:
        return f"{self.nodes} more whole nodes of {self.gpu_class} for {self.author}"
