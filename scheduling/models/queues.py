"""The quota tree.

A quota is never overwritten: a change adds rows with their own effective range and ends the ones they
replace, so what was in force at any time can be read back. GPU columns are milli-GPU integers; a NULL
limit is unlimited.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords
from tree_queries.query import TreeQuerySet

from scheduling.engine.model import Sharing, Stop
from scheduling.models.clusters import Cluster, GpuClass, dns_label

SYSTEM_NAMESPACE = "weir-system"
"""Where Weir keeps its lease."""
RESERVED = "system:"
"""Users and groups of the cluster's own parts begin with this (kubernetes.io, "Using RBAC Authorization")."""


class PodSecurity(models.TextChoices):
    """The levels of Kubernetes' Pod Security Standards, each stricter than the one before."""

    PRIVILEGED = "privileged", "Privileged"
    BASELINE = "baseline", "Baseline"
    RESTRICTED = "restricted", "Restricted"


def below(cluster_id: int, path: str, *, on: str = "", strictly: bool = False) -> Q:
    """Condition on a queue: below the one at ``path`` or, unless ``strictly``, that one.

    ``on`` is the lookup that leads to the queue, such as ``queue__``. By the path that ``save`` keeps: a
    subtree is one range of it, where a recursive query walks the whole tree for each question.
    """
    within = Q(**{f"{on}cluster_id": cluster_id})
    if not path:
        return within & ~Q(**{f"{on}path": ""}) if strictly else within
    inside = Q(**{f"{on}path__startswith": f"{path}/"})
    return within & (inside if strictly else inside | Q(**{f"{on}path": path}))


def above(cluster_id: int, path: str) -> Q:
    """Condition on a queue: one that the queue at ``path`` is below of, the root included."""
    parts = path.split("/") if path else []
    paths = ["", *("/".join(parts[:i]) for i in range(1, len(parts)))] if parts else []
    return Q(cluster_id=cluster_id, path__in=paths)


class QueueQuerySet(TreeQuerySet["Queue"]):
    """Queues and where they stand to each other."""

    def below(self, queue: Queue, *, strictly: bool = False) -> QueueQuerySet:
        return self.filter(below(queue.cluster_id, queue.path, strictly=strictly))

    def above(self, queue: Queue) -> QueueQuerySet:
        return self.filter(above(queue.cluster_id, queue.path))


class Queue(models.Model):
    """A node of the quota tree. Leaves hold workloads, inner nodes share what is spare.

    One root a cluster; ``name`` is unique in the cluster because a label names the queue.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="queues")
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    name = models.CharField(max_length=63, validators=[dns_label])
    path = models.CharField(max_length=500, editable=False)
    """Names from below the root, joined by '/'; empty for the root. Kept by ``save``."""
    position = models.PositiveSmallIntegerField(default=0)
    priority = models.SmallIntegerField(default=0)
    stop = models.CharField(
        max_length=5, choices=[(s.value, s.value.title()) for s in Stop], default=Stop.NONE.value
    )
    sharing = models.CharField(
        max_length=10,
        choices=[(s.value, s.value.replace("_", " ").capitalize()) for s in Sharing],
        blank=True,
    )
    """How what is above nominal is given out below it; empty is as the queue above says."""
    namespace = models.CharField(max_length=63, blank=True, validators=[dns_label])
    """Kubernetes namespace in which the portal creates this queue's workloads."""
    access_group = models.CharField(max_length=200, blank=True)
    """The cluster's name of the group (of its identity provider) whose members work in the namespaces
    of this queue and of those below it."""
    eviction_budget_gpus = models.PositiveIntegerField(null=True, blank=True)
    """Milli-GPU that may be evicted from it per day; NULL is unlimited."""
    max_running = models.PositiveIntegerField(null=True, blank=True)
    """Workloads at once in it and all below it; NULL is unlimited, as for the two limits on each user."""
    max_running_per_user = models.PositiveIntegerField(null=True, blank=True)
    max_gpus_per_user = models.PositiveIntegerField(null=True, blank=True)
    """Milli-GPU."""
    pod_security = models.CharField(max_length=10, choices=PodSecurity.choices, blank=True)
    """What the pods in its namespace may ask of their node; empty: as the nearest queue above says."""
    max_cpus = models.PositiveIntegerField(null=True, blank=True)
    """Milli-CPU that all pods in its namespace may request; NULL is derived from the GPUs it may hold, as
    for the two bounds below."""
    max_memory_mib = models.PositiveIntegerField(null=True, blank=True)
    max_pods = models.PositiveIntegerField(null=True, blank=True)

    history = HistoricalRecords(excluded_fields=["path"])
    objects = QueueQuerySet.as_manager()

    class Meta:
        ordering = ["cluster", "position", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="queue_name_unique"),
            models.UniqueConstraint(
                fields=["cluster"], condition=Q(parent=None), name="queue_one_root_a_cluster"
            ),
            models.CheckConstraint(
                condition=Q(parent=None) | ~Q(parent=models.F("id")), name="queue_not_own_parent"
            ),
        ]

    def __str__(self) -> str:
        return self.path or self.name

    def is_within(self, top: Queue) -> bool:
        """Whether it is ``top`` or below it."""
        if self.cluster_id != top.cluster_id:
            return False
        return not top.path or self.path == top.path or self.path.startswith(f"{top.path}/")

    @property
    def is_root(self) -> bool:
        return self.parent_id is None

    def clean(self) -> None:
        """Raises ValidationError at ``parent`` when the tree would close a cycle or leave the cluster, at
        ``namespace`` or ``access_group`` when that belongs to the cluster's own parts."""
        if self.access_group.startswith(RESERVED):
            raise ValidationError(
                {
                    "access_group": f"{self.access_group} is a group of the cluster's own. Choose another."
                }
            )
        if self.namespace.startswith("kube-") or self.namespace == SYSTEM_NAMESPACE:
            raise ValidationError(
                {"namespace": f"{self.namespace} belongs to the cluster. Choose another name."}
            )
        above, seen = self.parent, {self.pk}
        while above is not None:
            if above.pk in seen:
                raise ValidationError(
                    {"parent": f"{self.name} is above {self.parent}. Choose a queue outside it."}
                )
            if above.cluster_id != self.cluster_id:
                raise ValidationError({"parent": "Choose a queue of the same cluster."})
            seen.add(above.pk)
            above = above.parent

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.path = self._path_below(self.parent)
        super().save(*args, **kwargs)
        for child in self.children.all():
            if child.path != child._path_below(self):
                child.parent = self
                child.save()

    def _path_below(self, parent: Queue | None) -> str:
        if parent is None:
            return ""
        return f"{parent.path}/{self.name}" if parent.path else self.name


class QuotaChange(models.Model):
    """One saved edit of quotas: who, when, why, and from when until when it holds."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="quota_changes")
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="quota_changes")
    """Top of the subtree that was edited."""
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500)
    at = models.DateTimeField()
    effective_from = models.DateTimeField()
    effective_until = models.DateTimeField(null=True, blank=True)
    cells = models.JSONField(default=list)
    """[{queue, gpu_class, field, before, after}], GPUs as numbers of GPUs, null = unlimited."""
    expected = models.JSONField(default=dict)
    """What a plan on the live cluster said before it was saved (``whatif.preview``); empty where none was
    made."""

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.queue}: {self.reason}"


class QuotaQuerySet(models.QuerySet["Quota"]):
    def in_force(self, at: datetime) -> QuotaQuerySet:
        """The rows whose effective range holds ``at``: at most one a queue and class."""
        open_end = Q(effective_until=None) | Q(effective_until__gt=at)
        return self.filter(open_end, effective_from__lte=at)


class Quota(models.Model):
    """What a queue is entitled to of one class during [effective_from, effective_until)."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="quotas")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="quotas")
    nominal_gpus = models.PositiveIntegerField(default=0)
    borrowing_limit_gpus = models.PositiveIntegerField(null=True, blank=True)
    lending_limit_gpus = models.PositiveIntegerField(null=True, blank=True)
    weight = models.DecimalField(
        max_digits=9, decimal_places=3, default=1, validators=[MinValueValidator(0)]
    )
    budget_gpu_hours = models.PositiveIntegerField(null=True, blank=True)
    """GPU-hours that may be used in a calendar month (UTC); NULL is unlimited."""
    effective_from = models.DateTimeField()
    effective_until = models.DateTimeField(null=True, blank=True)
    change = models.ForeignKey(
        QuotaChange, on_delete=models.SET_NULL, null=True, blank=True, related_name="quotas"
    )

    objects = QuotaQuerySet.as_manager()

    class Meta:
        ordering = ["queue", "gpu_class", "effective_from"]
        constraints = [
            models.CheckConstraint(condition=Q(weight__gte=0), name="quota_weight_not_negative"),
            models.CheckConstraint(
                condition=Q(nominal_gpus__gte=0), name="quota_nominal_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(borrowing_limit_gpus=None) | Q(borrowing_limit_gpus__gte=0),
                name="quota_borrowing_limit_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(lending_limit_gpus=None) | Q(lending_limit_gpus__gte=0),
                name="quota_lending_limit_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(effective_until=None)
                | Q(effective_until__gt=models.F("effective_from")),
                name="quota_range_ends_after_it_begins",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.gpu_class}: {self.nominal_gpus / 1000:g}"
