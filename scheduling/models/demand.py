"""What will be asked of the GPUs, as last forecast. Only ``services.ledger.demand`` writes these rows."""

from __future__ import annotations

from django.db import models

from scheduling.models.clusters import GpuClass
from scheduling.models.queues import Queue


class DemandForecast(models.Model):
    """The newest of a queue, with all below it, and a class; the root's is the cluster's."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="demand_forecasts")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    made_at = models.DateTimeField()
    """Cluster time; the hours ahead begin there."""
    took_s = models.FloatField(default=0)
    """CPU seconds."""
    known_days = models.PositiveIntegerField(default=0)
    why_not = models.CharField(max_length=200, blank=True)
    """Why there is none; else empty."""
    hours = models.JSONField(default=dict)
    """{p10, p25, p50, p75, p90}: GPUs of the class in each of the next hours."""
    weeks = models.JSONField(default=dict)
    """The same as means of whole weeks."""
    slope_per_week = models.FloatField(default=0)
    origins = models.PositiveIntegerField(default=0)
    """Earlier forecasts that the bands rest on."""
    scores = models.JSONField(default=list)
    """[{days_ahead, error, last_week_error, held, forecasts}], errors in GPUs."""
    earlier = models.JSONField(default=dict)
    """{days_ago, p10, p50, p90, came}: weekly means that were told then, beside what came; or empty."""

    class Meta:
        ordering = ["queue", "gpu_class"]
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "gpu_class"], name="demand_forecast_one_a_queue_and_class"
            )
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.gpu_class} {self.made_at:%F %R}"
