"""Learned orders of a cluster: weights found on its own past, how they held on later days, and what became
of them.

Times are cluster time, but for ``made_at`` and claims, which are real time. Only ``services.learned`` writes
these rows.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from scheduling.engine.model import Sharing
from scheduling.models.clusters import Cluster
from scheduling.models.ledger import Cycle


class LearnedState(models.TextChoices):
    """TRAINING searches weights and lives later days under them; JUDGED has its verdict; in SHADOW it plans
    beside what decides; DECIDING its weights are in force. The others are over."""

    TRAINING = "training", "In training"
    JUDGED = "judged", "Judged"
    SHADOW = "shadow", "In shadow"
    DECIDING = "deciding", "Decides"
    DEMOTED = "demoted", "Demoted"
    REJECTED = "rejected", "Rejected"
    WITHDRAWN = "withdrawn", "Withdrawn"


class LearnedOrder(models.Model):
    """One version of a cluster's learned order."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="learned_orders")
    version = models.PositiveIntegerField()
    state = models.CharField(
        max_length=9, choices=LearnedState.choices, default=LearnedState.TRAINING
    )
    why = models.CharField(max_length=300, blank=True)
    """Why it is in this state, in one sentence."""
    since = models.DateTimeField()
    """When it came into this state."""
    author = models.CharField(max_length=150, blank=True)
    """Empty: Weir itself, at night."""
    sharing = models.CharField(max_length=12, choices=[(one.value, one.value) for one in Sharing])
    """The rule of sharing whose hand-written order the search began at."""
    weights = models.JSONField(default=dict)
    """Feature -> weight; empty until the search is over."""
    spread = models.JSONField(default=dict)
    """Feature -> [least, most] over the tried weights whose cost was near the least."""
    victim_weights = models.JSONField(default=dict)
    """The same of who may leave; empty: the rule that is shipped chooses victims."""
    victim_spread = models.JSONField(default=dict)
    victim_tried = models.JSONField(default=list)
    """[[weights of victims, cost], …] beside the weights of the order, none at all first."""
    victims_said = models.CharField(max_length=300, blank=True)
    """What the search for victims came to, in one sentence; empty until it is over."""
    trained_from = models.DateTimeField()
    trained_to = models.DateTimeField()
    """Warm-up included; nothing that it is judged on lies before ``trained_to``."""
    workloads = models.PositiveIntegerField(default=0)
    """That it was trained on."""
    seed = models.PositiveIntegerField(default=1)
    generations = models.PositiveIntegerField()
    population = models.PositiveIntegerField()
    replays = models.PositiveIntegerField()
    """Lives of each later window under each order."""
    most_cpu_s = models.PositiveIntegerField()
    """The search ends after so many seconds of one core, with the best weights so far."""
    cpu_s = models.FloatField(default=0)
    tried = models.JSONField(default=list)
    """[[weights, cost], …] in the order of the search, the hand-written order first."""
    windows = models.JSONField(default=list)
    """[{key, kind, begin, end, workloads, orders: [{key, name}]}] of what it is judged on, and against whom,
    whoever decided first."""
    world = models.JSONField(default=dict)
    """A snapshot without work, of when training began; empty once nothing is left to live."""
    work = models.JSONField(default=dict)
    """Window -> its jobs, as ``services.lab.periods`` writes them; those that are lived are dropped."""
    verdict = models.JSONField(default=dict)
    """As ``services.learned.verdicts`` writes it."""
    seen_cycle = models.PositiveBigIntegerField(default=0)
    """Number of the last cycle that was planned again in shadow."""
    looked_at = models.PositiveIntegerField(default=0)
    """Starts and evictions of the cycles that were planned again."""
    differed = models.PositiveIntegerField(default=0)
    """Of them it would have decided otherwise."""
    asked_at = models.DateTimeField()
    made_at = models.DateTimeField()
    held_until = models.DateTimeField(null=True, blank=True)
    """Until then a worker is at it; once it is past another takes up what is left."""

    class Meta:
        ordering = ["cluster", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "version"], name="learned_version_unique"),
            models.UniqueConstraint(
                fields=["cluster", "state"],
                condition=Q(
                    state__in=[LearnedState.TRAINING, LearnedState.SHADOW, LearnedState.DECIDING]
                ),
                name="learned_one_in_each_state",
            ),
            models.CheckConstraint(
                condition=Q(trained_to__gt=F("trained_from")), name="learned_span_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"v{self.version}"


class LearnedLife(models.Model):
    """One life of a window under one order; lives of a window with the same seed differ in nothing else."""

    order = models.ForeignKey(LearnedOrder, on_delete=models.CASCADE, related_name="lives")
    window = models.CharField(max_length=40)
    under = models.CharField(max_length=20)
    """Key of the order that it was lived under."""
    seed = models.PositiveIntegerField()
    figures = models.JSONField(default=dict)

    class Meta:
        ordering = ["order", "window", "under", "seed"]
        constraints = [
            models.UniqueConstraint(
                fields=["order", "window", "under", "seed"], name="learned_life_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.order}, {self.window} under {self.under}, seed {self.seed}"


class LearnedStep(models.Model):
    """A version came into a state."""

    order = models.ForeignKey(LearnedOrder, on_delete=models.CASCADE, related_name="steps")
    state = models.CharField(max_length=9, choices=LearnedState.choices)
    at = models.DateTimeField()
    why = models.CharField(max_length=300, blank=True)
    author = models.CharField(max_length=150, blank=True)
    """Empty: Weir itself."""

    class Meta:
        ordering = ["order", "at", "id"]

    def __str__(self) -> str:
        return f"{self.order} {self.state}"


class DifferenceKind(models.TextChoices):
    START = "start", "Start"
    EVICT = "evict", "Eviction"


class LearnedDifference(models.Model):
    """A decision, and what the version in shadow would have decided in its place."""

    order = models.ForeignKey(LearnedOrder, on_delete=models.CASCADE, related_name="differences")
    cycle = models.ForeignKey(Cycle, on_delete=models.SET_NULL, null=True, related_name="+")
    number = models.PositiveBigIntegerField()
    """Of the cycle."""
    at = models.DateTimeField()
    kind = models.CharField(
        max_length=5, choices=DifferenceKind.choices, default=DifferenceKind.START
    )
    decided = models.JSONField()
    """Who was started or evicted: {name, queue, user, gpus, gpu_class, expected_s, waited_s, lost_gpu_s}."""
    would = models.JSONField(null=True, blank=True)
    """The same of who would have been; none: nobody in its place."""

    class Meta:
        ordering = ["order", "-number", "id"]
        indexes = [models.Index(fields=["order", "number"], name="learned_difference_cycle")]

    def __str__(self) -> str:
        return f"cycle {self.number}: {self.decided.get('name')}"


class LearnedEffect(models.Model):
    """What it would have led to if a version had decided in one cycle: two lives from its snapshot on, one as
    it was decided and one as the version would have, which differ in that decision alone."""

    order = models.ForeignKey(LearnedOrder, on_delete=models.CASCADE, related_name="effects")
    number = models.PositiveBigIntegerField()
    """Of the cycle."""
    at = models.DateTimeField()
    until = models.DateTimeField()
    """So far both were lived, from ``at`` on."""
    workloads = models.PositiveIntegerField(default=0)
    """That they were lived for."""
    wait_s = models.FloatField(null=True, blank=True)
    """The waits of all under the version less those as it was decided; below zero is better. NULL: not
    replayed, ``why_not`` says why."""
    least_s = models.FloatField(null=True, blank=True)
    most_s = models.FloatField(null=True, blank=True)
    """Of the same with run times that differ by little, life by life."""
    lost_gpu_s = models.FloatField(null=True, blank=True)
    """GPU-seconds that evictions lost, likewise."""
    why_not = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["order", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["order", "number"], name="learned_effect_once"),
            models.CheckConstraint(
                condition=Q(wait_s__isnull=False) | ~Q(why_not=""), name="learned_effect_or_why"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.order}, cycle {self.number}"
