"""An object of the cluster as its author wrote it."""

from __future__ import annotations

import copy
from typing import Any

from scheduling.cluster.adapters import Adapter
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]


def as_written(obj: Json, adapter: Adapter) -> Json:
    """``obj`` as a person would submit it again, suspended: without what Weir or the cluster wrote."""
    meta = obj["metadata"]
    notes = dict(meta.get("annotations") or {})
    unmark(notes)
    notes.pop(labels.USER, None)
    metadata = {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "labels": meta.get("labels") or {},
    }
    spec = copy.deepcopy(obj["spec"])
    if adapter.kind == "Job" and not spec.pop("manualSelector", False):
        spec.pop("selector", None)
        pods = spec["template"].get("metadata") or {}
        said = {k: v for k, v in (pods.get("labels") or {}).items() if not _is_made(k)}
        bare = {k: v for k, v in {**pods, "labels": said}.items() if v}
        spec["template"] = {
            **({"metadata": bare} if bare else {}),
            "spec": spec["template"]["spec"],
        }
    written = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {**metadata, "annotations": notes},
        "spec": spec,
    }
    return adapter.queued(written)


def _is_made(label: str) -> bool:
    """Whether the Job controller gives it to the pods."""
    return label in ("controller-uid", "job-name") or label.startswith("batch.kubernetes.io/")


def unmark(notes: Json) -> None:
    """A copied manifest of admitted work must not bring its admission along."""
    for note in labels.WRITTEN_BY_WEIR:
        notes.pop(note, None)
