"""Events on objects, as `kubectl describe` shows them."""

from __future__ import annotations

from workshop.testbed.server.kinds.resources import EVENTS, NAMESPACES, Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Record


def emit(
    world: World, about: Record, reason: str, message: str, *, source: str, warning: bool = False
) -> None:
    """Write an Event about `about`; nothing happens in a namespace that is going away."""
    owner = world.store.get(NAMESPACES, "", about.namespace)
    if owner is None or owner.body["metadata"].get("deletionTimestamp"):
        return
    now = world.clock.stamp()
    name = f"{about.name[:200]}.{world.dice.getrandbits(64):016x}"
    body: Json = {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "name": name, "namespace": about.namespace, "uid": world.new_uid(),
            "creationTimestamp": now,
        },
        "involvedObject": {
            "kind": about.resource.kind, "namespace": about.namespace, "name": about.name,
            "uid": about.uid, "apiVersion": about.resource.group_version,
            "resourceVersion": str(about.version),
        },
        "reason": reason, "message": message, "source": {"component": source},
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        "type": "Warning" if warning else "Normal",
        "eventTime": None, "reportingComponent": source, "reportingInstance": "",
    }  # fmt: skip
    world.store.insert(EVENTS, body)
