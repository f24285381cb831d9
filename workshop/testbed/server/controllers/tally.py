"""Counting a Job's pods: which run, which are new results, which indexes are done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from workshop.testbed.server.kinds.resources import Json
from workshop.testbed.server.store.store import Record

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def phase(pod: Record) -> str:
    """Return the phase of a pod."""
    return str(pod.body.get("status", {}).get("phase", "Pending"))


def is_ready(pod: Record) -> bool:
    """Return whether a pod's Ready condition is true."""
    conditions = pod.body.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_terminating(pod: Record) -> bool:
    """Return whether a pod is on its way out without having ended."""
    return "deletionTimestamp" in pod.body["metadata"] and not is_ended(pod)


def is_ended(pod: Record) -> bool:
    """Return whether a pod has succeeded or failed."""
    return phase(pod) in ("Succeeded", "Failed")


def index_of(pod: Record) -> int | None:
    """Return the completion index of a pod, or None."""
    text = (pod.body["metadata"].get("annotations") or {}).get(INDEX)
    return int(text) if text is not None else None


@dataclass(slots=True)
class Tally:
    """The pods of a Job, sorted by what they mean for it."""

    active: list[Record] = field(default_factory=list)
    terminating: list[Record] = field(default_factory=list)
    succeeded: list[Record] = field(default_factory=list)
    """Newly: not counted in the status yet."""
    failed: list[Record] = field(default_factory=list)
    """Newly: not counted in the status yet; deleted pods are among them."""


def tally(pods: Iterable[Record], *, patient: bool = False) -> Tally:
    """Return `pods` sorted; the tracking finalizer marks those not counted yet.

    A deleted pod counts as failed at once, or (`patient`: its Job judges failures by what the pod
    says in the end) when it has ended.
    """
    result = Tally()
    for pod in pods:
        uncounted = TRACKING in (pod.body["metadata"].get("finalizers") or ())
        if is_ended(pod):
            if uncounted:
                (result.succeeded if phase(pod) == "Succeeded" else result.failed).append(pod)
        elif is_terminating(pod):
            result.terminating.append(pod)
            if uncounted and not patient:
                result.failed.append(pod)
        else:
            result.active.append(pod)
    return result


def parse_indexes(text: str) -> set[int]:
    """Return the set written as `0,2-4`."""
    result: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        result.update(range(int(first), int(last or first) + 1))
    return result


def format_indexes(indexes: set[int]) -> str:
    """Return `indexes` as `0,2-4`; runs of two are written `a,b` as a real server does."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for end in range(1, len(ordered) + 1):
        if end < len(ordered) and ordered[end] == ordered[end - 1] + 1:
            continue
        parts.append(_run(ordered[start], ordered[end - 1]))
        start = end
    return ",".join(parts)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def condition(status: Json, kind: str) -> bool:
    """Return whether the condition `kind` is true."""
    return any(c["type"] == kind and c["status"] == "True" for c in status.get("conditions") or ())
