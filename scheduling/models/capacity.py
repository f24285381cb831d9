"""Studies of capacity: how long work would have waited on more and fewer GPUs.

Only ``services.capacity`` writes these rows.

``end``, ``asked_at`` and ``done_at`` are cluster time, ``made_at`` and ``held_until`` real time. GPU columns
are milli-GPU, durations seconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

from scheduling.models.clusters import Cluster, GpuClass
from scheduling.models.foresight import WhatIfState
from scheduling.models.queues import Queue


class CapacityStudy(models.Model):
    """The last days lived again with each class's nodes, some more and some fewer."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="capacity_studies")
    author = models.CharField(max_length=150, blank=True)
    """Empty: Weir itself, at night."""
    end = models.DateTimeField()
    """Of the days that are lived again."""
    days = models.PositiveIntegerField()
    queue = models.ForeignKey(
        Queue, on_delete=models.CASCADE, null=True, blank=True, related_name="capacity_studies"
    )
    """Whose work is lived, with that of the queues below it, alone on its own quota; NULL: all work on all
    nodes."""
    step_gpus = models.PositiveBigIntegerField(default=0)
    """Milli-GPU of a step from one number of GPUs to the next; 0: whole nodes."""
    replications = models.PositiveIntegerField()
    most_cpu_s = models.PositiveIntegerField()
    """No life begins after so many seconds of one core."""
    template = models.JSONField(default=dict)
    """The snapshot that every life begins from, without work; empty once the study has ended."""
    state = models.CharField(max_length=9, choices=WhatIfState.choices, default=WhatIfState.WAITING)
    progress = models.PositiveIntegerField(default=0)
    """Percent."""
    cpu_s = models.FloatField(default=0)
    fault = models.CharField(max_length=300, blank=True)
    """Why it failed, and what to do about it."""
    asked_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)
    made_at = models.DateTimeField()
    held_until = models.DateTimeField(null=True, blank=True)
    """Until then a worker is at it; once it is past another takes up what is left."""

    class Meta:
        ordering = ["-end", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(progress__lte=100), name="capacity_study_progress_percent"
            ),
            models.UniqueConstraint(
                fields=["cluster", "end"],
                condition=Q(state__in=["waiting", "running"]),
                name="capacity_study_one_open_at_once",
            ),
        ]

    def __str__(self) -> str:
        return f"capacity of {self.cluster}, {self.days} days to {self.end:%F %R}"

    @property
    def begin(self) -> datetime:
        return self.end - timedelta(days=self.days)

    @property
    def is_open(self) -> bool:
        return self.state in (WhatIfState.WAITING, WhatIfState.RUNNING)


class CapacityCurve(models.Model):
    """One class of a study: which numbers of GPUs are tried, and what happened on those there were. Of a
    study of a queue these are the GPUs of its nominal quota, and ``installed`` is that quota."""

    study = models.ForeignKey(CapacityStudy, on_delete=models.CASCADE, related_name="curves")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    installed = models.PositiveBigIntegerField()
    node_gpus = models.PositiveBigIntegerField()
    """Of the node that most nodes are like."""
    rungs = models.JSONField(default=list)
    """[[steps more or fewer, milli-GPU], …] in order, as it is (0) among them; a step is a node, unless the
    study says ``step_gpus``."""
    recorded_p90_s = models.FloatField(null=True, blank=True)
    """Of the work that asked for the class first and was submitted in these days."""
    workloads = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["study", "gpu_class__position", "gpu_class__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "gpu_class"], name="capacity_curve_one_a_class"
            )
        ]

    def __str__(self) -> str:
        return f"{self.gpu_class} of {self.study}"


class CapacityPoint(models.Model):
    """One life on one number of GPUs; lives of a curve with the same seed differ in nothing else."""

    curve = models.ForeignKey(CapacityCurve, on_delete=models.CASCADE, related_name="points")
    nodes = models.IntegerField()
    """Steps, as ``rungs`` has them."""
    gpus = models.PositiveBigIntegerField()
    seed = models.PositiveIntegerField()
    p50_s = models.FloatField()
    p90_s = models.FloatField()
    workloads = models.PositiveIntegerField()

    class Meta:
        ordering = ["curve", "gpus", "seed"]
        constraints = [
            models.UniqueConstraint(
                fields=["curve", "nodes", "seed"], name="capacity_point_one_a_life"
            ),
            models.CheckConstraint(
                condition=Q(p90_s__gte=F("p50_s")), name="capacity_point_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.curve}: {self.gpus}, {self.seed}"
