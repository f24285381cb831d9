"""The ledger: what the engine decided, what it cost, and who held what.

Times are cluster time; GPU columns milli-GPU.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduling.engine.model import Action
from scheduling.models.clusters import Cluster, GpuClass
from scheduling.models.queues import Queue
from scheduling.models.workloads import Workload


class Cycle(models.Model):
    """One pass of the engine that changed something, was the newest, or stands for an hour of others."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="cycles")
    number = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    took_ms = models.FloatField(default=0)
    """Snapshot to committed plan, real milliseconds; 0 where nobody measured it, as of a simulated past."""
    slowest_ms = models.FloatField(null=True)
    """The longest that a pass took of those that this row stood for: one that changed nothing has no row of
    its own."""
    slowest_at = models.DateTimeField(null=True)
    lag_s = models.FloatField(null=True)
    """How long the picture that it planned had been out of touch with the cluster, real seconds; NULL where
    nobody measured it."""
    trigger = models.CharField(max_length=20, default="timer")
    mode = models.CharField(max_length=8, default="observe")
    pending = models.PositiveIntegerField(default=0)
    running = models.PositiveIntegerField(default=0)
    admitted = models.PositiveIntegerField(default=0)
    evicted = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "number"], name="cycle_number_unique")
        ]
        indexes = [models.Index(fields=["cluster", "at"], name="cycle_at")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.number}"


class CycleRecord(models.Model):
    """What a cycle that acted was made of, so that it can be read and planned again."""

    cycle = models.OneToOneField(Cycle, on_delete=models.CASCADE, related_name="record")
    snapshot = models.BinaryField(null=True)
    """The engine's input as a snapshot file, gzip of JSON; NULL where it was too large to be kept."""
    queues = models.JSONField(default=list)
    """Queues that the acts touched, in the plan's order: {queue, gpu_class, change, ...figures of Share},
    milli-GPU before the plan; ``change`` is what it adds to ``allocated`` once it has come true."""
    phases = models.JSONField(default=list)
    """[name, milliseconds] in order."""
    causes = models.JSONField(default=list)
    """What came to pass since the cycle before, in order: {what, at, workload (its key) or name}."""
    more_causes = models.PositiveIntegerField(default=0)
    """Those beyond."""
    writes = models.JSONField(default=list)
    """Acts on objects: {workload (its key), kind, name, purpose, method, code, message, ms}; ``method`` is
    empty where nothing had to be sent, ``code`` the API server's status where it refused."""
    said = models.PositiveIntegerField(default=0)
    """Objects that were only told why their work waits."""
    written = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    """Writes to the cluster that were done, and acts that the API server refused."""

    def __str__(self) -> str:
        return f"record of {self.cycle}"


class Decision(models.Model):
    """One line of a plan. Waits are kept only when their reason changes."""

    cycle = models.ForeignKey(Cycle, on_delete=models.CASCADE, related_name="decisions")
    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="decisions")
    action = models.CharField(max_length=8, choices=[(a.value, a.value.title()) for a in Action])
    reason = models.CharField(max_length=40)
    sentence = models.TextField(blank=True)
    sealed = models.JSONField(null=True, default=None)
    """As ``services.told.sealed_of``; NULL where nobody kept whom the sentence names."""
    numbers = models.JSONField(default=dict)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.SET_NULL, null=True, related_name="+")
    members = models.PositiveIntegerField(default=0)
    placement = models.JSONField(default=dict)
    for_workload = models.ForeignKey(
        Workload, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    until = models.DateTimeField(null=True)
    position = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.action} {self.workload}: {self.reason}"


class EvictionRule(models.TextChoices):
    RECLAIM = "reclaim", "reclaim"
    PREEMPT = "preempt", "preempt"
    GIVE_WAY = "give_way", "give way"
    CONSOLIDATE = "consolidate", "consolidate"
    STALE_GANG = "stale_gang", "stale gang"
    DRAIN = "drain", "drain"


class LapseCause(models.TextChoices):
    """Why a claim lapsed that was made when others were evicted for a workload."""

    SEATS_GONE = "seats_gone", "the seats that were kept are gone"
    EDITED = "edited", "the other asks for something else"
    HELD = "held", "the other was held or may not start"
    GONE = "gone", "the other ended or was cancelled"
    TAKEN_AWAY = "taken_away", "people took away what the other was to have"
    OVERDUE = "overdue", "the other could not start in time"
    GIVEN_UP = "given_up", "a plan gave it up"


OWN_CAUSES = (LapseCause.GONE, LapseCause.HELD, LapseCause.EDITED)
"""Of the workload's own people: what left for it was lost, but for nobody's fault."""


class Eviction(models.Model):
    """The act on a victim: by which rule, for whom, with the numbers of that moment."""

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="evictions")
    cycle = models.ForeignKey(Cycle, on_delete=models.SET_NULL, null=True, related_name="evictions")
    at = models.DateTimeField()
    rule = models.CharField(max_length=11, choices=EvictionRule.choices)
    allowed_by = models.CharField(max_length=40, blank=True)
    """Which rule of the engine let it go (``engine.enums.Rule``); empty where nobody noted it."""
    in_vain = models.CharField(max_length=12, choices=LapseCause.choices, blank=True)
    """Why the claim lapsed that it made room for; empty while that one stands or once it was kept."""
    queue = models.ForeignKey(
        Queue, on_delete=models.SET_NULL, null=True, related_name="evictions_out"
    )
    for_workload = models.ForeignKey(
        Workload, on_delete=models.SET_NULL, null=True, related_name="evictions_for"
    )
    for_queue = models.ForeignKey(
        Queue, on_delete=models.SET_NULL, null=True, related_name="evictions_in"
    )
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.SET_NULL, null=True, related_name="+")
    gpus = models.PositiveIntegerField()
    asked_gpus = models.PositiveIntegerField(default=0)
    lost_gpu_s = models.FloatField(default=0)
    sentence = models.TextField(blank=True)
    sealed = models.JSONField(null=True, default=None)
    """As ``services.told.sealed_of``; NULL where nobody kept whom the sentence names."""
    numbers = models.JSONField(default=dict)
    """victim_held_before/after, victim_fair_share, for_held_before/after, for_fair_share (GPUs)."""

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["at"], name="eviction_at")]

    def __str__(self) -> str:
        return f"{self.workload}: {self.rule}"


class Share(models.Model):
    """The newest division: one row a queue and class, replaced by each cycle. Milli-GPU.

    The root's row is the cluster: ``fair_share`` is ready capacity, ``nominal`` installed capacity.
    """

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="shares")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="shares")
    fair_share = models.FloatField(default=0)
    potential = models.FloatField(default=0)
    allocated = models.PositiveIntegerField(default=0)
    nominal = models.PositiveIntegerField(default=0)
    limit = models.PositiveIntegerField(null=True)
    demand = models.PositiveBigIntegerField(default=0)
    pending = models.PositiveBigIntegerField(default=0)
    guaranteed = models.FloatField(default=0)
    lent = models.PositiveIntegerField(default=0)
    kept_back = models.PositiveIntegerField(default=0)
    oversubscribed = models.BooleanField(default=False)
    usage = models.FloatField(default=0)
    """Decayed usage as a share of the class's capacity."""
    steps = models.JSONField(default=list)
    """[{kind, gpus, n, u, w, tier}] as the division took them, GPUs as numbers of GPUs; their sum is
    ``fair_share``.
    """

    class Meta:
        ordering = ["queue", "gpu_class"]
        constraints = [
            models.UniqueConstraint(fields=["queue", "gpu_class"], name="share_queue_class_unique")
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.gpu_class}"


class UserUsage(models.Model):
    """What a user held in a leaf on average up to ``at``, older time counting less. Milli-GPU."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="user_usage")
    user = models.CharField(max_length=150)
    gpus = models.FloatField(default=0)
    at = models.DateTimeField()

    class Meta:
        ordering = ["queue", "user"]
        constraints = [models.UniqueConstraint(fields=["queue", "user"], name="user_usage_unique")]

    def __str__(self) -> str:
        return f"{self.user} in {self.queue}"


class Resolution(models.TextChoices):
    MINUTE = "minute", "Minute"
    HOUR = "hour", "Hour"
    DAY = "day", "Day"


class UsageSample(models.Model):
    """Time means over one period for a queue and class, milli-GPU.

    Samples of the root carry capacity (installed and ready). Finer rows are rolled up into coarser
    ones and then dropped by retention.
    """

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="usage_samples")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    resolution = models.CharField(max_length=6, choices=Resolution.choices)
    start = models.DateTimeField()
    seconds = models.PositiveIntegerField()
    """Time covered, at most the resolution."""
    installed_gpus = models.FloatField(default=0)
    ready_gpus = models.FloatField(default=0)
    allocated_gpus = models.FloatField(default=0)
    used_gpus = models.FloatField(null=True)
    """Really used, from the cluster's metrics; NULL where nobody measures."""
    fragmented_gpus = models.FloatField(null=True)
    """Of the root: free, but of no use to what waits or usually runs; NULL where nobody looked."""
    demand_gpus = models.FloatField(null=True)
    """What would have run had nothing waited; NULL where nobody worked it out."""
    nominal_gpus = models.FloatField(default=0)
    fair_share_gpus = models.FloatField(default=0)
    pending_gpus = models.FloatField(default=0)

    class Meta:
        ordering = ["start", "queue", "gpu_class"]
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "gpu_class", "resolution", "start"], name="usage_sample_unique"
            ),
            models.CheckConstraint(condition=Q(seconds__gt=0), name="usage_sample_covers_time"),
        ]
        indexes = [models.Index(fields=["resolution", "start"], name="usage_sample_start")]

    def __str__(self) -> str:
        return f"{self.queue} {self.gpu_class} {self.start:%F %R}"
