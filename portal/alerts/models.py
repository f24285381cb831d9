"""Rules that fire when a figure passes a bound, and when each did."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from portal.teams.models import Team
from scheduling.models import Cluster, GpuClass, Queue, Workload


class Figure(models.TextChoices):
    """What is watched; in seconds, but for evictions (a count), GPUs oversubscribed, and days of a budget."""

    LONGEST_WAIT = "longest_wait", "Longest wait"
    WAIT_P90 = "wait_p90", "Wait P90"
    STARVATION = "starvation", "Starvation"
    IDLE_GPUS = "idle_gpus", "Idle GPUs"
    EVICTED_AGAIN = "evicted_again", "Repeated eviction"
    IN_VAIN = "in_vain", "Evictions in vain"
    BUDGET = "budget", "Budget"
    OVERSUBSCRIBED = "oversubscribed", "Oversubscription"
    ENGINE_STALLED = "engine_stalled", "Engine stalled"
    MIRROR_STALE = "mirror_stale", "Mirror stale"


class Tell(models.TextChoices):
    OPERATORS = "operators", "Operators"
    LEADS = "leads", "Leads of the queue"
    OWNER = "owner", "Owner of the work"


class Rule(models.Model):
    """Fires once its figure has been above ``over`` for ``for_s`` seconds (cluster time)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alert_rules")
    figure = models.CharField(max_length=16, choices=Figure.choices)
    queue = models.ForeignKey(
        Queue, on_delete=models.CASCADE, null=True, blank=True, related_name="alert_rules"
    )
    """Of it and all below; NULL: of the whole cluster."""
    gpu_class = models.ForeignKey(
        GpuClass, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    over = models.FloatField(validators=[MinValueValidator(0)])
    for_s = models.PositiveIntegerField(default=0)
    least_gpus = models.PositiveIntegerField(default=1)
    """Of one workload; for idle GPUs."""
    tell = models.CharField(max_length=9, choices=Tell.choices, default=Tell.OPERATORS)
    again_s = models.PositiveIntegerField(default=6 * 3600)
    """Nobody is told again within."""
    escalate_s = models.PositiveIntegerField(default=0)
    """Unacknowledged for so long, it is told to a second circle; 0: never."""
    escalate_team = models.ForeignKey(
        Team, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    escalate_people = models.JSONField(default=list)
    """User names. With no team and no people the second circle are the administrators."""
    tested_at = models.DateTimeField(null=True, editable=False)
    """Real time of its last test delivery."""
    over_since = models.DateTimeField(null=True, editable=False)
    """Since when it has been over; NULL while it is not."""
    value = models.FloatField(null=True, editable=False)
    """Of its figure at the last look; NULL before the first."""
    who = models.BigIntegerField(default=0, editable=False)
    """Id of the workload or queue that it was about then; 0: of none."""
    of_class = models.ForeignKey(
        GpuClass, on_delete=models.SET_NULL, null=True, editable=False, related_name="+"
    )
    """GPU class that it was about then."""
    near = models.JSONField(null=True, editable=False)
    """[[since, until]], seconds since 1970: when in the last two weeks it was near its bound and did not
    fire; ``until`` is null while it is."""

    class Meta:
        ordering = ["figure", "queue__path", "id"]

    def __str__(self) -> str:
        return f"{self.get_figure_display()} of {self.cluster}"


class Firing(models.Model):
    """A time in which a rule fired; ``until`` is NULL while it does."""

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="firings")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)
    peak = models.FloatField()
    workload = models.ForeignKey(
        Workload, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    queue = models.ForeignKey(
        Queue, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """Whom it was about when it began."""
    gpu_class = models.ForeignKey(
        GpuClass, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """Of what, then."""
    told = models.PositiveIntegerField(default=0)
    """People who were."""
    told_at = models.DateTimeField(null=True, blank=True)
    escalated = models.PositiveIntegerField(default=0)
    """People of the second circle who were told."""
    escalated_at = models.DateTimeField(null=True, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-since", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rule"], condition=Q(until=None), name="alert_fires_once_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"{self.rule} since {self.since:%F %R}"


class Watch(models.Model):
    """When the rules of a cluster were looked at last; a cluster without one gets the first rules."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cluster} at {self.at:%F %R}"
