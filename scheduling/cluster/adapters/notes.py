"""What stands on an object, whatever its kind, as fields of Observed.

What it is called, what people wrote on it, and what Weir did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.adapters.base import Admission, Target
from scheduling.cluster.adapters.originals import Original
from scheduling.cluster.quantities import duration_s, instant, rfc3339

Json = dict[str, Any]


def of(obj: Json) -> dict[str, str]:
    """The annotations of ``obj``."""
    return obj["metadata"].get("annotations") or {}


def identity(kind: str, obj: Json) -> Json:
    """What it is called, whose it is and since when. Raises ValueError when that is not there."""
    meta = obj["metadata"]
    created = instant(meta.get("creationTimestamp"))
    if created is None:
        raise ValueError("metadata.creationTimestamp: not there")
    return {
        "uid": meta["uid"],
        "kind": kind,
        "namespace": meta["namespace"],
        "name": meta["name"],
        "queue_label": labels.queue_of(meta.get("labels")),
        "created": created,
    }


def wishes(notes: Mapping[str, str], pods: Sequence[Json]) -> Json:
    """What people ask for in annotations; nonsense counts as left out."""
    return {
        "user": notes.get(labels.USER, ""),
        "topology": _topology(notes),
        "checkpoint_interval_s": _seconds(notes.get(labels.CHECKPOINT_INTERVAL)),
        "checkpointed": _checkpointed(notes, pods),
        "predicted_s": _predicted(notes.get(labels.PREDICTED_SECONDS, "")),
        "hold": notes.get(labels.HOLD) == "true",
    }


def state(notes: dict[str, str]) -> Json:
    """What Weir noted of its own acts."""
    return {
        "marked": labels.GPU_CLASS in notes,
        "gpu_class": notes.get(labels.GPU_CLASS),
        "planned": _placement(notes.get(labels.PLACEMENT, "")),
        "admitted": instant(notes.get(labels.ADMITTED_AT)),
        "evicted_by": _whole(notes.get(labels.EVICTED_BY)),
        "moves_to": _target(notes.get(labels.MOVES_TO, "")),
        "start_failures": _whole(notes.get(labels.START_FAILURES)) or 0,
        "retry_at": instant(notes.get(labels.RETRY_AT)),
        "said": labels.status_of(notes),
    }


def mark(original: Original, admission: Admission) -> Json:
    """The annotations that go with an admission; None removes one."""
    return {
        labels.GPU_CLASS: admission.gpu_class.name,
        labels.PLACEMENT: json.dumps(dict(sorted(admission.placement.items()))),
        labels.ADMITTED_AT: rfc3339(admission.at),
        labels.ORIGINAL: original.dump(admission.members),
        **({labels.GROUP_UID: admission.group_uid} if admission.group_uid else {}),
        labels.EVICTED_BY: None,
        labels.POSITION: None,
        labels.MOVES_TO: None,
        labels.RETRY_AT: None,
    }


def unmark(evicted_by: int | None) -> Json:
    """The annotations that go with a suspension; None removes one."""
    notes: Json = dict.fromkeys(labels.MARK)
    if evicted_by is not None:
        notes[labels.EVICTED_BY] = str(evicted_by)
    return notes


def target_note(gpu_class: str, placement: Mapping[str, int]) -> str:
    """Where it starts again, as ``weir.dev/moves-to`` says it."""
    return json.dumps({"gpu_class": gpu_class, "placement": dict(sorted(placement.items()))})


def _topology(notes: Mapping[str, str]) -> dict[str, str]:
    wanted = {
        "required": notes.get(labels.TOPOLOGY_REQUIRED),
        "preferred": notes.get(labels.TOPOLOGY_PREFERRED),
    }
    return {kind: level for kind, level in wanted.items() if level}


def _seconds(text: str | None) -> int | None:
    seconds = duration_s(text) if text else None
    return round(seconds) if seconds and seconds > 0 else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _predicted(text: str) -> tuple[float, float] | None:
    """``p50`` or ``p50,p90``; alone, twice the median stands in for P90."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    median = values[0]
    return (median, max(median, values[1] if len(values) > 1 else 2 * median))


def _checkpointed(notes: Mapping[str, str], pods: Sequence[Json]) -> datetime | None:
    """Its own word, else that of the pod whose checkpoint is the oldest (a gang restarts whole)."""
    if own := instant(notes.get(labels.CHECKPOINTED_AT)):
        return own
    said = [when for pod in pods if (when := instant(of(pod).get(labels.CHECKPOINTED_AT)))]
    return min(said, default=None)


def _placement(text: str) -> dict[str, int]:
    try:
        return {str(node): int(count) for node, count in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        return {}


def _target(text: str) -> Target | None:
    try:
        said = json.loads(text)
        placement = {str(node): int(count) for node, count in said["placement"].items()}
        return Target(str(said["gpu_class"]), placement)
    except (ValueError, AttributeError, TypeError, KeyError):
        return None
