"""A plan and one workload's part of it as documents: what the commands print and pages quote.

The same ``plan()`` that runs the cluster is called on the snapshot at hand, so an explanation
cannot drift from behaviour. Reads no database.
"""

from __future__ import annotations

from typing import Any

from scheduling.engine import document
from scheduling.engine import model as m
from scheduling.engine import plan as engine_plan
from scheduling.engine.whatif.alternatives import (
    Candidate,
    VictimSearch,
    VictimVerdict,
    victim_searches,
)
from scheduling.engine.whatif.change import Change, Relaxation
from scheduling.engine.whatif.relaxations import relaxations
from scheduling.services.errors import ServiceError

Json = dict[str, Any]


def plan_document(plan: m.Plan) -> Json:
    """The JSON document of a plan; GPUs are numbers of GPUs, the root's share is left out."""
    return {
        "fair_share": {
            queue: {name: _share(share) for name, share in by_class.items()}
            for queue, by_class in plan.fair_share.items()
            if queue
        },
        "decisions": [decision_document(d) for d in plan.decisions],
    }


def decision_document(decision: m.Decision) -> Json:
    """One line of a plan; what an action does not have is left out."""
    document: Json = {
        "workload": decision.workload,
        "action": decision.action.value,
        "reason": decision.reason.value,
    }
    if decision.for_workload:
        document["for"] = decision.for_workload
    document["sentence"] = decision.sentence
    if decision.gpu_class:
        document["gpu_class"] = decision.gpu_class
    if decision.members:
        document["members"] = decision.members
    if decision.placement:
        document["placement"] = dict(decision.placement)
    if decision.roles:
        document["roles"] = {role: dict(nodes) for role, nodes in decision.roles.items()}
    if decision.devices:
        document["devices"] = {node: list(d) for node, d in decision.devices.items()}
    if decision.numbers:
        document["numbers"] = dict(decision.numbers)
    if decision.lost_gpu_s:
        document["lost_gpu_s"] = decision.lost_gpu_s
    if decision.position is not None:
        document["position"] = decision.position
    if decision.action in (m.Action.WAIT, m.Action.RESERVE):
        document["until"] = decision.until.isoformat() if decision.until else None
    return document


def _share(share: m.Share) -> Json:
    return {
        "fair_share": share.fair_share / m.MILLI,
        "potential": share.potential / m.MILLI,
        "allocated": share.allocated / m.MILLI,
        "nominal": share.nominal / m.MILLI,
        "limit": None if share.limit is None else share.limit / m.MILLI,
        "demand": share.demand / m.MILLI,
        "pending": share.pending / m.MILLI,
        "oversubscribed": share.oversubscribed,
    }


def explain(snapshot: m.Snapshot, name: str) -> Json:
    """What the plan of ``snapshot`` says of workload ``name``, and how its queue stands.

    Raises ServiceError(field='workload') when the snapshot has none of that name.
    """
    workload = next((w for w in snapshot.workloads if w.name == name), None)
    if workload is None:
        raise ServiceError(
            "no_such_workload",
            f"The snapshot has no workload {name!r}.",
            "Name one as it stands under workloads.",
            field="workload",
        )
    plan = engine_plan(snapshot)
    decisions = [decision_document(d) for d in plan.decisions if d.workload == name]
    shares = plan.fair_share.get(workload.queue, {})
    return {
        "workload": name,
        "queue": workload.queue,
        "state": workload.phase.value,
        "decisions": decisions,
        "queue_shares": {c: _share(s) for c, s in shares.items()},
        "would_start": [relaxation_document(r) for r in relaxations(snapshot, name)],
    }


def relaxation_document(found: Relaxation) -> Json:
    """GPUs are numbers of GPUs."""
    milli = found.change in (Change.FEWER_GPUS, Change.USER_GPUS, Change.LIMIT)
    return {
        "change": found.change.value,
        "value": int(found.value) / m.MILLI if milli else found.value,
        "queue": found.queue,
        "gpu_class": found.gpu_class,
        "evicts_gpus": found.evicts / m.MILLI,
        "sentence": found.sentence,
    }


__all__ = ["Candidate", "VictimSearch", "VictimVerdict", "searches_of"]


def searches_of(snapshot: dict[str, Any]) -> list[VictimSearch]:
    """Those of a cycle's kept snapshot (``records.unpacked``)."""
    return victim_searches(document.parse(snapshot))
