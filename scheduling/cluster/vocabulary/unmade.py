"""Pods that the API server did not let a controller make, in its words: a ResourceQuota leaves no room, a
webhook or the pod security of the namespace forbids them.

Controllers say so in an Event on the object that the pods would belong to, and try again by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.cluster.vocabulary.quantities import instant

Json = dict[str, Any]

REASONS = ("FailedCreate", "FailedCreatePod")
"""Of Kubernetes' own controllers, and of Kubeflow's."""
LIST_PATHS = {reason: f"/api/v1/events?fieldSelector=reason%3D{reason}" for reason in REASONS}
"""Events alone that say so: of all others there are many."""
PREFIX = "Error creating: "


@dataclass(frozen=True, slots=True)
class Unmade:
    """What was ``said`` last of pods that were not made, and when."""

    said: str
    at: datetime


def trim(event: Json) -> Json:
    """An Event without what nobody here reads."""
    meta = event["metadata"]
    series = event.get("series") or {}
    return {
        "metadata": {k: meta[k] for k in ("name", "namespace", "uid", "resourceVersion")},
        "of": (event.get("involvedObject") or {}).get("uid") or "",
        "said": str(event.get("message") or "").removeprefix(PREFIX),
        "at": series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime"),
    }


def read(events: Iterable[Json]) -> Mapping[str, Unmade]:
    """What trimmed ``events`` say last, by the uid of the object that they are about."""
    found: dict[str, Unmade] = {}
    for event in events:
        at = instant(event["at"])
        if at and event["said"] and (event["of"] not in found or found[event["of"]].at < at):
            found[event["of"]] = Unmade(event["said"], at)
    return found
