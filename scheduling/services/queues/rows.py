"""The policy in force: everything people decided that a plan depends on, read once a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min, Sum
from django.utils.functional import cached_property

from scheduling.cluster.adapters import ClassSpec, Sighting
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.engine import model as m
from scheduling.models import Cluster, Eviction, GpuClass, NodePool, PriorityClass, Queue, Share
from scheduling.services.queues import service_classes, user_usage
from scheduling.services.queues.entitlements import Entitlements
from scheduling.services.queues.judge import Judgement, Rules, judge, misrouted
from scheduling.services.queues.knobs import KNOBS, levels_of
from scheduling.services.queues.service_classes import ServiceClasses, is_within
from scheduling.services.queues.sharing import evictions_left
from scheduling.services.tables.row_cache import RowCache

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
    entitlements: Entitlements
    priority_classes: tuple[PriorityClass, ...]
    shares: tuple[Share, ...]
    usage: Mapping[Key, float]
    """Decayed usage as a share of the class's capacity."""
    evicted_today: Mapping[int, tuple[int, datetime]]
    """Queue id -> milli-GPU evicted from it in the last day, and when the first of them went; only queues
    with a budget.
    """
    user_usage: Mapping[tuple[int, str], float]
    """(queue id, user) -> milli-GPU that the user held there of late."""
    service_classes: ServiceClasses = field(default_factory=ServiceClasses)
    evictions_left: Mapping[int, float] = field(default_factory=dict)
    """Top of a subtree that shares by merit -> how many more it may evict."""

    @cached_property
    def class_by_name(self) -> dict[str, GpuClass]:
        return {c.name: c for c in self.gpu_classes}

    @cached_property
    def quotas(self) -> dict[Key, m.Quota]:
        """As the engine takes them, milli-GPU."""
        return self.entitlements.engine_quotas()

    @cached_property
    def queue_by_name(self) -> dict[str, Queue]:
        return {q.name: q for q in self.queues if not q.is_root}

    def queue_of(self, observed: Sighting) -> Queue | None:
        """The queue that takes ``observed``: a leaf of that name takes work of its own namespace, or without
        one of all namespaces but those of other branches."""
        queue = self.queue_by_name.get(observed.queue_label)
        if queue is None or queue.name not in self.leaf_names:
            return None
        if queue.namespace:
            return queue if observed.namespace == queue.namespace else None
        owners = self._paths_by_namespace.get(observed.namespace)
        shared = owners is None or any(is_within(queue.path, path) for path in owners)
        return queue if shared else None

    @cached_property
    def _paths_by_namespace(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for queue in self.queues:
            if queue.namespace:
                found.setdefault(queue.namespace, []).append(queue.path)
        return found

    @cached_property
    def rules(self) -> Rules:
        return Rules(self.service_classes, self.priority_classes, self.levels)

    @property
    def levels(self) -> Levels:
        """Of the cluster's topology."""
        return levels_of(self.cluster)

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

    @property
    def default_priority(self) -> PriorityClass | None:
        return self.rules.default_priority

    def priority_of(self, name: str) -> PriorityClass | None:
        """The class a workload that says ``name`` belongs to: that one, else the default."""
        return self.rules.priority_of(name)

    def judge(self, observed: Sighting) -> Judgement:
        """Of what waits: whether the queue that it names takes it, and may run it for its user."""
        queue = self.queue_of(observed)
        if queue is None:
            return Judgement((misrouted(observed),), observed.gpu_classes)
        return judge(observed, queue.path, self.rules)


def load(
    cluster: Cluster,
    *,
    at: datetime,
    unchanged: RowCache | None = None,
    shares: Iterable[Share] | None = None,
) -> PolicyRows:
    """The policy of ``cluster`` in force at cluster time ``at``.

    ``unchanged`` remembers from one call to the next. ``shares`` are the rows of the last division where
    their writer keeps them; those of queues or classes that are gone are left out.
    """
    cache, of = unchanged or RowCache(), cluster.pk
    queues = cache.steady("queues", of, lambda: Queue.objects.filter(cluster=of))
    gpu_classes = cache.steady("classes", of, lambda: GpuClass.objects.filter(cluster=of))
    if shares is None:
        shares = Share.objects.filter(queue__cluster=cluster)
    alive, kinds = {q.pk for q in queues}, {c.pk for c in gpu_classes}
    shares = tuple(s for s in shares if s.queue_id in alive and s.gpu_class_id in kinds)
    return PolicyRows(
        cluster=cluster,
        gpu_classes=gpu_classes,
        node_pools=cache.steady("pools", of, lambda: NodePool.objects.filter(cluster=of)),
        queues=queues,
        entitlements=Entitlements.load(cluster, at, cache),
        priority_classes=cache.steady("priorities", None, PriorityClass.objects.all),
        shares=shares,
        usage={(s.queue_id, s.gpu_class_id): s.usage for s in shares},
        evicted_today=_evicted(queues, at),
        user_usage=user_usage.at(cluster, at),
        service_classes=service_classes.load(cluster, cache),
        evictions_left=evictions_left(queues, m.Sharing(cluster.sharing), at),
    )


def _evicted(queues: tuple[Queue, ...], at: datetime) -> dict[int, tuple[int, datetime]]:
    bounded = [q.pk for q in queues if q.eviction_budget_gpus is not None]
    if not bounded:
        return {}
    rows = (
        Eviction.objects.filter(queue__in=bounded, at__gt=at - timedelta(days=1))
        .values("queue")
        .annotate(total=Sum("gpus"), first=Min("at"))
    )
    return {row["queue"]: (row["total"], row["first"]) for row in rows.order_by("queue")}


def engine_queues(rows: PolicyRows) -> tuple[m.Queue, ...]:
    """The tree below the implied root, with quotas, decayed usage and what may still be evicted."""
    class_names = {c.pk: c.name for c in rows.gpu_classes}
    names = {q.pk: q.name for q in rows.queues}
    quotas: dict[int, dict[str, m.Quota]] = {}
    for (queue_pk, class_pk), quota in rows.quotas.items():
        quotas.setdefault(queue_pk, {})[class_names[class_pk]] = quota
    users: dict[int, dict[str, int]] = {}
    for (queue_pk, user), gpus in rows.user_usage.items():
        users.setdefault(queue_pk, {})[user] = round(gpus)
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
            **_budget(queue, rows),
            max_running=queue.max_running,
            max_running_per_user=queue.max_running_per_user,
            max_gpus_per_user=queue.max_gpus_per_user,
            user_usage=users.get(queue.pk, {}),
            sharing=m.Sharing(queue.sharing) if queue.sharing else None,
            evictions_left=rows.evictions_left.get(queue.pk),
            played_along=True,
        )
        for queue in rows.queues
        if queue.parent_id is not None
    )


def _budget(queue: Queue, rows: PolicyRows) -> dict[str, Any]:
    """What is left of the day's eviction budget, and when the first eviction of the day counts no more."""
    if queue.eviction_budget_gpus is None:
        return {}
    gpus, first = rows.evicted_today.get(queue.pk, (0, None))
    return {
        "eviction_budget_gpus": max(0, queue.eviction_budget_gpus - gpus),
        "eviction_budget_until": first + timedelta(days=1) if first else None,
    }


def engine_priority_classes(rows: PolicyRows) -> tuple[m.PriorityClass, ...]:
    known = tuple(
        m.PriorityClass(
            name=p.name,
            value=p.value,
            preemptible=p.preemptible,
            min_run_time_s=p.min_run_time_s,
            type=m.WorkloadType(p.type),
            max_wait_s=p.max_wait_s,
        )
        for p in rows.priority_classes
    )
    return known if rows.default_priority else (*known, NO_PRIORITY_CLASS)


PLANNED = {knob.field for knob in KNOBS} & {field.name for field in fields(m.Policy)}
"""Knobs that the engine plans by: it calls them as the cluster's columns are called."""


def engine_policy(rows: PolicyRows) -> m.Policy:
    cluster, root = rows.cluster, rows.root
    return m.Policy(
        **{name: getattr(cluster, name) for name in PLANNED - {"sharing"}},
        sharing=m.Sharing(cluster.sharing),
        evictions_left=rows.evictions_left.get(root.pk) if root else None,
    )
