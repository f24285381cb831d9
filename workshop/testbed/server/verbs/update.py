"""Write a new version of an object."""

from __future__ import annotations

from typing import Any

from workshop.testbed.server.kinds.defaults import apply_defaults
from workshop.testbed.server.kinds.errors import bad_request, conflict, invalid, invalid_value
from workshop.testbed.server.kinds.resources import Json
from workshop.testbed.server.store.context import Caller, World, record_audit
from workshop.testbed.server.store.store import Record

from ..admission.policies import check_policies
from ..patches.apply import Manager, note_update
from ..validation import update_faults
from .create import with_head
from .delete import remove_if_free

_KEPT = (
    "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
    "generateName", "managedFields",
)  # fmt: skip


def check_address(record: Record, body: Json) -> None:
    """Refuse a body whose name or namespace is not that of the path (400)."""
    metadata = body.get("metadata") or {}
    if metadata.get("name", record.name) != record.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({record.name})"
        )
    if record.namespace and metadata.get("namespace", record.namespace) != record.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_version(record: Record, body: Json) -> None:
    """Refuse a write that was made from another version or another object (409, 422)."""
    metadata = body.get("metadata") or {}
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    resource = record.resource
    if uid and uid != record.uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
        raise conflict(resource, record.name, why)
    if not version and not resource.unconditional_update:
        hint = "must be specified for an update"
        raise invalid(resource, record.name, [invalid_value("metadata.resourceVersion", "", hint)])
    if version and version != "0" and version != str(record.version):
        raise conflict(resource, record.name)


def replace(
    world: World,
    caller: Caller,
    record: Record,
    body: Json,
    *,
    subresource: str = "",
    managed: list[Json] | None = None,
    verb: str = "update",
) -> Record:
    """Store `body` as the successor of `record` and return what then stands there.

    1. what the server keeps is restored, and the half that `subresource` ("" or "status")
    must not touch, 2. defaults, 3. generation, 4. validation, 5. nothing happens if nothing
    changed, 6. managedFields (`managed` if this is an apply), 7. stored, unless a dry run,
    and removed if the last finalizer of a deleted object went.

    Raises ApiError (422).
    """
    resource, old = record.resource, record.body
    new = _restored(record, body, subresource)
    apply_defaults(resource, new)
    if resource.counts_generation and _spec_changed(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    found = update_faults(resource, new, old)
    if found:
        raise invalid(resource, record.name, found)
    check_policies(world, caller, resource, new, old, subresource=subresource)
    if managed is None:
        manager = Manager(caller.manager, "Update", subresource, world.clock.stamp())
        managed = note_update(resource, manager, new, old)
    if _same(new, old) and _owners(managed) == _owners(old["metadata"].get("managedFields")):
        return record
    new["metadata"]["managedFields"] = managed
    if caller.dry_run:
        return Record(resource, new, record.version)
    stored = world.store.replace(record, new)
    record_audit(world, caller, f"{verb}/{subresource}" if subresource else verb, record.key)
    return remove_if_free(world, stored)


def _restored(record: Record, body: Json, subresource: str) -> Json:
    old, resource = record.body, record.resource
    metadata = {k: v for k, v in (body.get("metadata") or {}).items() if v is not None}
    for key in _KEPT:
        metadata.pop(key, None)
        if key in old["metadata"]:
            metadata[key] = old["metadata"][key]
    metadata["name"] = record.name
    metadata["resourceVersion"] = str(record.version)
    if record.namespace:
        metadata["namespace"] = record.namespace
    if subresource == "status":
        return {**old, "metadata": metadata, "status": body.get("status") or {}}
    new = with_head(resource, metadata, body)
    if resource.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


def _spec_changed(new: Json, old: Json) -> bool:
    def rest(body: Json) -> dict[str, Any]:
        return {k: v for k, v in body.items() if k not in ("metadata", "status")}

    return rest(new) != rest(old)


def _same(new: Json, old: Json) -> bool:
    def bare(body: Json) -> Json:
        metadata = {k: v for k, v in body["metadata"].items() if k != "managedFields"}
        return {**body, "metadata": metadata}

    return bare(new) == bare(old)


def _owners(managed: list[Json] | None) -> list[tuple[str, Json]]:
    return [(entry["manager"] + entry["operation"], entry["fieldsV1"]) for entry in managed or ()]


def write(world: World, record: Record, **parts: Any) -> Record:
    """Store new top-level `parts` (status, metadata, spec) without the checks of the API.

    This is how the controllers inside write: they are trusted, leave no trace in managedFields,
    and writing what already stands there does nothing.
    """
    if all(record.body.get(key) == value for key, value in parts.items()):
        return record
    stored = world.store.replace(record, {**record.body, **parts})
    return remove_if_free(world, stored)


def write_metadata(world: World, record: Record, **changes: Any) -> Record:
    """Store new fields of the metadata the way `write` does; None removes a field."""
    metadata = {**record.body["metadata"], **changes}
    return write(
        world, record, metadata={key: value for key, value in metadata.items() if value is not None}
    )
