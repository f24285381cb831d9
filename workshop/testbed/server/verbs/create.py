"""Create an object."""

from __future__ import annotations

from workshop.testbed.server.kinds.defaults import apply_defaults, generate_job_selector
from workshop.testbed.server.kinds.errors import (
    already_exists,
    bad_request,
    forbidden,
    invalid,
    not_found,
)
from workshop.testbed.server.kinds.resources import (
    JOBS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    Json,
    Resource,
)
from workshop.testbed.server.store.context import Caller, World, record_audit
from workshop.testbed.server.store.store import Record

from ..admission.limit_ranges import apply_limit_ranges
from ..admission.pod_security import check_pod_security
from ..admission.policies import check_policies, mutate_by_policies
from ..admission.quotas import check_quotas
from ..admission.runtime_classes import apply_runtime_class
from ..patches.apply import Manager, note_update
from ..validation import faults, name_faults

_SYSTEM_PRIORITIES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


def create(
    world: World,
    caller: Caller,
    resource: Resource,
    namespace: str,
    body: Json,
    *,
    managed: list[Json] | None = None,
) -> Record:
    """Store `body` as a new object and return it.

    1. names and the namespace are checked, 2. what only the server may set is set,
    3. defaults and what policies add are filled in, 4. the whole is validated, 5. pod security, policies
    and quotas are asked, 6. it is stored, unless this is a dry run. `managed` are the managedFields of an
    apply; otherwise the caller owns all.

    Raises ApiError: 400, 403, 404 (namespace), 409 (name taken), 422.
    """
    body = _addressed(resource, namespace, body)
    _name(world, resource, body)
    _check_namespace(world, resource, namespace, body["metadata"]["name"])
    if world.store.get(resource, namespace, body["metadata"]["name"]) is not None:
        raise already_exists(resource, body["metadata"]["name"])
    _stamp(world, resource, body)
    admit(world, resource, body)
    body = mutate_by_policies(world, caller, resource, body)
    found = faults(resource, body)
    if found:
        raise invalid(resource, body["metadata"]["name"], found)
    if resource is PODS:
        check_pod_security(world, body)
    check_policies(world, caller, resource, body, None)
    check_quotas(world, resource, body)
    if managed is None:
        manager = Manager(caller.manager, "Update", "", world.clock.stamp())
        managed = note_update(resource, manager, body, None)
    body["metadata"]["managedFields"] = managed
    if caller.dry_run:
        return Record(resource, body, 0)
    record = world.store.insert(resource, body)
    record_audit(world, caller, "create", record.key)
    return record


def _addressed(resource: Resource, namespace: str, body: Json) -> Json:
    """Return `body` with its own metadata, which must fit the path."""
    metadata = {k: v for k, v in (body.get("metadata") or {}).items() if v is not None}
    if resource.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not resource.namespaced:
        metadata.pop("namespace", None)
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    return with_head(resource, metadata, body)


def with_head(resource: Resource, metadata: Json, body: Json) -> Json:
    """Return `body` with apiVersion, kind and `metadata` in front, which lists rely on."""
    head = {"apiVersion": resource.group_version, "kind": resource.kind, "metadata": metadata}
    return {**head, **{k: v for k, v in body.items() if k not in head and v is not None}}


def _name(world: World, resource: Resource, body: Json) -> None:
    metadata = body["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:58] + world.suffix()
    found = name_faults(resource.kind, metadata.get("name", ""))
    if found:
        raise invalid(resource, metadata.get("name", ""), found)


def _check_namespace(world: World, resource: Resource, namespace: str, name: str) -> None:
    if not resource.namespaced:
        return
    owner = world.store.get(NAMESPACES, "", namespace)
    if owner is None:
        raise not_found(NAMESPACES, namespace)
    if owner.body["metadata"].get("deletionTimestamp"):
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise forbidden(resource, name, why)


def _stamp(world: World, resource: Resource, body: Json) -> None:
    metadata = body["metadata"]
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"):
        metadata.pop(key, None)
    metadata["uid"] = world.new_uid()
    metadata["creationTimestamp"] = world.clock.stamp()
    if resource.counts_generation:
        metadata["generation"] = 1
    else:
        metadata.pop("generation", None)
    if resource.has_status and resource.kind not in ("Node",):
        body.pop("status", None)


def admit(world: World, resource: Resource, body: Json) -> None:
    """Fill in defaults and what admission sets: a Job's selector, a pod's priority and what its runtime class
    and the limit ranges of its namespace add."""
    apply_defaults(resource, body)
    if resource is JOBS and isinstance((body.get("spec") or {}).get("template"), dict):
        generate_job_selector(body)
    if resource is PODS:
        _set_priority(world, body)
        apply_runtime_class(world, body)
        apply_limit_ranges(world, body)


def _set_priority(world: World, body: Json) -> None:
    spec = body["spec"]
    name = spec.get("priorityClassName")
    if not name:
        return
    record = world.store.get(PRIORITY_CLASSES, "", name)
    if record is None and name not in _SYSTEM_PRIORITIES:
        pod = body["metadata"].get("name", "")
        raise forbidden(PODS, pod, f"no PriorityClass with name {name} was found")
    spec["priority"] = record.body["value"] if record else _SYSTEM_PRIORITIES[name]
