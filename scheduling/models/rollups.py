"""What work held and how it ended, by day: kept for ever, where single workloads are kept for a time."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduling.engine.model import WorkloadType
from scheduling.models.clusters import GpuClass
from scheduling.models.queues import Queue

DAY_S = 86_400


class WorkDay(models.Model):
    """One user's work of one type in a leaf on a class, on one day (UTC): all of it once that is over, before
    that its first hours."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="work_days")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    user = models.CharField(max_length=150)
    type = models.CharField(
        max_length=11, choices=[(t.value, t.value.title()) for t in WorkloadType]
    )
    start = models.DateTimeField()
    """Of the day."""
    seconds = models.PositiveIntegerField(default=DAY_S)
    """Of the day that it tells of, from its start on: the same in all rows of a cluster's day."""
    held_gpu_s = models.FloatField(default=0)
    """GPU-seconds that it held."""
    measured_gpu_s = models.FloatField(default=0)
    """The part of them that somebody measured."""
    active_gpu_s = models.FloatField(default=0)
    """The same times SM activity."""
    lost_gpu_s = models.FloatField(default=0)
    """Work that evictions of the day threw away."""
    evictions = models.PositiveIntegerField(default=0)
    started = models.PositiveIntegerField(default=0)
    """Workloads that started for the first time."""
    waited_s = models.FloatField(default=0)
    """That they had waited, all together."""
    succeeded = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    cancelled = models.PositiveIntegerField(default=0)
    """Workloads that had run and ended."""
    succeeded_gpu_s = models.FloatField(default=0)
    failed_gpu_s = models.FloatField(default=0)
    cancelled_gpu_s = models.FloatField(default=0)
    """GPU-seconds of their whole lives."""

    class Meta:
        ordering = ["start", "queue", "gpu_class", "user", "type"]
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "gpu_class", "user", "type", "start"], name="work_day_unique"
            ),
            models.CheckConstraint(
                condition=Q(held_gpu_s__gte=0, waited_s__gte=0), name="work_day_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(seconds__gt=0, seconds__lte=DAY_S), name="work_day_within_a_day"
            ),
        ]
        indexes = [models.Index(fields=["start"], name="work_day_start")]

    def __str__(self) -> str:
        return f"{self.queue} {self.user} {self.start:%F}"
