"""The policy in force: everything people decided that a plan depends on, read once a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import Sum

from scheduling.cluster.adapters import ClassSpec
from scheduling.engine import model as m
from scheduling.models import (
    Cluster,
    Eviction,
    GpuClass,
    NodePool,
    PriorityClass,
    Queue,
    Quota,
    Share,
)

Key = tuple[int, int]
"""(queue id, class id)"""

NO_PRIORITY_CLASS = m.PriorityClass("none")
"""Stands in when a workload names no known class and none is the default."""


@dataclass(frozen=True)
class PolicyRows:
    """Rows of one cluster at one moment, and the maps that cycles look things up in."""

    cluster: Cluster
    gpu_classes: tuple[GpuClass, ...]
    node_pools: tuple[NodePool, ...]
    queues: tuple[Queue, ...]
    quotas: tuple[Quota, ...]
    priority_classes: tuple[PriorityClass, ...]
    shares: tuple[Share, ...]
    usage: Mapping[Key, float]
    """Decayed usage as a share of the class's capacity."""
    evicted_today: Mapping[int, int]
    """Queue id -> milli-GPU evicted from it in the last day; only queues with a budget."""

    @cached_property
    def class_by_name(self) -> dict[str, GpuClass]:
        return {c.name: c for c in self.gpu_classes}

    @cached_property
    def quota_by_key(self) -> dict[Key, Quota]:
        return {(q.queue_id, q.gpu_class_id): q for q in self.quotas}

    @cached_property
    def queue_by_name(self) -> dict[str, Queue]:
        return {q.name: q for q in self.queues if not q.is_root}

    @cached_property
    def leaf_names(self) -> frozenset[str]:
        inner = {q.parent_id for q in self.queues}
        return frozenset(q.name for q in self.queues if q.pk not in inner and not q.is_root)

    @cached_property
    def root(self) -> Queue | None:
        return next((q for q in self.queues if q.is_root), None)

    @cached_property
    def class_specs(self) -> tuple[ClassSpec, ...]:
        return tuple(
            ClassSpec(c.name, c.resource_name, dict(c.node_labels)) for c in self.gpu_classes
        )

    @cached_property
    def priority_by_name(self) -> dict[str, PriorityClass]:
        return {p.name: p for p in self.priority_classes}

    @cached_property
    def default_priority(self) -> PriorityClass | None:
        return next((p for p in self.priority_classes if p.is_default), None)

    def priority_of(self, name: str) -> PriorityClass | None:
        """The class a workload that says ``name`` belongs to: that one, else the default."""
        return self.priority_by_name.get(name) or self.default_priority


def load(cluster: Cluster, *, at: datetime) -> PolicyRows:
    """The policy of ``cluster`` in force at cluster time ``at``."""
    queues = tuple(Queue.objects.filter(cluster=cluster))
    shares = tuple(Share.objects.filter(queue__cluster=cluster))
    return PolicyRows(
        cluster=cluster,
        gpu_classes=tuple(GpuClass.objects.filter(cluster=cluster)),
        node_pools=tuple(NodePool.objects.filter(cluster=cluster)),
        queues=queues,
        quotas=tuple(Quota.objects.filter(queue__cluster=cluster).in_force(at)),
        priority_classes=tuple(PriorityClass.objects.all()),
        shares=shares,
        usage={(s.queue_id, s.gpu_class_id): s.usage for s in shares},
        evicted_today=_evicted(queues, at),
    )


def _evicted(queues: tuple[Queue, ...], at: datetime) -> dict[int, int]:
    bounded = [q.pk for q in queues if q.eviction_budget_gpus is not None]
    if not bounded:
        return {}
    rows = (
        Eviction.objects.filter(queue__in=bounded, at__gt=at - timedelta(days=1))
        .values("queue")
        .annotate(total=Sum("gpus"))
    )
    return {row["queue"]: row["total"] for row in rows.order_by("queue")}


def engine_queues(rows: PolicyRows) -> tuple[m.Queue, ...]:
    """The tree below the implied root, with quotas, decayed usage and what may still be evicted."""
    class_names = {c.pk: c.name for c in rows.gpu_classes}
    names = {q.pk: q.name for q in rows.queues}
    quotas: dict[int, dict[str, m.Quota]] = {}
    for quota in rows.quotas:
        quotas.setdefault(quota.queue_id, {})[class_names[quota.gpu_class_id]] = m.Quota(
            nominal=quota.nominal_gpus,
            borrowing_limit=quota.borrowing_limit_gpus,
            lending_limit=quota.lending_limit_gpus,
            weight=float(quota.weight),
        )
    usage: dict[int, dict[str, float]] = {}
    for (queue_pk, class_pk), share in rows.usage.items():
        usage.setdefault(queue_pk, {})[class_names[class_pk]] = share
    root = rows.root
    return tuple(
        m.Queue(
            name=queue.name,
            parent=None if root is None or queue.parent_id == root.pk else names[queue.parent_id],
            priority=queue.priority,
            stop=m.Stop(queue.stop),
            quotas=quotas.get(queue.pk, {}),
            usage=usage.get(queue.pk, {}),
            eviction_budget_gpus=_budget(queue, rows),
        )
        for queue in rows.queues
        if queue.parent_id is not None
    )


def _budget(queue: Queue, rows: PolicyRows) -> int | None:
    if queue.eviction_budget_gpus is None:
        return None
    return max(0, queue.eviction_budget_gpus - rows.evicted_today.get(queue.pk, 0))


def engine_priority_classes(rows: PolicyRows) -> tuple[m.PriorityClass, ...]:
    known = tuple(
        m.PriorityClass(p.name, p.value, p.preemptible, p.min_run_time_s, m.WorkloadType(p.type))
        for p in rows.priority_classes
    )
    return known if rows.default_priority else (*known, NO_PRIORITY_CLASS)


def engine_policy(cluster: Cluster) -> m.Policy:
    return m.Policy(
        history_strength=cluster.history_strength,
        preemption_delay_s=cluster.preemption_delay_s,
        eviction_cap=cluster.eviction_cap,
        placement=cluster.placement,
        order=cluster.order,
        stale_gang_grace_s=cluster.stale_gang_grace_s,
    )
