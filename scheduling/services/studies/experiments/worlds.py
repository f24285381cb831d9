"""The world of a past period: queues, quotas, loans, policy and capacity as they were, as far as they are
kept.

Quotas and loans say themselves when they held; settings of queues, classes and policy come from their
history, capacity from the ledger's samples. One world is lived for the whole period: that of its begin, on as
many whole nodes as were ready on average. What it rests on is kept beside it (``basis``), for people to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduling.engine import model as m
from scheduling.models import MILLI, Cluster, GpuClass, Queue, Quota
from scheduling.services.ledger.ready import Means, ready_in
from scheduling.services.queues import rows as policies
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.studies.whatif.changes import QuestionChanges
from scheduling.services.studies.whatif.kinds import CapacityChange

Json = dict[str, Any]
OF_QUEUE = (
    "priority", "stop", "sharing", "max_running", "max_running_per_user", "max_gpus_per_user",
    "eviction_budget_gpus",
)  # fmt: skip
OF_POLICY = (
    "history_strength", "usage_half_life_s", "preemption_delay_s", "eviction_cap", "placement",
    "spread_weight", "order", "stale_gang_grace_s", "user_history_strength", "charge_s", "reserve_after_s",
    "backfill_quantile", "cooldown_s", "claim_hold_s", "fair_share_delay_s", "max_evictions", "max_moves",
)  # fmt: skip


def of_today(today: m.Snapshot) -> tuple[m.Snapshot, Json]:
    """For work that is no past of this cluster, and for whoever asks what to have in force from now on."""
    return replace(today, workloads=()), {"of": "today"}


def of_period(
    cluster: Cluster, today: m.Snapshot, begin: datetime, end: datetime
) -> tuple[m.Snapshot, Json]:
    """``today`` made the world of [begin, end), without work; and its basis."""
    rows = policies.load(cluster, at=begin, shares=())
    rows = replace(rows, cluster=copy(cluster), evicted_today={}, user_usage={}, usage={})
    policy_kept = _put_back(cluster, rows, begin)
    ready = ready_in(cluster, begin, end)
    nodes, lived = _nodes_of(today, ready)
    world = replace(
        today,
        nodes=nodes,
        workloads=(),
        queues=tuple(map(_settled, policies.engine_queues(rows))),
        gpu_classes=tuple(m.GpuClass(c.name, float(c.exchange_rate)) for c in rows.gpu_classes),
        policy=policies.engine_policy(rows),
    )
    length_s = (end - begin).total_seconds()
    facts = {
        "of": "then",
        "at": begin.isoformat(),
        "quota_changes": _changes_within(cluster, begin, end),
        "loans": len(rows.entitlements.loans),
        "policy_kept": policy_kept,
        "gpus": {name: _capacity(ready.get(name), lived[name], length_s) for name in lived},
    }
    return world, facts


def _settled(queue: m.Queue) -> m.Queue:
    """Without the grace of what was lowered before: lived is what was in force."""
    quotas = {name: replace(quota, lowered=None) for name, quota in queue.quotas.items()}
    return replace(queue, quotas=quotas)


def _changes_within(cluster: Cluster, begin: datetime, end: datetime) -> int:
    """Moments after ``begin`` at which quotas changed."""
    rows = Quota.objects.filter(
        queue__cluster=cluster, effective_from__gt=begin, effective_from__lt=end
    )
    return rows.order_by().values("effective_from").distinct().count()


def _capacity(known: Means | None, lived: int, length_s: float) -> Json:
    """Numbers of GPUs, None where none was sampled, and how many per cent of the period were."""
    if known is None:
        return {"ready": None, "installed": None, "lived": lived / MILLI, "known_pct": 0}
    return {
        "ready": round(known.ready / MILLI, 1),
        "installed": round(known.installed / MILLI, 1),
        "lived": lived / MILLI,
        "known_pct": min(100, round(100 * known.seconds / length_s)),
    }


def wall_of(cluster: Cluster, at: datetime) -> datetime:
    """Real time of a moment of the cluster's clock: histories are written in real time."""
    if cluster.clock_real is None or cluster.clock_start is None:
        return at
    return cluster.clock_real + (at - cluster.clock_start) / cluster.clock_speed


def _put_back(cluster: Cluster, rows: PolicyRows, at: datetime) -> bool:
    """Write into ``rows``, which nobody saves, what their history has of ``at``; whether it has the policy of
    then. What was made later keeps the values of today."""
    wall = wall_of(cluster, at)
    for model, fields, each in (
        (Queue, OF_QUEUE, rows.queues),
        (GpuClass, ("exchange_rate",), rows.gpu_classes),
        (Cluster, OF_POLICY, (rows.cluster,)),
    ):
        records = _records_until(model, [one.pk for one in each], fields, wall)
        for one in each:
            for name, value in records.get(one.pk, {}).items():
                setattr(one, name, value)
    return cluster.pk in _records_until(Cluster, [cluster.pk], (), wall)


def _records_until(
    model: Any, pks: Iterable[int], fields: Iterable[str], wall: datetime
) -> Mapping[int, Json]:
    """The newest record of each up to ``wall``."""
    rows = model.history.filter(id__in=list(pks), history_date__lte=wall)
    found: dict[int, Json] = {}
    for row in rows.order_by("id", "-history_date", "-history_id").values("id", *fields):
        pk = row.pop("id")
        found.setdefault(pk, row)
    return found


def _nodes_of(
    today: m.Snapshot, ready: Mapping[str, Means]
) -> tuple[tuple[m.Node, ...], dict[str, int]]:
    """Today's nodes, as many of each class ready as were then; of a class nobody sampled as they are. Also
    the milli-GPU that are ready of each."""
    nodes = [*today.nodes]
    for gpu_class in today.gpu_classes:
        if gpu_class.name in ready:
            nodes = _with_ready(today, nodes, gpu_class.name, ready[gpu_class.name].ready)
    lived = {
        c.name: sum(map(_usable, (n for n in nodes if n.gpu_class == c.name)))
        for c in today.gpu_classes
    }
    return tuple(nodes), lived


def _usable(node: m.Node) -> int:
    return node.gpus - node.foreign_gpus if node.ready else 0


def _with_ready(
    today: m.Snapshot, nodes: list[m.Node], gpu_class: str, wanted: float
) -> list[m.Node]:
    """Of the class the number of whole nodes whose GPUs come nearest to ``wanted`` milli-GPU: those ready
    today first, then those that are not, then nodes like them."""
    mine = [node for node in nodes if node.gpu_class == gpu_class]
    others = [node for node in nodes if node.gpu_class != gpu_class]
    sized: list[m.Node] = []
    given = 0
    for node in sorted(mine, key=lambda one: (not one.ready, one.name)):
        usable = node.gpus - node.foreign_gpus
        takes = abs(given + usable - wanted) < abs(given - wanted)
        sized.append(replace(node, ready=takes))
        given += usable if takes else 0
    size = next((node.gpus for node in sized if not node.dedicated), 0)
    if size and wanted - given >= size / 2:
        more = round((wanted - given) / size)
        world = replace(today, nodes=tuple(sized), workloads=(), node_sets=())
        sized = [*QuestionChanges((CapacityChange(gpu_class, more),)).applied(world).nodes]
    return [*others, *sized]
