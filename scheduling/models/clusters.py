"""Clusters and what they are made of.

Nodes are a projection of the cluster (the mirror writes them); classes and pools are policy (people
write them). GPU columns are milli-GPU integers.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from simple_history.models import HistoricalRecords

from scheduling.engine.model import Sharing

dns_label = RegexValidator(
    r"^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$",
    "Use lower-case letters, digits, '-' and '.', at most 63 characters.",
)


TOPOLOGY_LEVELS = "; ".join(
    (
        "block=weir.dev/block,topology.kubernetes.io/zone",
        "rack=weir.dev/rack,topology.kubernetes.io/rack",
    )
)


class ClusterMode(models.TextChoices):
    OBSERVE = "observe", "Observe"
    ENFORCE = "enforce", "Enforce"
    PAUSED = "paused", "Paused"


class ClassOrder(models.TextChoices):
    """As its author lists them, or first where it would end first, as learned; or there alone, for as long as
    it would still end sooner than by a start elsewhere."""

    LISTED = "listed", "As listed"
    ENDS_FIRST = "ends_first", "Ends first"
    WAITS = "waits", "Ends first, and waits for it"


class Cluster(models.Model):
    """A Kubernetes cluster, how to reach it, and the policy its engine runs with.

    Reached by ``api_url`` (with the token in the file ``token_file``, CA in ``ca_file``), else by
    ``kubeconfig`` and ``context``, else by the service account of the pod Weir runs in.
    """

    name = models.SlugField(unique=True, validators=[dns_label])
    mode = models.CharField(max_length=8, choices=ClusterMode.choices, default=ClusterMode.OBSERVE)
    api_url = models.URLField(blank=True)
    token_file = models.CharField(max_length=500, blank=True)
    portal_token_file = models.CharField(max_length=500, blank=True)
    """Of the account that acts for people; empty: the engine's does."""
    ca_file = models.CharField(max_length=500, blank=True)
    kubeconfig = models.CharField(max_length=500, blank=True)
    context = models.CharField(max_length=200, blank=True)
    currency = models.CharField(max_length=3, default="EUR")
    display_time_zone = models.CharField(max_length=60, default="UTC")

    sharing = models.CharField(
        max_length=10,
        choices=[(s.value, s.value.replace("_", " ").capitalize()) for s in Sharing],
        default=Sharing.PROMISE.value,
    )
    """How what is above nominal is given out, but below queues that say otherwise."""
    history_strength = models.FloatField(default=0, validators=[MinValueValidator(0)])
    usage_half_life_s = models.PositiveIntegerField(default=7 * 86400)
    preemption_delay_s = models.PositiveIntegerField(default=0)
    eviction_cap = models.FloatField(null=True, blank=True, validators=[MinValueValidator(1)])
    placement = models.CharField(
        max_length=6, choices=[("pack", "Pack"), ("spread", "Spread")], default="pack"
    )
    spread_weight = models.FloatField(
        default=0, validators=[MinValueValidator(0), MaxValueValidator(1)]
    )
    """Of an even load against the demand mix, where nodes are packed."""
    order = models.CharField(max_length=30, default="arrival")
    stale_gang_grace_s = models.PositiveIntegerField(default=60)
    user_history_strength = models.FloatField(default=1, validators=[MinValueValidator(0)])
    """Weight of what a user held of late against what the user holds now, in the order of a leaf."""
    charge_s = models.PositiveIntegerField(default=3600)
    """A start is charged for so long at once, so a burst between samples gains nothing."""
    lowering_grace_s = models.PositiveIntegerField(default=3600)
    """A lowered quota evicts nobody for so long."""
    reserve_after_s = models.PositiveIntegerField(default=86400)
    backfill_quantile = models.FloatField(
        default=0.9, validators=[MinValueValidator(0.5), MaxValueValidator(0.99)]
    )
    """Of a predicted run time: what is over by then passes who keeps nodes or a turn."""
    cooldown_s = models.PositiveIntegerField(default=600)
    claim_hold_s = models.PositiveIntegerField(default=600)
    """What is kept for work that others left for is kept so long past the time when it was due."""
    fair_share_delay_s = models.PositiveIntegerField(default=3600)
    max_evictions = models.PositiveIntegerField(null=True, blank=True, default=3)
    max_moves = models.PositiveIntegerField(default=0)
    class_order = models.CharField(
        max_length=10, choices=ClassOrder.choices, default=ClassOrder.ENDS_FIRST
    )
    """Of several GPU classes that work may use, which is tried first."""
    topology_levels = models.CharField(max_length=1000, blank=True, default=TOPOLOGY_LEVELS)
    """Labels of nodes that name what is close together, as ``cluster.vocabulary.topology`` reads them."""
    cycle_interval_s = models.FloatField(default=5, validators=[MinValueValidator(0.1)])

    metrics_url = models.URLField(blank=True)
    """Root of a Prometheus server that scrapes the cluster's GPU exporter; "": nobody measures."""
    metrics_token_file = models.CharField(max_length=500, blank=True)
    metrics_activity = models.CharField(max_length=200, blank=True)
    """Series of SM activity, such as a recording rule's; "": the exporter's own."""
    idle_after_s = models.PositiveIntegerField(default=1800)
    """Owners of GPUs on which nothing ran for so long are told."""
    cull_after_s = models.PositiveIntegerField(null=True, blank=True)
    """Notebooks whose GPUs idled for so long are cancelled, after they were told; NULL: none are."""

    clock_real = models.DateTimeField(null=True, blank=True, editable=False)
    clock_start = models.DateTimeField(null=True, blank=True, editable=False)
    clock_speed = models.FloatField(default=1, editable=False)

    revision = models.BigIntegerField(default=0, editable=False)
    """Rises with every change that a page shows; live pages compare it."""
    planned_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Real (not cluster) time of the last finished cycle: a page tells live from stale by it."""
    guarded_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Real time at which the guardrails were compared last."""
    measured_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Cluster time of the last readings of its GPUs."""
    measured_gpus = models.PositiveIntegerField(default=0, editable=False)
    """Devices that they were of."""
    metrics_fault = models.CharField(max_length=300, blank=True, editable=False)
    """Why the last try brought none."""

    history = HistoricalRecords(
        excluded_fields=[
            "revision",
            "planned_at",
            "guarded_at",
            "clock_real",
            "measured_at",
            "measured_gpus",
            "metrics_fault",
        ]
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def now(self) -> datetime:
        """The cluster's own time, aware UTC. It runs faster than the wall only in the demo."""
        if self.clock_real is None or self.clock_start is None:
            return timezone.now()
        elapsed = (timezone.now() - self.clock_real).total_seconds()
        return self.clock_start + timedelta(seconds=elapsed * self.clock_speed)

    def touch(self) -> None:
        """Let live pages know that something they show has changed."""
        Cluster.objects.filter(pk=self.pk).update(revision=F("revision") + 1)


class GpuClass(models.Model):
    """Interchangeable GPUs: the nodes that carry ``node_labels`` offer ``resource_name``.

    ``deviceclass.resource.kubernetes.io/NAME`` stands for the devices of DeviceClass NAME.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="gpu_classes")
    name = models.CharField(max_length=63, validators=[dns_label])
    resource_name = models.CharField(max_length=200, default="nvidia.com/gpu")
    node_labels = models.JSONField(default=dict, blank=True)
    """Empty: every node that offers the resource and is of no class with labels."""
    exchange_rate = models.DecimalField(
        max_digits=9, decimal_places=4, default=1, validators=[MinValueValidator(0)]
    )
    price_per_gpu_hour = models.DecimalField(
        max_digits=10, decimal_places=4, default=0, validators=[MinValueValidator(0)]
    )
    reserved_labels = models.JSONField(default=dict, blank=True)
    """Nodes with all of these labels take GPU work only; empty: none are kept for it."""
    position = models.PositiveSmallIntegerField(default=0)
    """Order on every page; it also picks the class's colour, the same everywhere."""
    wait_slo_s = models.PositiveIntegerField(null=True, blank=True)
    """The P90 wait of work that asks for the class first is meant to hold it; NULL: nothing is meant."""

    history = HistoricalRecords()

    class Meta:
        ordering = ["cluster", "position", "name"]
        verbose_name = "GPU class"
        verbose_name_plural = "GPU classes"
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="gpu_class_name_unique"),
            models.CheckConstraint(
                condition=Q(exchange_rate__gt=0), name="gpu_class_exchange_rate_positive"
            ),
            models.CheckConstraint(
                condition=Q(price_per_gpu_hour__gte=0), name="gpu_class_price_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class NodePool(models.Model):
    """Nodes of one class that stand together, chosen by ``node_labels``."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="node_pools")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="node_pools")
    name = models.CharField(max_length=63, validators=[dns_label])
    node_labels = models.JSONField(default=dict)

    class Meta:
        ordering = ["cluster", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_pool_name_unique")
        ]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """A machine as the mirror last saw it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="nodes")
    node_pool = models.ForeignKey(
        NodePool, on_delete=models.SET_NULL, null=True, blank=True, related_name="nodes"
    )
    name = models.CharField(max_length=253)
    gpus = models.PositiveIntegerField()
    allocated_gpus = models.PositiveIntegerField(default=0)
    foreign_gpus = models.PositiveIntegerField(default=0)
    topology = models.JSONField(default=dict)
    ready = models.BooleanField(default=True)
    troubles = models.JSONField(default=list)
    """Why it takes no work, or less than it has; each a ``Trouble`` of ``cluster.vocabulary.conditions``."""

    class Meta:
        ordering = ["cluster", "gpu_class", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "gpu_class", "name"], name="node_name_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def free_gpus(self) -> int:
        """Milli-GPU that nobody holds, whether or not it is ready."""
        return max(0, self.gpus - self.allocated_gpus - self.foreign_gpus)


class GuardrailState(models.TextChoices):
    """How a guardrail stands to what is wanted of it."""

    IN_STEP = "in_step", "In step"
    MISSING = "missing", "Missing"
    DRIFTED = "drifted", "Drifted"
    UNWANTED = "unwanted", "No longer wanted"
    REFUSED = "refused", "Refused"


class Guardrail(models.Model):
    """An object that Weir keeps on a cluster, as it stood when it was compared last."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="guardrails")
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    standing = models.CharField(max_length=8, choices=GuardrailState.choices)
    fields = models.JSONField(default=list)
    """Paths of the fields that differ from what is wanted."""
    detail = models.TextField(blank=True)
    since = models.DateTimeField()
    """Real time since when it stands so."""

    class Meta:
        ordering = ["cluster", "kind", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "namespace", "name"], name="guardrail_unique"
            )
        ]

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"
