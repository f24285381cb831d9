"""LimitRanges: what a container requests, and is limited to, where it states neither.

Least and most amounts, and ranges of other types than Container, are not evaluated.
"""

from __future__ import annotations

from workshop.testbed.server.kinds.resources import LIMIT_RANGES, Json
from workshop.testbed.server.store.context import World

_DEFAULTS = (("requests", "defaultRequest"), ("limits", "default"))


def apply_limit_ranges(world: World, pod: Json) -> None:
    """Write the defaults of its namespace into the containers of `pod`, in place; others share no part."""
    namespace = pod["metadata"].get("namespace", "")
    if not world.store.count(LIMIT_RANGES, namespace):
        return
    for record in world.store.listing(LIMIT_RANGES, namespace):
        for limit in record.body["spec"].get("limits") or ():
            if limit.get("type") == "Container":
                _fill(pod["spec"], limit)


def _fill(spec: Json, limit: Json) -> None:
    for part in ("initContainers", "containers"):
        if spec.get(part):
            spec[part] = [_filled(container, limit) for container in spec[part]]


def _filled(container: Json, limit: Json) -> Json:
    resources = container.get("resources") or {}
    added = {
        part: {**limit[default], **(resources.get(part) or {})}
        for part, default in _DEFAULTS
        if limit.get(default)
    }
    return {**container, "resources": {**resources, **added}}
