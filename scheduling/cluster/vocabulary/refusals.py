"""Pods that the API server did not let a controller make, in its words: a ResourceQuota leaves no room, a
webhook or the pod security of the namespace forbids them.

Controllers say so in an Event on the object that the pods would belong to, and try again by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.cluster.vocabulary.quantities import instant

Json = dict[str, Any]

REASONS = (
    "FailedCreate",  # Kubernetes' own controllers and LeaderWorkerSet
    "FailedCreatePod", "MPIJobFailed",  # Kubeflow's
    "JobCreationFailed",  # JobSet, of its Jobs
    "FailedToCreateHeadPod", "FailedToCreateWorkerPod", "FailedToCreateRayCluster",  # KubeRay
)  # fmt: skip
"""What controllers call it. Of a JobSet's or TrainJob's pods its Jobs say so."""
LIST_PATHS = {reason: f"/api/v1/events?fieldSelector=reason%3D{reason}" for reason in REASONS}
"""Events alone that say so: of all others there are many."""
PREFIX = re.compile(
    r"Error creating: |(launcher|worker) pod created failed: "
    r"|Failed to create (head|worker) Pod( for the cluster)? [^ ,]*, |Failed to create RayCluster [^ ,]*[:,] "
)
"""What controllers say before the words of the API server."""
FOR_MORE = {"MPIJobFailed": "pod created failed"}
"""Reasons that also tell of other things, and what stands in the message where it is this one."""


@dataclass(frozen=True, slots=True)
class PodRefusal:
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
        "said": _refusal_in_words(str(event.get("reason")), str(event.get("message") or "")),
        "at": series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime"),
    }


def _refusal_in_words(reason: str, message: str) -> str:
    """The words of the API server; empty where the event tells of something else."""
    return PREFIX.sub("", message, count=1) if FOR_MORE.get(reason, "") in message else ""


def read(events: Iterable[Json]) -> Mapping[str, PodRefusal]:
    """What trimmed ``events`` say last, by the uid of the object that they are about."""
    found: dict[str, PodRefusal] = {}
    for event in events:
        at = instant(event["at"])
        if at and event["said"] and (event["of"] not in found or found[event["of"]].at < at):
            found[event["of"]] = PodRefusal(event["said"], at)
    return found
