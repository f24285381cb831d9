"""What adapts by itself: one switch a cluster, one row a parameter, and the trials of other values.

Times are cluster time. Only ``services.studies.adapting`` writes these rows.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduling.models.clusters import Cluster
from scheduling.models.studies import Study


class Adaptation(models.Model):
    """Whether parameters of a cluster's policy follow feedback, and when they were looked at last."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="adaptation")
    is_on = models.BooleanField(default=False)
    looked_at = models.DateTimeField(null=True, blank=True)
    """When a parameter was chosen last, or could not be."""
    why = models.CharField(max_length=300, blank=True)
    """Why nothing could be judged at the last look."""

    def __str__(self) -> str:
        return f"{self.cluster}: adaptation {'on' if self.is_on else 'off'}"


class AdaptingParameter(models.Model):
    """``name`` as ``adapting.parameters`` declares it; the last change is the engine's own."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="adapting_parameters"
    )
    name = models.CharField(max_length=30)
    is_pinned = models.BooleanField(default=False)
    changed_at = models.DateTimeField(null=True, blank=True)
    changed_from = models.JSONField(null=True, blank=True)
    changed_to = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["cluster", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="adapting_parameter_once")
        ]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.name}"


class TrialState(models.TextChoices):
    """JUDGING is replayed before anything changes; TRYING is in force, for a week. STOPPED by a person."""

    JUDGING = "judging", "Being replayed"
    TRYING = "trying", "On trial"
    KEPT = "kept", "Kept"
    TAKEN_BACK = "taken_back", "Taken back"
    NO_BETTER = "no_better", "No better value"
    STOPPED = "stopped", "Stopped"


class AdaptingTrial(models.Model):
    """One parameter, judged and perhaps stepped: of each cluster one is open at most."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="adapting_trials")
    parameter = models.CharField(max_length=30)
    state = models.CharField(max_length=10, choices=TrialState.choices, default=TrialState.JUDGING)
    value_from = models.JSONField()
    value_to = models.JSONField(null=True, blank=True)
    """NULL as long as no step is taken."""
    asked_at = models.DateTimeField()
    begun_at = models.DateTimeField(null=True, blank=True)
    """When the step was taken."""
    checked_at = models.DateTimeField(null=True, blank=True)
    """When the days since were replayed last."""
    ended_at = models.DateTimeField(null=True, blank=True)
    study = models.ForeignKey(
        Study, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """The replays that are waited for."""
    evidence = models.JSONField(default=dict)
    """{"step": judged, "checks": [judged]}, as ``services.studies.adapting.judging`` writes them."""
    sentence = models.CharField(max_length=500, blank=True)
    """The evidence in words, as of the last change of state."""

    class Meta:
        ordering = ["-asked_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"],
                condition=Q(state__in=["judging", "trying"]),
                name="adapting_trial_one_open",
            )
        ]
        indexes = [models.Index(fields=["cluster", "asked_at"], name="adapting_trial_asked")]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.parameter}, {self.state}"
