"""Change an object in part, by any of the four kinds of patch."""

from __future__ import annotations

from typing import Any

from workshop.testbed.server.kinds.errors import (
    ApiError,
    bad_request,
    conflict,
    immutable,
    invalid,
    not_found,
)
from workshop.testbed.server.kinds.resources import Json, Resource
from workshop.testbed.server.store.context import Caller, World
from workshop.testbed.server.store.store import Record

from ..patches.apply import Manager, apply
from ..patches.merge import json_patch, merge_patch
from ..patches.strategic import strategic_patch
from .create import create
from .update import check_address, replace

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
KINDS = (JSON_PATCH, MERGE, STRATEGIC, APPLY)


def patch(
    world: World, caller: Caller, record: Record, kind: str, change: Any, *, subresource: str = ""
) -> Record:
    """Apply `change` to `record` and return what then stands there.

    Raises ApiError: 400, 409 (a resourceVersion in the patch that is not the latest), 422 (also
    for another uid, which is no precondition here but a field that cannot change).
    """
    body = _patched(record.body, kind, change)
    check_address(record, body)
    metadata = body.get("metadata") or {}
    if metadata.get("resourceVersion") not in (None, "0", "", str(record.version)):
        raise conflict(record.resource, record.name)
    if metadata.get("uid") not in (None, record.uid):
        raise invalid(record.resource, record.name, [immutable("metadata.uid", metadata["uid"])])
    return replace(world, caller, record, body, subresource=subresource, verb="patch")


def _patched(body: Json, kind: str, change: Any) -> Json:
    if kind == JSON_PATCH:
        return json_patch(body, change)
    if not isinstance(change, dict):
        raise bad_request("the patch must be an object")
    if kind == STRATEGIC:
        return strategic_patch(body, change)
    merged: Json = merge_patch(body, change)
    return merged


def apply_patch(
    world: World,
    caller: Caller,
    resource: Resource,
    namespace: str,
    config: Any,
    *,
    name: str,
    subresource: str = "",
) -> tuple[Record, bool]:
    """Apply `config` server-side; return the object and whether it is new.

    Raises ApiError: 400, 404 (a subresource of nothing), 409 (conflicting managers), 422.
    """
    _check_config(resource, name, config)
    record = world.store.get(resource, namespace, name)
    manager = Manager(caller.manager, "Apply", subresource, world.clock.stamp())
    if record is None:
        if subresource:
            raise not_found(resource, name)
        seed: Json = {"metadata": {"name": name}}
        body, managed = apply(resource, manager, config, seed, force=caller.force)
        return create(world, caller, resource, namespace, body, managed=managed), True
    version = (config.get("metadata") or {}).get("resourceVersion")
    if version not in (None, "", str(record.version)):
        raise conflict(resource, name)
    body, managed = apply(resource, manager, config, record.body, force=caller.force)
    return replace(
        world, caller, record, body, subresource=subresource, managed=managed, verb="apply"
    ), False


def _check_config(resource: Resource, name: str, config: Any) -> None:
    if not isinstance(config, dict):
        raise bad_request("the configuration must be an object")
    given = (config.get("apiVersion"), config.get("kind"))
    if given != (resource.group_version, resource.kind):
        raise bad_request(f"Incorrect version specified in apply patch. Specified: {given}")
    metadata = config.get("metadata") or {}
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if metadata.get("name", name) != name:
        raise ApiError(400, "BadRequest", "the name of the object does not match the URL")
