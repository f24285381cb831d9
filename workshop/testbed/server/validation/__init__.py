"""What a real server refuses with 422, kind by kind."""

from __future__ import annotations

from collections.abc import Callable

from workshop.testbed.server.kinds.errors import Cause
from workshop.testbed.server.kinds.resources import Json, Resource

from .jobs import job_faults, job_update_faults
from .names import metadata_faults, metadata_update_faults, name_faults
from .others import (
    budget_faults,
    event_faults,
    lease_faults,
    priority_class_update_faults,
    quota_faults,
    runtime_class_faults,
    runtime_class_update_faults,
)
from .pods import pod_faults, pod_update_faults

__all__ = ["faults", "name_faults", "update_faults"]

Check = Callable[[Json], list[Cause]]
UpdateCheck = Callable[[Json, Json], list[Cause]]

_CHECKS: dict[str, Check] = {
    "Job": job_faults,
    "Pod": pod_faults,
    "Lease": lease_faults,
    "PodDisruptionBudget": budget_faults,
    "ResourceQuota": quota_faults,
    "Event": event_faults,
    "RuntimeClass": runtime_class_faults,
}
_UPDATE_CHECKS: dict[str, UpdateCheck] = {
    "Job": job_update_faults,
    "Pod": pod_update_faults,
    "PriorityClass": priority_class_update_faults,
    "RuntimeClass": runtime_class_update_faults,
}


def faults(resource: Resource, body: Json) -> list[Cause]:
    """Return every fault of a new object."""
    found = metadata_faults(body)
    check = _CHECKS.get(resource.kind)
    return found + check(body) if check else found


def update_faults(resource: Resource, new: Json, old: Json) -> list[Cause]:
    """Return every fault of `new` as the successor of `old`."""
    found = metadata_faults(new) + metadata_update_faults(new, old)
    spec = new.get("spec")
    if spec is not None and spec is old.get("spec"):
        return found  # most writes leave the spec alone, and what is stored was valid
    if (check := _CHECKS.get(resource.kind)) is not None:
        found += check(new)
    update_check = _UPDATE_CHECKS.get(resource.kind)
    return found + update_check(new, old) if update_check and not found else found
