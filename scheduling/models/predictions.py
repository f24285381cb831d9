"""What was learned of run times, and what was said of each workload by it.

Times are cluster time, durations seconds. Only ``services.run_times`` writes these rows.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from scheduling.models.clusters import Cluster
from scheduling.models.workloads import Workload


class PredictorKind(models.TextChoices):
    HISTORY = "history", "History"
    BOOSTED = "boosted", "Boosted"


class PredictorState(models.TextChoices):
    """A CANDIDATE was learned and does not serve yet; one of a cluster is SERVING; RETIRED ones did."""

    CANDIDATE = "candidate", "Candidate"
    SERVING = "serving", "Serves"
    RETIRED = "retired", "Retired"


class Predictor(models.Model):
    """One version of a cluster's run-time model, what it was learned from and how well it did."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="predictors")
    kind = models.CharField(max_length=7, choices=PredictorKind.choices)
    version = models.PositiveIntegerField()
    """Counts the models of a cluster, whatever their kind."""
    status = models.CharField(
        max_length=9, choices=PredictorState.choices, default=PredictorState.CANDIDATE
    )
    window_from = models.DateTimeField()
    window_to = models.DateTimeField()
    """It has seen nothing that had not ended by then."""
    runs = models.PositiveIntegerField(default=0)
    """Runs that it was learned from, ``censored`` of them cut short: learned as 'at least so long'."""
    censored = models.PositiveIntegerField(default=0)
    took_s = models.FloatField(default=0)
    """CPU seconds that learning took."""
    state = models.BinaryField()
    """As ``scheduling.prediction.storage`` writes it: compressed JSON, which holds numbers and no code."""
    calibration = models.JSONField(default=dict)
    """On runs that began after what it was fitted to had ended: {runs, median_abs_log2_error, pinball,
    p10_p90_pct, p50_p90_pct, simple: {name of a one-line predictor: {median_abs_log2_error, pinball}}}."""
    paces = models.JSONField(default=list)
    """How much sooner runs end on one class than on another: {gpu_class, against, ratio, groups, runs};
    a ratio of 2 is in half the time."""
    served_from = models.DateTimeField(null=True, blank=True)
    served_until = models.DateTimeField(null=True, blank=True)
    weighs = models.JSONField(default=dict)
    """What matters to it: {"runs": judged, "known": [{name, loss_pct}]}, by how much larger the loss were on
    runs that its trees had not seen, did it not know this; {"groups": [{name, runs, error}]}, what its
    predictions rested on and how far they were off."""
    why = models.CharField(max_length=200, blank=True)
    """Why it serves, waits, or had to go, in one sentence."""

    class Meta:
        ordering = ["cluster", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "version"], name="predictor_version_unique"),
            models.UniqueConstraint(
                fields=["cluster"],
                condition=Q(status=PredictorState.SERVING),
                name="predictor_one_serves",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} v{self.version} of {self.cluster}"


class Prediction(models.Model):
    """The rest of a workload's run, in quantiles, as last predicted; and what was said of it at first.

    Of one that waits the rest is all that is left to run. Once it has ended ``ran_s`` says how long it took.
    """

    workload = models.OneToOneField(Workload, on_delete=models.CASCADE, related_name="prediction")
    predictor = models.ForeignKey(
        Predictor, on_delete=models.SET_NULL, null=True, related_name="predictions"
    )
    at = models.DateTimeField()
    p10_s = models.FloatField()
    p50_s = models.FloatField()
    p90_s = models.FloatField()
    """Of the rest from ``at`` on, on the class that it runs on, else on the first it asks for."""
    by_class = models.JSONField(default=dict)
    """{class: {place, p10_s, p50_s, p90_s, ratio, runs, groups, own_runs}} for each class that it may run on,
    where all paces are known; ``place`` in its author's order."""
    paces = models.JSONField(default=dict)
    """{class: how many times sooner it ends there than on the first it names}, while it waits, runs and after
    that; empty unless it may run on several and all are known."""
    evidence = models.JSONField(default=dict)
    """What it was learned from: {group, name, runs, ran_s, shortest_s, longest_s}."""
    told_by = models.ForeignKey(
        Predictor, on_delete=models.SET_NULL, null=True, related_name="first_predictions"
    )
    told_at = models.DateTimeField()
    told_p10_s = models.FloatField()
    told_p50_s = models.FloatField()
    told_p90_s = models.FloatField()
    """As said first, before it had run: what the model is judged by."""
    ran_s = models.FloatField(null=True, blank=True)
    cut_short = models.BooleanField(default=False)
    """It failed, was cancelled or evicted for good: the run would have taken at least ``ran_s``."""

    class Meta:
        ordering = ["workload"]
        constraints = [
            models.CheckConstraint(
                condition=Q(p10_s__gte=0, p50_s__gte=F("p10_s"), p90_s__gte=F("p50_s")),
                name="prediction_quantiles_in_order",
            )
        ]
        indexes = [models.Index(fields=["predictor", "at"], name="prediction_predictor_at")]

    def __str__(self) -> str:
        return f"{self.workload}: {self.p10_s:.0f} to {self.p90_s:.0f} s"
