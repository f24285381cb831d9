"""Delete objects: grace, finalizers, what happens to dependents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from workshop.testbed.server.kinds.clock import stamp
from workshop.testbed.server.kinds.errors import bad_request, conflict, invalid_options, unsupported
from workshop.testbed.server.kinds.resources import NAMESPACES, PODS, Json
from workshop.testbed.server.store.context import Caller, World, record_audit
from workshop.testbed.server.store.store import Record

from ..admission.policies import check_policies

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_POLICIES = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a client may ask of a deletion."""

    grace_s: int | None = None
    policy: str | None = None
    uid: str | None = None
    version: str | None = None
    dry_run: bool = False


def parse_options(body: Json, query: dict[str, str]) -> DeleteOptions:
    """Return the options from a DeleteOptions `body` and from the query, which fills gaps.

    Raises ApiError (400, 422) for values that mean nothing.
    """
    policy = body.get("propagationPolicy") or query.get("propagationPolicy")
    orphans = body.get("orphanDependents")
    if policy is None and orphans is not None:
        policy = "Orphan" if orphans else "Background"
    if policy is not None and policy not in _POLICIES:
        raise invalid_options("DeleteOptions", unsupported("propagationPolicy", policy, _POLICIES))
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    try:
        grace = None if grace is None else int(grace)
    except ValueError as error:
        raise bad_request(f'gracePeriodSeconds: "{grace}" is no whole number') from error
    wanted = body.get("preconditions") or {}
    dry_run = body.get("dryRun") or []
    if dry_run not in ([], ["All"]):
        raise invalid_options("DeleteOptions", unsupported("dryRun", dry_run, ("All",)))
    return DeleteOptions(
        grace, policy, wanted.get("uid"), wanted.get("resourceVersion"), bool(dry_run)
    )


def delete(world: World, caller: Caller, record: Record, options: DeleteOptions) -> Record:
    """Delete `record`, at once or, with grace or finalizers, by marking it; return its last state.

    Raises ApiError: 409 if a precondition does not hold, 422 by a policy.
    """
    _check(record, options)
    fields = {"propagationPolicy": options.policy, "gracePeriodSeconds": options.grace_s}
    shown = {name: value for name, value in fields.items() if value is not None}
    check_policies(world, caller, record.resource, None, record.body, options=shown)
    if caller.dry_run or options.dry_run:
        return record
    record_audit(world, caller, "delete", record.key)
    return mark_deleted(world, record, options)


def _check(record: Record, options: DeleteOptions) -> None:
    for name, wanted, found in (
        ("UID", options.uid, record.uid),
        ("ResourceVersion", options.version, str(record.version)),
    ):
        if wanted and wanted != found:
            why = (
                f"Precondition failed: {name} in precondition: {wanted}, "
                f"{name} in object meta: {found}"
            )
            raise conflict(record.resource, record.name, why)


def mark_deleted(world: World, record: Record, options: DeleteOptions) -> Record:
    """Mark `record` as deleted and remove it if nothing holds it; return its last state."""
    metadata = record.body["metadata"]
    finalizers = _finalizers(record, options)
    grace = _grace(record, options)
    if metadata.get("deletionTimestamp"):
        grace = min(grace, metadata.get("deletionGracePeriodSeconds") or 0)
        if grace == metadata.get("deletionGracePeriodSeconds", 0):
            return remove_if_free(world, record)
    changes: Json = {
        **metadata,
        "deletionTimestamp": stamp(world.clock.seconds() + grace),
        "deletionGracePeriodSeconds": grace,
        "finalizers": finalizers,
    }
    if not finalizers:
        del changes["finalizers"]
    if "generation" in metadata:
        changes["generation"] = metadata["generation"] + 1
    body = {**record.body, "metadata": changes}
    if record.resource is NAMESPACES:
        body["status"] = {**body.get("status", {}), "phase": "Terminating"}
    elif not finalizers and grace == 0:
        return world.store.remove(record)
    return world.store.replace(record, body)


def _finalizers(record: Record, options: DeleteOptions) -> list[str]:
    present = list(record.body["metadata"].get("finalizers") or ())
    policy = options.policy
    if policy is None and not {ORPHAN, FOREGROUND} & set(present):
        policy = "Orphan" if record.resource.orphans_by_default else "Background"
    if policy is None or record.body["metadata"].get("deletionTimestamp"):
        return present
    rest = [f for f in present if f not in (ORPHAN, FOREGROUND)]
    extra = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return rest + extra


def _grace(record: Record, options: DeleteOptions) -> int:
    """Only pods that a node runs are given time to stop."""
    if record.resource is not PODS:
        return 0
    spec, status = record.body["spec"], record.body.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    own = int(spec.get("terminationGracePeriodSeconds", 30))
    return max(0, own if options.grace_s is None else options.grace_s)


def remove_if_free(world: World, record: Record) -> Record:
    """Remove a deleted object that no finalizer and no grace holds; return its last state."""
    metadata = record.body["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return record
    if metadata.get("deletionGracePeriodSeconds") or record.resource is NAMESPACES:
        return record
    return world.store.remove(record)


def delete_collection(
    world: World, caller: Caller, records: Iterable[Record], options: DeleteOptions
) -> list[Record]:
    """Delete all `records`; preconditions apply to single objects only."""
    plain = replace(options, uid=None, version=None)
    return [delete(world, caller, record, plain) for record in records]
