"""Document to snapshot: the file's units become the engine's.

GPUs are numbers there and milli-GPU here, CPUs are cores there and milli-CPU here, GiB there and MiB
here.
"""

from __future__ import annotations

from typing import Any

from scheduling.engine import model as m
from scheduling.engine.document.schema import (
    EntitlementDoc,
    NodeDoc,
    QueueDoc,
    QuotaDoc,
    SnapshotDoc,
    WorkloadDoc,
)


def _milli(value: float) -> int:
    return round(value * m.MILLI)


def _milli_or_none(value: float | None) -> int | None:
    return None if value is None else _milli(value)


def _mib(value: float | None) -> int | None:
    return None if value is None else round(value * 1024)


def read(doc: SnapshotDoc) -> m.Snapshot:
    return m.Snapshot(
        now=doc.now,
        policy=m.Policy(**doc.policy.model_dump()),
        gpu_classes=tuple(m.GpuClass(c.name, c.exchange_rate) for c in doc.gpu_classes),
        nodes=tuple(_node(n) for n in doc.nodes),
        queues=tuple(_queue(q) for q in doc.queues),
        priority_classes=tuple(m.PriorityClass(**p.model_dump()) for p in doc.priority_classes),
        workloads=tuple(_workload(w) for w in doc.workloads),
        node_sets=tuple(
            m.NodeSet(s.name, frozenset(s.nodes), s.constraints) for s in doc.node_sets
        ),
        topology_levels=tuple(doc.topology_levels),
    )


def _node(doc: NodeDoc) -> m.Node:
    return m.Node(
        name=doc.name,
        gpu_class=doc.gpu_class,
        gpus=_milli(doc.gpus),
        cpus=_milli_or_none(doc.cpus),
        memory_mib=_mib(doc.memory_gib),
        topology=dict(doc.topology),
        ready=doc.ready,
        foreign_gpus=_milli(doc.foreign_gpus),
        dedicated=doc.dedicated,
        outage=doc.outage,
        beside=dict(doc.beside),
        foreign_beside=dict(doc.foreign_beside),
    )


def _queue(doc: QueueDoc) -> m.Queue:
    return m.Queue(
        name=doc.name,
        parent=doc.parent,
        priority=doc.priority,
        stop=doc.stop,
        quotas={name: _quota(quota) for name, quota in doc.quotas.items()},
        usage=dict(doc.usage),
        eviction_budget_gpus=_milli_or_none(doc.eviction_budget_gpus),
        max_running=doc.max_running,
        max_running_per_user=doc.max_running_per_user,
        max_gpus_per_user=_milli_or_none(doc.max_gpus_per_user),
        user_usage={user: _milli(gpus) for user, gpus in doc.user_usage.items()},
        eviction_budget_until=doc.eviction_budget_until,
        min_run_time_s=doc.min_run_time_s,
        sharing=doc.sharing,
        evictions_left=doc.evictions_left,
        played_along=doc.played_along,
    )


def _quota(doc: QuotaDoc) -> m.Quota:
    return m.Quota(
        **_entitlement(doc),
        lowered=m.Lowered(doc.lowered.until, **_entitlement(doc.lowered)) if doc.lowered else None,
        budget_gpu_hours=doc.budget_gpu_hours,
        used_gpu_hours=doc.used_gpu_hours,
        period_ends=doc.period_ends,
    )


def _entitlement(doc: EntitlementDoc) -> dict[str, Any]:
    return {
        "nominal": _milli(doc.nominal),
        "borrowing_limit": _milli_or_none(doc.borrowing_limit),
        "lending_limit": _milli_or_none(doc.lending_limit),
        "weight": doc.weight,
    }


def _workload(doc: WorkloadDoc) -> m.Workload:
    running = doc.state is m.Phase.RUNNING
    return m.Workload(
        name=doc.name,
        queue=doc.queue,
        user=doc.user,
        priority_class=doc.priority_class,
        submitted=doc.submitted,
        gpus=_milli(doc.gpus),
        cpus=_milli(doc.cpus),
        memory_mib=round(doc.memory_gib * 1024),
        beside=dict(doc.beside),
        members=m.Members(doc.members.min, doc.members.max or doc.members.min),
        gpu_classes=tuple(doc.gpu_classes),
        topology=m.Topology(doc.topology.required, doc.topology.preferred),
        elastic=doc.elastic,
        predicted=m.Predicted(doc.predicted_s.p50, doc.predicted_s.p90)
        if doc.predicted_s
        else None,
        held=doc.held,
        phase=doc.state,
        started=doc.started,
        checkpointed=doc.checkpointed,
        restart_cost_s=doc.restart_cost_s,
        stale_since=doc.stale_since,
        leaving=doc.leaving,
        awaits_victims=doc.awaits_victims,
        victims=tuple(doc.victims),
        claimed_since=doc.claimed_since,
        room_due=doc.room_due,
        taken_gpus=_milli(doc.taken_gpus),
        gpu_class=(doc.gpu_class or doc.gpu_classes[0]) if running else doc.gpu_class,
        placement=dict(doc.placement),
        devices={node: tuple(d) for node, d in doc.devices.items()},
        evictions=doc.evictions,
        last_evicted=doc.last_evicted,
        last_evicted_for=doc.last_evicted_for,
        leaving_members=dict(doc.leaving_members),
        leaving_devices={node: tuple(d) for node, d in doc.leaving_devices.items()},
        node_set=doc.node_set,
        rank_s=doc.rank_s,
        virtual_start=doc.virtual_start,
        saved_s=doc.saved_s,
    )
