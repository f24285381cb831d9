"""What a RuntimeClass adds to the pods that name it (KEP-688)."""

from __future__ import annotations

from ..context import World
from ..errors import ApiError, forbidden
from ..quantities import milli
from ..resources import PODS, RUNTIME_CLASSES, Json

_OTHER = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNFOUNDED = "Pod Overhead set without corresponding RuntimeClass defined Overhead"


def set_overhead(world: World, pod: Json) -> None:
    """Write the overhead of its class into `pod`, in place.

    Raises ApiError: 403 when there is no such class, or the pod states another overhead.
    """
    spec = pod["spec"]
    fixed, stated = _fixed(world, pod), spec.get("overhead")
    if not fixed and stated:
        raise _rejected(pod, _UNFOUNDED)
    if fixed and stated and _amounts(stated) != _amounts(fixed):
        raise _rejected(pod, _OTHER)
    if fixed:
        spec.setdefault("overhead", dict(fixed))


def _fixed(world: World, pod: Json) -> Json:
    name = pod["spec"].get("runtimeClassName")
    if not name:
        return {}
    record = world.store.get(RUNTIME_CLASSES, "", name)
    if record is None:
        raise _rejected(pod, f'RuntimeClass "{name}" not found')
    fixed: Json = (record.body.get("overhead") or {}).get("podFixed") or {}
    return fixed


def _amounts(quantities: Json) -> dict[str, int]:
    return {name: milli(amount) for name, amount in quantities.items()}


def _rejected(pod: Json, why: str) -> ApiError:
    return forbidden(PODS, pod["metadata"].get("name", ""), f"pod rejected: {why}")
