"""Leases, disruption budgets, quotas, priority and runtime classes, events."""

from __future__ import annotations

from workshop.testbed.server.kinds.errors import (
    Cause,
    forbidden_field,
    immutable,
    invalid_value,
    required,
)
from workshop.testbed.server.kinds.quantities import milli
from workshop.testbed.server.kinds.resources import Json


def lease_faults(body: Json) -> list[Cause]:
    """Return what is wrong with a Lease."""
    spec = body.get("spec") or {}
    found = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        found.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        hint = "must be greater than or equal to 0"
        found.append(invalid_value("spec.leaseTransitions", transitions, hint))
    return found


def budget_faults(body: Json) -> list[Cause]:
    """Return what is wrong with a PodDisruptionBudget."""
    spec = body.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        hint = "minAvailable and maxUnavailable cannot be both set"
        return [invalid_value("spec", "minAvailable, maxUnavailable", hint)]
    return []


def quota_faults(body: Json) -> list[Cause]:
    """Return what is wrong with a ResourceQuota."""
    found = []
    for name, quantity in ((body.get("spec") or {}).get("hard") or {}).items():
        try:
            below = milli(quantity) < 0
        except ValueError:
            below = True
        if below:
            hint = "must be greater than or equal to 0"
            found.append(invalid_value(f"spec.hard[{name}]", quantity, hint))
    return found


def event_faults(body: Json) -> list[Cause]:
    """Return what is wrong with an Event."""
    involved = body.get("involvedObject")
    if not isinstance(involved, dict):
        return [required("involvedObject")]
    namespace = body["metadata"].get("namespace")
    if involved.get("namespace", namespace) != namespace and involved.get("namespace"):
        hint = "does not match event.namespace"
        return [invalid_value("involvedObject.namespace", involved["namespace"], hint)]
    return []


def runtime_class_faults(body: Json) -> list[Cause]:
    """Return what is wrong with a RuntimeClass."""
    return [] if body.get("handler") else [required("handler")]


def runtime_class_update_faults(new: Json, old: Json) -> list[Cause]:
    """Return what may not change in a RuntimeClass."""
    return [] if new["handler"] == old["handler"] else [immutable("handler", new["handler"])]


def priority_class_update_faults(new: Json, old: Json) -> list[Cause]:
    """Return what may not change in a PriorityClass."""
    found = []
    if new.get("value") != old.get("value"):
        found.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        hint = "field is immutable"
        found.append(invalid_value("preemptionPolicy", new.get("preemptionPolicy"), hint))
    return found
