"""Experiments of the policy lab: a past period, or a trace, lived again under variants, replay by replay.

Times are cluster time, but for claims, which are real time. Only ``services.lab`` writes these rows.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

from scheduling.models.clusters import Cluster


class Experiment(models.Model):
    """What is lived again: the world and the work are kept, so that every replay has the same ones."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="experiments")
    name = models.CharField(max_length=120)
    author = models.CharField(max_length=150)
    """Of those that adaptation asks for nobody."""
    begin = models.DateTimeField()
    end = models.DateTimeField()
    """Of what is judged."""
    warm_up_s = models.PositiveIntegerField(default=0)
    replays = models.PositiveIntegerField(default=20)
    is_drawn = models.BooleanField(default=True)
    """Whether arrivals and run times are drawn near what came; else the period is lived once, as it came."""
    jobs = models.PositiveIntegerField(default=0)
    """Workloads that are judged."""
    asked_at = models.DateTimeField()
    world = models.JSONField(default=dict)
    """A snapshot without work: nodes, queues, quotas, classes and policy of the period, as ``basis`` says."""
    work = models.JSONField(default=list)
    """The jobs of warm-up and period, as ``services.lab.periods`` writes them."""
    source = models.JSONField(default=dict)
    """Whence the work is: {kind: ledger}, or {kind: trace} with its name and how it was mapped
    (``services.lab.mapped``)."""
    basis = models.JSONField(default=dict)
    """What the world rests on, as ``services.lab.worlds`` tells it."""
    recorded = models.JSONField(default=dict)
    """What really came: {avg_wait_s, evictions}; of a trace nothing."""

    class Meta:
        ordering = ["-asked_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(end__gt=F("begin")), name="experiment_in_order"),
            models.CheckConstraint(condition=Q(replays__gte=1), name="experiment_replays"),
        ]
        indexes = [models.Index(fields=["cluster", "asked_at"], name="experiment_asked")]

    def __str__(self) -> str:
        return self.name

    @property
    def asked_by(self) -> str:
        return self.author or "Adaptation"

    @property
    def seeds(self) -> range:
        """0 draws nothing."""
        return range(1, self.replays + 1) if self.is_drawn else range(1)

    @property
    def starts(self) -> datetime:
        """When the warm-up begins."""
        return self.begin - timedelta(seconds=self.warm_up_s)


class VariantState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"


class Variant(models.Model):
    """One way of an experiment. Its letter stays when another goes; A is as it was in force."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="variants")
    letter = models.CharField(max_length=1)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=20)
    """As ``services.lab.kinds`` knows them."""
    changes = models.JSONField(default=list)
    state = models.CharField(
        max_length=9, choices=VariantState.choices, default=VariantState.WAITING
    )
    fault = models.CharField(max_length=300, blank=True)
    promoted_at = models.DateTimeField(null=True, blank=True)
    promoted_by = models.CharField(max_length=150, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    """Why it was promoted."""

    class Meta:
        ordering = ["experiment", "letter"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "letter"], name="variant_letter")
        ]

    def __str__(self) -> str:
        return f"{self.letter} {self.name}"


class VariantReplay(models.Model):
    """One replay of a variant. Whoever holds the claim works on it, until real time ``claimed_until``."""

    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="replays")
    seed = models.PositiveIntegerField()
    claim = models.CharField(max_length=32, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    took_s = models.FloatField(default=0)
    """CPU seconds."""
    figures = models.JSONField(default=dict)
    queues = models.JSONField(default=dict)
    """Queue -> its figures."""

    class Meta:
        ordering = ["variant", "seed"]
        constraints = [
            models.UniqueConstraint(fields=["variant", "seed"], name="variant_replay_once")
        ]
        indexes = [models.Index(fields=["done_at", "claimed_until"], name="variant_replay_open")]

    def __str__(self) -> str:
        return f"{self.variant}, seed {self.seed}"
