"""What a RuntimeClass adds to the pods that name it: overhead (KEP-688), and where they may run (KEP-585)."""

from __future__ import annotations

from workshop.testbed.server.kinds.errors import ApiError, forbidden
from workshop.testbed.server.kinds.quantities import milli
from workshop.testbed.server.kinds.resources import PODS, RUNTIME_CLASSES, Json
from workshop.testbed.server.store.context import World

_OTHER = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNFOUNDED = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
_CONFLICT = (
    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {ours};"
    " pod.spec.nodeSelector[{key}] = {theirs}"
)


def apply_runtime_class(world: World, pod: Json) -> None:
    """Write what its class adds into `pod`, in place.

    Raises ApiError: 403 when there is no such class, or the pod states another overhead or node.
    """
    added = _class_of(world, pod)
    _set_overhead(pod, (added.get("overhead") or {}).get("podFixed") or {})
    _set_scheduling(pod, added.get("scheduling") or {})


def _set_overhead(pod: Json, fixed: Json) -> None:
    spec = pod["spec"]
    stated = spec.get("overhead")
    if not fixed and stated:
        raise _rejected(pod, f"pod rejected: {_UNFOUNDED}")
    if fixed and stated and _amounts(stated) != _amounts(fixed):
        raise _rejected(pod, f"pod rejected: {_OTHER}")
    if fixed:
        spec.setdefault("overhead", dict(fixed))


def _set_scheduling(pod: Json, scheduling: Json) -> None:
    spec = pod["spec"]
    selector, own = scheduling.get("nodeSelector") or {}, spec.get("nodeSelector") or {}
    for key, value in selector.items():
        if own.get(key, value) != value:
            raise _rejected(pod, _CONFLICT.format(key=key, ours=value, theirs=own[key]))
    if selector:
        spec["nodeSelector"] = {**own, **selector}
    tolerations = spec.get("tolerations") or []
    if more := [t for t in scheduling.get("tolerations") or [] if t not in tolerations]:
        spec["tolerations"] = [*tolerations, *more]


def _class_of(world: World, pod: Json) -> Json:
    """The RuntimeClass that the pod names; empty when it names none."""
    name = pod["spec"].get("runtimeClassName")
    if not name:
        return {}
    record = world.store.get(RUNTIME_CLASSES, "", name)
    if record is None:
        raise _rejected(pod, f'pod rejected: RuntimeClass "{name}" not found')
    return record.body


def _amounts(quantities: Json) -> dict[str, int]:
    return {name: milli(amount) for name, amount in quantities.items()}


def _rejected(pod: Json, why: str) -> ApiError:
    return forbidden(PODS, pod["metadata"].get("name", ""), why)
