"""Studies: a past lived again with something changed, and compared.

A study has variants, each lived once for every seed; a life leaves one result. What a kind asks, lives and
answers is in ``services.studies``, which alone writes these rows. ``asked_at``, ``done_at``, ``begin`` and
``end`` are cluster time, ``made_at`` and ``held_until`` real time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q

from scheduling.models.clusters import Cluster
from scheduling.models.queues import Queue


class StudyKind(models.TextChoices):
    NOW = "now", "At once"
    REPLAY = "replay", "At once, and the last days again"
    EDIT = "edit", "The last days again with an edit of quotas"
    CAPACITY = "capacity", "Waits on more and fewer GPUs"
    EXPERIMENT = "experiment", "A period under variants"
    ADAPTING = "adapting", "Another value of a parameter that adapts"


class StudyState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"


OPEN = (StudyState.WAITING, StudyState.RUNNING)


class Study(models.Model):
    """World and work are kept as they were when it was asked, so that all lives have the same ones."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="studies")
    kind = models.CharField(max_length=10, choices=StudyKind.choices)
    name = models.CharField(max_length=200, blank=True)
    author = models.CharField(max_length=150, blank=True)
    """Empty: Weir itself."""
    question = models.JSONField(default=dict)
    """What else its kind was asked: ``changes``, ``base``, ``days``, ``step_gpus``, ``most_cpu_s``."""
    queue = models.ForeignKey(
        Queue, on_delete=models.CASCADE, null=True, blank=True, related_name="studies"
    )
    """Whose work alone is lived, with that of the queues below it; NULL: all work."""
    begin = models.DateTimeField(null=True, blank=True)
    end = models.DateTimeField(null=True, blank=True)
    """Of what is judged; NULL: the days up to when it is answered."""
    warm_up_s = models.PositiveIntegerField(default=0)
    replays = models.PositiveIntegerField(default=1)
    """Lives of each variant."""
    is_drawn = models.BooleanField(default=True)
    """Whether arrivals and run times are drawn near what came; else the period is lived once, as it came."""
    world = models.JSONField(default=dict)
    """A snapshot without work from which every life begins."""
    work = models.JSONField(default=list)
    """The jobs of warm-up and period, where they are not read from the ledger."""
    basis = models.JSONField(default=dict)
    """What it rests on: ``jobs``, ``source`` and ``world``, what was ``recorded``; the ``curves`` tried."""
    answer = models.JSONField(default=dict)
    """As far as it goes, where it is no comparison of results."""
    state = models.CharField(max_length=9, choices=StudyState.choices, default=StudyState.WAITING)
    progress = models.PositiveIntegerField(default=0)
    """Percent."""
    cpu_s = models.FloatField(default=0)
    fault = models.CharField(max_length=300, blank=True)
    """Why it failed, and what to do about it."""
    asked_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)
    made_at = models.DateTimeField(auto_now_add=True)
    is_kept = models.BooleanField(default=False)
    """Kept until somebody drops it."""

    class Meta:
        ordering = ["-asked_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(progress__lte=100), name="study_progress_percent"),
            models.CheckConstraint(condition=Q(replays__gte=1), name="study_replays"),
            models.CheckConstraint(
                condition=Q(end=None) | Q(end__gt=F("begin")), name="study_in_order"
            ),
        ]
        indexes = [models.Index(fields=["cluster", "kind", "asked_at"], name="study_asked")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def asked_by(self) -> str:
        return self.author or "Weir"

    @property
    def changes(self) -> list[dict[str, Any]]:
        return list(self.question.get("changes", ()))

    @property
    def days(self) -> int:
        """Lived again; those before it is answered where it has no period."""
        if self.begin is None or self.end is None:
            return int(self.question.get("days", 0))
        return (self.end - self.begin).days

    @property
    def seeds(self) -> range:
        """0 draws nothing."""
        return range(1, self.replays + 1) if self.is_drawn else range(1)

    @property
    def period(self) -> tuple[datetime, datetime]:
        """Of a study that has one."""
        assert self.begin is not None  # noqa: S101 - its kind has one
        assert self.end is not None  # noqa: S101 - its kind has one
        return self.begin, self.end

    @property
    def starts(self) -> datetime:
        """When the warm-up begins."""
        return self.period[0] - timedelta(seconds=self.warm_up_s)


class Variant(models.Model):
    """One way of a study. Its letter stays when another goes; A is as it was in force."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="variants")
    letter = models.CharField(max_length=80)
    """Of studies of capacity the class and how many steps more or fewer."""
    name = models.CharField(max_length=200)
    changes = models.JSONField(default=list)
    state = models.CharField(max_length=9, choices=StudyState.choices, default=StudyState.WAITING)
    fault = models.CharField(max_length=300, blank=True)
    promoted_at = models.DateTimeField(null=True, blank=True)
    promoted_by = models.CharField(max_length=150, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    """Why it was promoted."""

    class Meta:
        ordering = ["study", "id"]
        constraints = [models.UniqueConstraint(fields=["study", "letter"], name="variant_letter")]

    def __str__(self) -> str:
        return f"{self.letter} {self.name}"


class Result(models.Model):
    """One life of a variant. The holder of the claim works on it, until real time ``held_until``."""

    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="results")
    seed = models.PositiveIntegerField()
    claim = models.CharField(max_length=32, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    took_s = models.FloatField(default=0)
    """CPU seconds."""
    figures = models.JSONField(default=dict)
    queues = models.JSONField(default=dict)
    """Queue -> its figures."""

    class Meta:
        ordering = ["variant", "seed"]
        constraints = [models.UniqueConstraint(fields=["variant", "seed"], name="result_once")]
        indexes = [models.Index(fields=["done_at", "held_until"], name="result_open")]

    def __str__(self) -> str:
        return f"{self.variant}, seed {self.seed}"
