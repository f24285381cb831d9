"""Which workload each pod of a mirror belongs to."""

from __future__ import annotations

from typing import Any

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.adapters.podgroup import gather
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.picture.kinship import Kinship

Json = dict[str, Any]


def owners(mirror: Mirror) -> dict[tuple[str, str], str]:
    """(namespace, name) of each pod of queued work -> uid of its workload."""
    kin = Kinship(ADAPTERS)
    objects = {a.kind: mirror[a.kind].objects() for a in ADAPTERS if a.resource == a.kind}
    kin.keep_up(objects, {})
    pods = mirror["pods"].objects()
    rooted = {_name(pod): uid for pod in pods if (uid := kin.root_of(pod)) is not None}
    plain = [pod for pod in pods if _name(pod) not in rooted]
    grouped = {
        _name(pod): group["metadata"]["uid"] for group, mine in gather(plain) for pod in mine
    }
    return rooted | grouped


def _name(pod: Json) -> tuple[str, str]:
    meta = pod["metadata"]
    return meta.get("namespace", ""), meta["name"]
