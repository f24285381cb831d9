"""What is told of starts before they happen, and what came of it.

Times are cluster time; GPU columns milli-GPU, durations seconds. Only ``services.starts`` writes these rows.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from scheduling.models.clusters import Cluster, GpuClass
from scheduling.models.workloads import Workload


class ForecastRun(models.Model):
    """The newest pass of forecasts over a cluster, and what it saw."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="forecast_run")
    at = models.DateTimeField()
    began_at = models.DateTimeField()
    """Real time; with ``cpu_s`` it says when the next pass may begin."""
    cpu_s = models.FloatField(default=0)
    futures = models.PositiveIntegerField(default=0)
    pending = models.PositiveIntegerField(default=0)
    known_runs = models.PositiveIntegerField(default=0)
    """Ended runs that run times were drawn from."""
    known_arrivals = models.PositiveIntegerField(default=0)
    ends = models.JSONField(default=dict)
    """uid of what runs -> [P50, P90] of the seconds from ``at`` until it ends."""
    moves = models.JSONField(default=list)
    """What would move a start: as ``services.starts.movers``, uids in place of names."""

    def __str__(self) -> str:
        return f"forecasts of {self.cluster}"


class StartForecast(models.Model):
    """When a workload that waits is expected to start, as last told; or why that is not worth showing."""

    workload = models.OneToOneField(
        Workload, on_delete=models.CASCADE, related_name="start_forecast"
    )
    at = models.DateTimeField()
    p50_at = models.DateTimeField(null=True, blank=True)
    p90_at = models.DateTimeField(null=True, blank=True)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.SET_NULL, null=True, related_name="+")
    after = models.ForeignKey(Workload, on_delete=models.SET_NULL, null=True, related_name="+")
    """Whose end it most often starts with."""
    raw_p50_s = models.FloatField(null=True, blank=True)
    raw_p90_s = models.FloatField(null=True, blank=True)
    """As the futures had it, before correction; from ``at``."""
    run_s = models.FloatField(null=True, blank=True)
    """Median of the drawn run times."""
    why_not = models.CharField(max_length=200, blank=True)
    """Why no time is told; empty where one is."""

    class Meta:
        ordering = ["workload"]
        constraints = [
            models.CheckConstraint(
                condition=Q(p50_at__isnull=True) | Q(p90_at__gte=F("p50_at")),
                name="start_forecast_in_order",
            )
        ]

    def __str__(self) -> str:
        return f"{self.workload}: {self.p50_at} to {self.p90_at}"


class LateCause(models.TextChoices):
    """Why a start was later than its P90."""

    RUNS_LONGER = "runs_longer", "Runs took longer"
    MORE_ARRIVED = "more_arrived", "More work arrived"
    NODES_DOWN = "nodes_down", "Nodes went down"
    HELD = "held", "Held by its user"
    QUOTA_EDITED = "quota_edited", "Quota edited"
    UNKNOWN = "unknown", "None of these"


class ForecastOutcome(models.Model):
    """One forecast and what came of it. ``started_at`` is NULL while it still waits."""

    workload = models.ForeignKey(
        Workload, on_delete=models.CASCADE, related_name="forecast_outcomes"
    )
    at_submission = models.BooleanField()
    """The first that was told of it; others are told every hour while it waits."""
    told_at = models.DateTimeField()
    p50_s = models.FloatField()
    p90_s = models.FloatField()
    raw_p50_s = models.FloatField()
    raw_p90_s = models.FloatField()
    """Seconds from ``told_at``; raw is before correction."""
    naive_s = models.FloatField(null=True, blank=True)
    """Median wait of the last starts of the same class and size."""
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.SET_NULL, null=True, related_name="+")
    gpus = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    cause = models.CharField(max_length=12, choices=LateCause.choices, blank=True)
    note = models.CharField(max_length=200, blank=True)
    """The figures behind the cause."""

    class Meta:
        ordering = ["told_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload"],
                condition=Q(at_submission=True),
                name="forecast_outcome_one_at_submission",
            )
        ]
        indexes = [
            models.Index(fields=["workload", "told_at"], name="forecast_outcome_told"),
            models.Index(fields=["started_at"], name="forecast_outcome_started"),
            models.Index(
                fields=["told_at"],
                condition=Q(started_at__isnull=True),
                name="forecast_outcome_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workload}: told {self.p50_s:.0f} to {self.p90_s:.0f} s"

    @property
    def came_s(self) -> float | None:
        """Seconds until it started."""
        return None if self.started_at is None else (self.started_at - self.told_at).total_seconds()


class ForecastChange(models.TextChoices):
    """How what is told of a start differs from what was told before."""

    FIRST = "first", "Start told"
    SOONER = "sooner", "Told sooner"
    LATER = "later", "Told later"
    LOST = "lost", "No start told any longer"


class ToldStart(models.Model):
    """What was told of a workload's start: a row for each change worth speaking of, and why it came. The
    time of a reservation has no P50: it says by when."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="told_starts")
    at = models.DateTimeField()
    p50_at = models.DateTimeField(null=True, blank=True)
    p90_at = models.DateTimeField(null=True, blank=True)
    change = models.CharField(max_length=6, choices=ForecastChange.choices)
    breaks = models.BooleanField(default=False)
    """What was told before holds no longer: its P50 is past the P90 of before, or no time is told."""
    cause = models.CharField(max_length=12, choices=LateCause.choices, blank=True)
    note = models.CharField(max_length=200, blank=True)
    """The figures behind the cause, or why no time is told; names nobody."""

    class Meta:
        ordering = ["at", "id"]
        indexes = [
            models.Index(fields=["workload", "at"], name="told_start_of_workload"),
            models.Index(fields=["at"], condition=Q(breaks=True), name="told_start_broken"),
        ]

    def __str__(self) -> str:
        return f"{self.workload}: {self.change} {self.p50_at}"


class StartChanges(models.Model):
    """What would start a workload that waits, for those who may choose among the same queues and priority
    classes: planned in the background, so that a page has it when it is opened."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="start_changes")
    reach = models.CharField(max_length=32)
    """Digest of the queues and priority classes."""
    queues = models.JSONField(default=list)
    priority_classes = models.JSONField(default=list)
    found = models.JSONField(default=list)
    """As ``services.explain.documents.relaxation_document``, the cheapest first."""
    at = models.DateTimeField()
    revision = models.BigIntegerField()
    """Of the cluster, when it was planned."""
    planned_at = models.DateTimeField()
    """Real time."""
    kept_until = models.DateTimeField(null=True, blank=True)
    """Real time; NULL for its owner's, which is kept up as long as it waits."""

    class Meta:
        ordering = ["workload", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "reach"], name="start_changes_one_for_a_reach"
            )
        ]

    def __str__(self) -> str:
        return f"{self.workload}: {len(self.found)} changes"
