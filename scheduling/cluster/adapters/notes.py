"""What stands on an object, whatever its kind, as fields of Sighting.

What it is called, what people wrote on it, and what Weir did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduling.cluster.adapters import start_faults, turns
from scheduling.cluster.adapters.base import Admission, ClassSpec, Target
from scheduling.cluster.adapters.originals import Original
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import (
    duration_s,
    instant,
    rfc3339,
    seconds_within,
    whole,
)

Json = dict[str, Any]

LEVEL_LENGTH = 320
"""Characters that a level may be named with: as many as a label of a node has."""


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
        "user": notes.get(labels.USER, "").replace("\0", "")[: labels.USER_LENGTH],
        "topology": _topology(notes),
        "checkpoint_interval_s": _seconds(notes.get(labels.CHECKPOINT_INTERVAL)),
        "checkpointed": _checkpointed(notes, pods),
        "predicted_s": _predicted(notes.get(labels.PREDICTED_SECONDS, "")),
        "hold": is_held(notes),
        "ran_out": notes.get(labels.HOLD) == labels.RUN_OVER,
        "own_limit_s": own_limit_s(notes),
        "turn": turns.read(notes),
        "names_classes": bool(notes.get(labels.GPU_CLASSES, "").strip(", \0")),
    }


def is_held(notes: Mapping[str, str]) -> bool:
    """It is not to be started until the annotation goes."""
    return notes.get(labels.HOLD) in (labels.ON_HOLD, labels.RUN_OVER)


def own_limit_s(notes: Mapping[str, str]) -> int | None:
    """The run-time limit that the annotation sets, which none but Weir keeps."""
    return _seconds(notes.get(labels.RUN_TIME_LIMIT))


def least_s(*limits: int | None) -> int | None:
    """The least of some limits; None where there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


def state(notes: dict[str, str], classes: Sequence[ClassSpec]) -> Json:
    """What Weir noted of its own acts; a class that is none of ``classes`` (any more) is left out."""
    known, gpu_class = {c.name for c in classes}, notes.get(labels.GPU_CLASS)
    target = _target(notes.get(labels.MOVES_TO, ""))
    return {
        "marked": labels.GPU_CLASS in notes,
        "gpu_class": gpu_class if gpu_class in known else None,
        "planned": _placement(notes.get(labels.PLACEMENT, "")),
        "admitted": instant(notes.get(labels.ADMITTED_AT)),
        "evicted_by": whole(notes.get(labels.EVICTED_BY)),
        "altered": labels.ORIGINAL in notes,
        "moves_to": target if target and target.gpu_class in known else None,
        "start_failures": whole(notes.get(labels.START_FAILURES)) or 0,
        "retry_at": instant(notes.get(labels.RETRY_AT)),
        "start_fault": start_faults.read(notes.get(labels.START_FAULT, "")),
        "said": labels.status_of(notes),
    }


def mark(original: Original, admission: Admission, members: int) -> Json:
    """The annotations that go with an admission of so many pods that are members; None removes one."""
    return {
        labels.GPU_CLASS: admission.gpu_class.name,
        labels.PLACEMENT: json.dumps(dict(sorted(admission.placement.items()))),
        labels.ADMITTED_AT: rfc3339(admission.at),
        labels.ORIGINAL: original.dump(members),
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
    """As people name them; what levels there are is the cluster's policy."""
    wanted = {kind: notes.get(note, "") for kind, note in labels.TOPOLOGY.items()}
    said = {kind: level.replace("\0", "")[:LEVEL_LENGTH] for kind, level in wanted.items()}
    return {kind: level for kind, level in said.items() if level}


def _seconds(text: str | None) -> int | None:
    seconds = duration_s(text) if text else None
    return (round(seconds) or None) if seconds else None


def _predicted(text: str) -> tuple[float, float] | None:
    """``p50`` or ``p50,p90``; alone, twice the median stands in for P90."""
    if not text:
        return None
    try:
        said = [seconds_within(float(part)) for part in text.split(",")]
    except ValueError:
        return None
    values = [value for value in said if value]
    if len(values) < len(said):
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
    if not text:
        return {}  # Most objects say nothing, and each is read several times.
    try:
        return _members_by_node(json.loads(text))
    except (ValueError, AttributeError, TypeError):
        return {}


def _target(text: str) -> Target | None:
    if not text:
        return None
    try:
        said = json.loads(text)
        return Target(str(said["gpu_class"]), _members_by_node(said["placement"]))
    except (ValueError, AttributeError, TypeError, KeyError):
        return None


def _members_by_node(said: Any) -> dict[str, int]:
    """Raises ValueError where a count is none, and others where it is no map of counts."""
    placement = {str(node): int(count) for node, count in said.items()}
    if any(count < 1 for count in placement.values()):
        raise ValueError("a node with less than one member")
    return placement
