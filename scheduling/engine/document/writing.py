"""Snapshot to document, in the file's units.

A live cluster may show what no file says: numbers and texts that people typed without bounds, nodes that
lost GPUs in use. Those are written at the bound, or said to be so, so that what is written can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from scheduling.engine import model as m
from scheduling.engine.document.places import (
    held_by_seat,
    is_misplaced,
    is_overfull,
    kept_by_seat,
)
from scheduling.engine.document.schema import (
    FIRST_YEAR,
    LAST_YEAR,
    LONGEST,
    MOST,
    MOST_HELD,
    GpuClassDoc,
    LoweredDoc,
    MembersDoc,
    NodeDoc,
    NodeSetDoc,
    PolicyDoc,
    PredictedDoc,
    PriorityClassDoc,
    QueueDoc,
    QuotaDoc,
    SnapshotDoc,
    TopologyDoc,
    WorkloadDoc,
)

FIRST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
LAST = datetime(LAST_YEAR, 12, 31, tzinfo=UTC)


def write(snapshot: m.Snapshot) -> SnapshotDoc:
    works = [_marked(_workload_doc(w)) for w in snapshot.workloads]
    held, kept = held_by_seat(works), kept_by_seat(works)
    return SnapshotDoc(
        now=snapshot.now,
        policy=PolicyDoc.model_validate(asdict(snapshot.policy)),
        gpu_classes=[GpuClassDoc(**asdict(c)) for c in snapshot.gpu_classes],
        nodes=[
            _node_doc(n, max(part.get((n.name, n.gpu_class), 0) for part in (held, kept)))
            for n in snapshot.nodes
        ],
        queues=[_queue_doc(q) for q in snapshot.queues],
        priority_classes=[PriorityClassDoc(**asdict(p)) for p in snapshot.priority_classes],
        workloads=works,
        node_sets=[
            NodeSetDoc(name=s.name, nodes=sorted(s.nodes), constraints=_text(s.constraints))
            for s in snapshot.node_sets
        ],
        topology_levels=list(snapshot.topology_levels),
    )


def _marked(work: WorkloadDoc) -> WorkloadDoc:
    return work.model_copy(update={"misplaced": True}) if is_misplaced(work) else work


def _gpus(value: int) -> float:
    return value / m.MILLI


def _gpus_or_none(value: int | None) -> float | None:
    return None if value is None else value / m.MILLI


def _held_gpus(value: int) -> float:
    return min(_gpus(value), MOST_HELD)


def _asked_gpus(value: int) -> float:
    """Of one member: whole GPUs, or a share of one."""
    return _held_gpus(value if value < m.MILLI else -(-value // m.MILLI) * m.MILLI)


def _gib(value: int | None) -> float | None:
    return None if value is None else value / 1024


def _amounts(of: Mapping[str, int]) -> dict[str, int]:
    return {_text(name): min(amount, MOST) for name, amount in of.items()}


def _text(value: str) -> str:
    """``value`` as it may stand in a file: without what is not printable, and of bounded length."""
    if not value.isprintable():
        value = value.encode("unicode_escape", "backslashreplace").decode("ascii")
    return value[:LONGEST]


def _instant(value: datetime | None) -> datetime | None:
    return None if value is None else min(max(value, FIRST), LAST)


def _node_doc(node: m.Node, held: int) -> NodeDoc:
    """``held``: milli-GPU of workloads there, now or once claims are met."""
    doc = NodeDoc(
        name=node.name,
        gpu_class=node.gpu_class,
        gpus=_held_gpus(node.gpus),
        cpus=_gpus_or_none(node.cpus),
        memory_gib=_gib(node.memory_mib),
        topology=dict(node.topology),
        ready=node.ready,
        foreign_gpus=_held_gpus(min(node.gpus, node.foreign_gpus)),
        dedicated=node.dedicated,
        outage=node.outage,
        beside=_amounts(node.beside),
        foreign_beside=_amounts(node.foreign_beside),
    )
    doc.overfull = is_overfull(doc, held)
    return doc


def _queue_doc(queue: m.Queue) -> QueueDoc:
    return QueueDoc(
        name=queue.name,
        parent=queue.parent,
        priority=queue.priority,
        stop=queue.stop,
        quotas={name: _quota_doc(quota) for name, quota in queue.quotas.items()},
        usage=dict(queue.usage),
        eviction_budget_gpus=_gpus_or_none(queue.eviction_budget_gpus),
        max_running=queue.max_running,
        max_running_per_user=queue.max_running_per_user,
        max_gpus_per_user=_gpus_or_none(queue.max_gpus_per_user),
        user_usage={_text(user): _held_gpus(milli) for user, milli in queue.user_usage.items()},
        eviction_budget_until=queue.eviction_budget_until,
        min_run_time_s=queue.min_run_time_s,
        sharing=queue.sharing,
        evictions_left=queue.evictions_left,
        played_along=queue.played_along,
    )


def _quota_doc(quota: m.Quota) -> QuotaDoc:
    before = quota.lowered
    return QuotaDoc(
        **_entitlement_doc(quota),
        lowered=LoweredDoc(until=before.until, **_entitlement_doc(before)) if before else None,
        budget_gpu_hours=quota.budget_gpu_hours,
        used_gpu_hours=quota.used_gpu_hours,
        period_ends=quota.period_ends,
    )


def _entitlement_doc(quota: m.Quota | m.Lowered) -> dict[str, Any]:
    return {
        "nominal": _gpus(quota.nominal),
        "borrowing_limit": _gpus_or_none(quota.borrowing_limit),
        "lending_limit": _gpus_or_none(quota.lending_limit),
        "weight": quota.weight,
    }


def _workload_doc(work: m.Workload) -> WorkloadDoc:
    predicted = work.predicted
    return WorkloadDoc(
        name=work.name,
        queue=work.queue,
        user=_text(work.user),
        priority_class=work.priority_class,
        members=MembersDoc(
            min=min(work.members.min, MOST_HELD), max=min(work.members.max, MOST_HELD)
        ),
        gpus=_asked_gpus(work.gpus),
        cpus=_gpus(work.cpus),
        memory_gib=work.memory_mib / 1024,
        beside=_amounts(work.beside),
        gpu_classes=[_text(name) for name in work.gpu_classes],
        topology=TopologyDoc(required=work.topology.required, preferred=work.topology.preferred),
        elastic=work.elastic,
        submitted=work.submitted,
        predicted_s=PredictedDoc(p50=predicted.p50, p90=predicted.p90) if predicted else None,
        held=work.held,
        state=work.phase,
        started=work.started,
        checkpointed=_instant(work.checkpointed),
        restart_cost_s=work.restart_cost_s,
        stale_since=work.stale_since,
        leaving=work.leaving,
        awaits_victims=work.awaits_victims,
        victims=list(work.victims),
        claimed_since=work.claimed_since,
        room_due=work.room_due,
        taken_gpus=_gpus(work.taken_gpus),
        gpu_class=work.gpu_class,
        placement=dict(work.placement),
        devices={node: list(d) for node, d in work.devices.items()},
        evictions=work.evictions,
        last_evicted=work.last_evicted,
        last_evicted_for=work.last_evicted_for,
        leaving_members=dict(work.leaving_members),
        leaving_devices={node: list(d) for node, d in work.leaving_devices.items()},
        node_set=work.node_set,
        rank_s=work.rank_s,
        virtual_start=_instant(work.virtual_start),
        saved_s=work.saved_s,
    )
