"""LimitRanges: what the API server has a container ask for, and limits it to, where its author does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

RESOURCE = "limitranges"
LIST_PATH = "/api/v1/limitranges"


@dataclass(frozen=True, slots=True)
class Defaults:
    """Quantities by resource, as they are written."""

    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


NO_DEFAULTS = Defaults()
ByNamespace = Mapping[str, Defaults]


def read(ranges: Iterable[Json]) -> dict[str, Defaults]:
    """By namespace. A bound stands for a default that is not stated, as the API server has it; where ranges
    differ, the first by name counts."""
    found: dict[str, Defaults] = {}
    for one in sorted(ranges, key=lambda r: str(r["metadata"]["name"])):
        for item in (one.get("spec") or {}).get("limits") or []:
            if item.get("type") == "Container":
                space = one["metadata"].get("namespace", "")
                found[space] = _joined(found.get(space, NO_DEFAULTS), item)
    return {space: defaults for space, defaults in found.items() if defaults != NO_DEFAULTS}


def _joined(before: Defaults, item: Json) -> Defaults:
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    return Defaults({**requests, **before.requests}, {**limits, **before.limits})


def filled(obj: Json, pods_of: Callable[[Json], Iterable[Json]], defaults: Defaults) -> Json:
    """``obj`` with the pod specs in it as they will be; itself where there are no ``defaults``."""
    if defaults == NO_DEFAULTS:
        return obj
    made = deepcopy(obj)
    for pod in pods_of(made):
        fill(pod, defaults)
    return made


def fill(pod: Json, defaults: Defaults) -> None:
    """Have the containers of ``pod`` ask for what they will get; edits in place."""
    for container in [*(pod.get("containers") or []), *(pod.get("initContainers") or [])]:
        resources = container.setdefault("resources", {})
        stated = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        limits = {**defaults.limits, **(resources.get("limits") or {})}
        more = {name: amount for name, amount in defaults.requests.items() if name not in stated}
        requests = {**more, **(resources.get("requests") or {})}
        resources |= {k: v for k, v in (("limits", limits), ("requests", requests)) if v}
