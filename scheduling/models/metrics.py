"""What work did with the GPUs that it held, as far as somebody measured it. Times are cluster time."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from scheduling.models.clusters import GpuClass
from scheduling.models.workloads import Workload


class GpuUse(models.Model):
    """One workload on one class in one hour (UTC)."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="gpu_use")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    gpu_s = models.FloatField(default=0)
    """GPU-seconds that were measured."""
    active_gpu_s = models.FloatField(default=0)
    """The same times SM activity."""
    idle_gpu_s = models.FloatField(default=0)
    """GPU-seconds on which nothing ran."""
    memory_mib = models.FloatField(default=0)
    """Of each GPU on average."""
    memory_peak_mib = models.FloatField(default=0)
    memory_total_mib = models.FloatField(default=0)
    """That one GPU has."""
    energy_j = models.FloatField(default=0)

    class Meta:
        ordering = ["start", "workload"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "gpu_class", "start"], name="gpu_use_one_an_hour"
            ),
            models.CheckConstraint(
                condition=Q(gpu_s__gt=0, active_gpu_s__gte=0, idle_gpu_s__gte=0),
                name="gpu_use_not_negative",
            ),
        ]
        indexes = [models.Index(fields=["start"], name="gpu_use_start")]

    def __str__(self) -> str:
        return f"{self.workload} {self.start:%F %R}"


class IdleEnd(models.TextChoices):
    USED = "used", "Used again"
    GIVEN_BACK = "given_back", "Given back"
    CULLED = "culled", "Culled"


class IdleSpell(models.Model):
    """A time in which nothing ran on the GPUs that a workload held; ``until`` is NULL while it goes on."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="idle_spells")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    gpus = models.PositiveIntegerField()
    """Milli-GPU."""
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)
    ended = models.CharField(max_length=10, choices=IdleEnd.choices, blank=True)
    memory_mib = models.FloatField(default=0)
    """Held of each GPU meanwhile."""
    first_told_at = models.DateTimeField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, blank=True)
    """When its owner was told last, ``told`` times."""
    told = models.PositiveIntegerField(default=0)
    kept_until = models.DateTimeField(null=True, blank=True)
    """Its owner keeps them on purpose so long; nobody tells or culls before."""

    class Meta:
        ordering = ["since", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload"], condition=Q(until=None), name="idle_spell_one_goes_on"
            ),
            models.CheckConstraint(
                condition=Q(until=None) | Q(until__gte=F("since")), name="idle_spell_ends_after"
            ),
        ]
        indexes = [models.Index(fields=["until", "since"], name="idle_spell_until")]

    def __str__(self) -> str:
        return f"{self.workload} idle since {self.since:%F %R}"
