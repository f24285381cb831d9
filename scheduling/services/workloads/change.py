"""Change work while it waits: on its object in the cluster, which is the truth, in the person's own name.

What the kind has a field for is written there, where its API takes that of what waits; else it is the
annotation that the adapters read. A change is drafted first, so that it can be judged and planned before it
is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from scheduling.cluster.adapters import ADAPTERS, Adapter, Sighting, merging, sizing, turns
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.adapters.turns import Turn
from scheduling.cluster.connection.client import ConflictError
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import rfc3339
from scheduling.engine.reasons.wording import span
from scheduling.models import Workload
from scheduling.models.workloads import WAITING
from scheduling.services.clusters.connection import acting_on, talking_to
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import submit

Json = dict[str, Any]
TRIES = 3
"""Weir writes its word on the object while somebody changes it: then it is read and changed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadChange:
    """What is to be otherwise; None leaves it as it is."""

    priority_class: str | None = None
    run_time_limit_s: int | None = None
    """0: none."""
    gpu_classes: tuple[str, ...] | None = None
    """In order of preference."""
    pods_min: int | None = None
    pods_max: int | None = None
    gpus_per_pod: int | None = None
    not_before: datetime | str | None = None
    """Empty: as soon as it can."""
    after: tuple[str, ...] | None = None
    """As ``weir.dev/after`` names them."""
    at_once: int | None = None
    """Of its array; 0: as many as there are."""

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(n for n in self.__slots__ if getattr(self, n) is not None)


@dataclass(frozen=True, slots=True)
class WorkloadDraft:
    """What a change would make of a workload: as it is, as it would be, and the patches, by path and uid."""

    before: Sighting
    after: Sighting
    patches: tuple[tuple[str, Json], ...]


def draft(workload: Workload, change: WorkloadChange) -> WorkloadDraft:
    """Nothing is written. Raises ServiceError with the field at fault, and for what does not wait."""
    if not change.fields:
        raise ServiceError("nothing_to_change", "Nothing is to be otherwise.", "Change something.")
    if workload.state not in WAITING:
        raise _not_waiting(workload)
    before = submit.observed(workload)
    adapter = next(a for a in ADAPTERS if a.kind == workload.kind)
    if not isinstance(adapter, RoleAdapter):
        if not before.suspended:
            raise _not_waiting(workload)
        return _of_pods(workload, adapter, before, change)
    path = adapter.path(workload.namespace, workload.name)
    with talking_to(workload.cluster) as client:
        obj = client.get(path)
    if obj["metadata"]["uid"] != workload.uid:
        raise ServiceError("gone", "The cluster has no such object any more.", "Reload the page.")
    if labels.ORIGINAL in (obj["metadata"].get("annotations") or {}) or not adapter.is_suspended(
        obj
    ):
        raise _not_waiting(workload)
    names = [c.resource_name for c in workload.cluster.gpu_classes.all()]
    patch = merging.edited(obj, lambda new: _edit(new, adapter, change, names))
    patch = _with_meta(patch, obj, change)
    after = submit.read(workload.cluster, merging.merged(obj, patch))
    return WorkloadDraft(before, _checked(_as_same_object(before, after), change), ((path, patch),))


def apply(workload: Workload, change: WorkloadChange, *, user: str) -> None:
    """Write what ``draft`` makes of it. Raises ServiceError as that does, and where the server refuses."""
    for left in reversed(range(TRIES)):
        drafted = draft(workload, change)
        try:
            with acting_on(workload.cluster) as client:
                for path, patch in drafted.patches:
                    client.patch(path, patch, as_person=submit.person_of(user))
        except ConflictError:
            if not left:
                raise
            continue
        said = {name: _as_text(getattr(change, name)) for name in sorted(change.fields)}
        submit.tell("work.changed", workload, user, after=said)
        return


def _as_text(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    return list(value) if isinstance(value, tuple) else value


def _not_waiting(workload: Workload) -> ServiceError:
    state = "being taken back into its queue"
    if workload.state not in WAITING:
        state = workload.get_state_display().lower()
    return ServiceError(
        "not_waiting",
        f"{workload.name} can be changed only while it waits, and it is {state}.",
        "Cancel it and clone it to change it, or try again once it waits.",
    )


def _of_pods(
    workload: Workload, adapter: Adapter, before: Sighting, change: WorkloadChange
) -> WorkloadDraft:
    """A group of plain pods takes what stands in labels and annotations; their templates are fixed."""
    for name in ("pods_min", "pods_max", "gpus_per_pod"):
        if name in change.fields:
            raise _fixed(workload.kind, name)
    if change.gpu_classes is not None:
        raise _fixed(workload.kind, "gpu_classes")
    notes = _notes({}, change)
    patch = {"metadata": {"annotations": notes, **_labels(change)}}
    paths = [adapter.path(workload.namespace, name) for name, _ in before.parts]
    uids = [uid for _, uid in before.parts]
    patches = tuple(
        (path, {"metadata": {**patch["metadata"], "uid": uid}})
        for path, uid in zip(paths, uids, strict=True)
    )
    said = {key: value for key, value in notes.items() if value is not None}
    if fault := turns.fault(said):
        raise ServiceError("invalid", fault, field=_field_of(change))
    after = replace(
        before,
        turn=_turned(before.turn, turns.read(said), change),
        priority_class=change.priority_class or before.priority_class,
        run_time_limit_s=before.run_time_limit_s
        if change.run_time_limit_s is None
        else change.run_time_limit_s or None,
    )
    return WorkloadDraft(before, after, patches)


def _turned(turn: Turn, said: Turn, change: WorkloadChange) -> Turn:
    """``turn`` with what ``change`` says of it."""
    changed = {
        n: getattr(said, n) for n in ("not_before", "after", "at_once") if n in change.fields
    }
    return replace(turn, **changed)


def _edit(new: Json, adapter: RoleAdapter, change: WorkloadChange, names: Sequence[str]) -> None:
    notes = new["metadata"]["annotations"]
    notes |= _notes(notes, change)
    counted = sizing.counted_of(adapter.roles(new), names, {})
    if change.run_time_limit_s is not None:
        _limit(new, adapter, change.run_time_limit_s)
    if change.gpus_per_pod is not None:
        _set_gpus(adapter, counted, names, change.gpus_per_pod)
    if change.pods_min is not None or change.pods_max is not None:
        _set_pods(adapter, counted, notes, change)


def _notes(notes: Mapping[str, str], change: WorkloadChange) -> Json:
    """Annotation -> what it is to say; None takes it away."""
    said: Json = {}
    if change.gpu_classes is not None:
        said[labels.GPU_CLASSES] = ",".join(change.gpu_classes) or None
    if change.not_before is not None:
        at = change.not_before
        said[labels.NOT_BEFORE] = rfc3339(at) if isinstance(at, datetime) else at or None
    if change.after is not None:
        said[labels.AFTER] = ",".join(change.after) or None
    if change.at_once is not None:
        said[labels.ARRAY_AT_ONCE] = str(change.at_once) if change.at_once else None
    if change.run_time_limit_s is not None:
        limit_s = change.run_time_limit_s
        said[labels.RUN_TIME_LIMIT] = f"{limit_s}s" if limit_s else None
    return said


def _labels(change: WorkloadChange) -> Json:
    if change.priority_class is None:
        return {}
    return {"labels": {labels.PRIORITY_CLASS: change.priority_class}}


def _with_meta(patch: Json, obj: Json, change: WorkloadChange) -> Json:
    """``patch`` that only this very version of the object takes."""
    meta = obj["metadata"]
    identity = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    return {**patch, "metadata": {**patch.get("metadata", {}), **_labels(change), **identity}}


def _limit(new: Json, adapter: RoleAdapter, limit_s: int) -> None:
    """A Job has a field of its own, which may be edited; of other kinds the annotation counts, unless their
    field says less."""
    if adapter.kind == "Job":
        new["metadata"]["annotations"][labels.RUN_TIME_LIMIT] = None
        new["spec"].pop("activeDeadlineSeconds", None)
        if limit_s:
            new["spec"]["activeDeadlineSeconds"] = limit_s
        return
    own_s = adapter.time_limit_s(new)
    if own_s is not None and (not limit_s or own_s < limit_s):
        raise ServiceError(
            "bounded_by_its_manifest",
            f"Its manifest ends it after {span(own_s)}, which a {adapter.kind} cannot have raised in place.",
            "Set a shorter limit, or clone it.",
            field="run_time_limit",
        )


def _set_gpus(
    adapter: RoleAdapter, counted: Sequence[Role], names: Sequence[str], gpus: int
) -> None:
    found = [c for role in counted for c in _asking(role.pod, names)]
    if not adapter.swaps_resources or len(found) != len(counted):
        raise _fixed(adapter.kind, "gpus_per_pod")
    for container in found:
        for amounts in container["resources"].values():
            for name in names:
                if isinstance(amounts, dict) and name in amounts:
                    amounts[name] = str(gpus)


def _asking(pod: Json, names: Sequence[str]) -> list[Json]:
    """The containers of ``pod`` that ask for GPUs."""
    return [
        container
        for container in pod.get("containers") or []
        if not set(names).isdisjoint((container.get("resources") or {}).get("limits") or {})
    ]


def _set_pods(
    adapter: RoleAdapter, counted: Sequence[Role], notes: Json, change: WorkloadChange
) -> None:
    now = sum(role.count for role in counted)
    most = change.pods_max or max(now, change.pods_min or 0)
    if change.pods_min is not None and change.pods_max is None and _is_fixed_size(notes):
        most = change.pods_min
    least = change.pods_min or min(most, _least(notes, now))
    if least > most:
        raise ServiceError(
            "max_below_min",
            f"At most {most} pods is fewer than at least {least}.",
            "Raise the most or lower the least.",
            field="pods_max",
        )
    movable = [role for role in counted if role.resize is not None and role.lowest is None]
    if len(movable) != 1:
        raise _fixed(adapter.kind, "pods_max")
    sizing.set_size(counted, most)
    notes[labels.MIN_MEMBERS] = str(least) if least < most else None


def _is_fixed_size(notes: Mapping[str, Any]) -> bool:
    return not notes.get(labels.MIN_MEMBERS)


def _least(notes: Mapping[str, Any], now: int) -> int:
    said = str(notes.get(labels.MIN_MEMBERS) or "")
    return int(said) if said.isdecimal() else now


def _fixed(kind: str, field: str) -> ServiceError:
    what = {
        "gpus_per_pod": "how many GPUs a pod asks for",
        "gpu_classes": "the GPU classes that it may run on",
    }.get(field, "how many pods it has")
    return ServiceError(
        "fixed_by_kind",
        f"A {kind} that stands in the cluster cannot be changed in {what}.",
        "Cancel it, and clone it with this change.",
        field=field,
    )


def _as_same_object(before: Sighting, after: Sighting) -> Sighting:
    """``after`` as the same object: reading a draft forgets what only a server knows."""
    return replace(
        after, uid=before.uid, created=before.created, user=before.user, hold=before.hold
    )


def _checked(after: Sighting, change: WorkloadChange) -> Sighting:
    """Raises ServiceError for what would be kept from starting by what it says itself."""
    if after.fault:
        raise ServiceError("invalid", after.fault, field=_field_of(change))
    lost = [name for name in change.gpu_classes or () if name not in after.gpu_classes]
    if lost:
        raise ServiceError(
            "gpu_class_does_not_fit",
            f"Its pods cannot run on {lost[0]}: they ask for another resource, or for other nodes.",
            "Name classes that fit, or clone it for this one.",
            field="gpu_classes",
        )
    return after


def _field_of(change: WorkloadChange) -> str | None:
    fields = sorted(change.fields)
    return fields[0] if len(fields) == 1 else None
