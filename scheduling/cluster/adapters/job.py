"""batch/v1 Job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.base import Admission, ClassSpec, Observed
from scheduling.cluster.quantities import duration_s, instant, rfc3339

Json = dict[str, Any]


class JobAdapter:
    kind = "Job"
    api_version = "batch/v1"
    list_path = "/apis/batch/v1/jobs"

    def path(self, namespace: str, name: str = "") -> str:
        base = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        return f"{base}/{name}" if name else base

    def trim(self, obj: Json) -> Json:
        obj["metadata"].pop("managedFields", None)
        (obj["metadata"].get("annotations") or {}).pop(
            "kubectl.kubernetes.io/last-applied-configuration", None
        )
        return obj

    def observe(self, obj: Json, pods: Sequence[Json], classes: Sequence[ClassSpec]) -> Observed:
        meta, spec = obj["metadata"], obj["spec"]
        notes: dict[str, str] = meta.get("annotations") or {}
        template = spec["template"]["spec"]
        names = pods_of.fitting_classes(template, classes, notes.get(labels.GPU_CLASSES, ""))
        need = pods_of.asked(template)
        lowest, highest = _members(obj)
        return Observed(
            uid=meta["uid"],
            kind=self.kind,
            namespace=meta["namespace"],
            name=meta["name"],
            generation=int(meta.get("generation", 0)),
            queue_label=labels.queue_of(meta.get("labels")),
            user=notes.get(labels.USER, ""),
            priority_class=_priority_class(meta, template),
            gpus=_gpus(need, names, classes),
            cpus=int(need.get("cpu", 0)),
            memory_mib=int(need.get("memory", 0)),
            min_members=lowest,
            max_members=highest,
            gpu_classes=names,
            created=_created(meta),
            topology=_topology(notes),
            run_time_limit_s=spec.get("activeDeadlineSeconds"),
            checkpoint_interval_s=_seconds(notes.get(labels.CHECKPOINT_INTERVAL)),
            checkpointed=_checkpointed(notes, pods),
            predicted_s=_predicted(notes.get(labels.PREDICTED_SECONDS, "")),
            hold=notes.get(labels.HOLD) == "true",
            said=labels.status_of(notes),
            **_state(obj, pods),
        )

    def admission(self, obj: Json, admission: Admission) -> Json:
        original = _original(obj)
        spec: Json = {
            "suspend": False,
            **_size(obj, original, admission.members),
            "template": {
                "spec": {
                    "affinity": {"nodeAffinity": _affinity(original, admission)},
                    "tolerations": _tolerations(original, admission.gpu_class),
                }
            },
        }
        return {"metadata": {"annotations": _mark(original, admission)}, "spec": spec}

    def suspension(self, obj: Json, evicted_by: int | None) -> Json:
        notes: Json = dict.fromkeys(labels.MARK)
        if evicted_by is not None:
            notes[labels.EVICTED_BY] = str(evicted_by)
        return {"metadata": {"annotations": notes}, "spec": {"suspend": True}}

    def resize(self, obj: Json, admission: Admission) -> Json:
        """The pods' affinity is fixed while they run: growth stays on the class, on nodes it chose."""
        original = _original(obj)
        mark = _mark(original, admission)
        mark.pop(labels.ADMITTED_AT)
        return {
            "metadata": {"annotations": mark},
            "spec": _size(obj, original, admission.members),
        }


def _created(meta: Json) -> datetime:
    created = instant(meta.get("creationTimestamp"))
    if created is None:
        raise ValueError("metadata.creationTimestamp: not there")
    return created


def _priority_class(meta: Json, template: Json) -> str:
    label = (meta.get("labels") or {}).get(labels.PRIORITY_CLASS)
    return label or template.get("priorityClassName") or ""


def _gpus(need: Mapping[str, Any], names: Sequence[str], classes: Sequence[ClassSpec]) -> int:
    """Milli-GPU a member asks for: of its first class, else of any class's resource."""
    ordered = sorted(classes, key=lambda c: names.index(c.name) if c.name in names else len(names))
    return next((int(need[c.resource_name]) for c in ordered if c.resource_name in need), 0)


def _original(obj: Json) -> Json:
    """What stood there before the first admission: kept on the object, else read from it now.

    A size that is not the one admission set was edited by a person since, and counts from then on.
    """
    spec, notes = obj["spec"], obj["metadata"].get("annotations") or {}
    size = {"parallelism": spec.get("parallelism", 1), "completions": spec.get("completions")}
    try:
        kept = json.loads(notes[labels.ORIGINAL])
    except (KeyError, ValueError):
        affinity = (spec["template"]["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        return {
            "terms": required.get("nodeSelectorTerms") or [],
            "tolerations": spec["template"]["spec"].get("tolerations") or [],
            **size,
        }
    return kept if kept.get("set") in (None, size["parallelism"]) else {**kept, **size, "set": None}


def _members(obj: Json) -> tuple[int, int]:
    """(min, max) of the gang; no more members than completions ever run at once."""
    original = _original(obj)
    highest = max(1, int(original["parallelism"] or 1))
    if original["completions"]:
        highest = min(highest, int(original["completions"]))
    note = (obj["metadata"].get("annotations") or {}).get(labels.MIN_MEMBERS, "")
    lowest = int(note) if note.isdecimal() else highest
    return min(max(1, lowest), highest), highest


def _size(obj: Json, original: Json, members: int) -> Json:
    """Parallelism, and completions with it where the Job is indexed one for one; nothing if rigid."""
    lowest, highest = _members(obj)
    if lowest == highest and obj["spec"].get("parallelism", 1) == original["parallelism"]:
        return {}
    size: Json = {"parallelism": members}
    indexed = obj["spec"].get("completionMode") == "Indexed"
    if indexed and original["completions"] == original["parallelism"]:
        size["completions"] = members
    return size


def _affinity(original: Json, admission: Admission) -> Json:
    """The person's own terms, each narrowed to the class and the planned hosts."""
    narrow = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted(admission.gpu_class.node_labels.items())
    ]
    narrow.append({"key": labels.HOSTNAME, "operator": "In", "values": sorted(admission.nodes)})
    terms = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or []), *narrow]}
        for term in original["terms"] or [{}]
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _tolerations(original: Json, gpu_class: ClassSpec) -> list[Json]:
    """GPU nodes are commonly tainted with their resource's name to keep other pods away."""
    own = {"key": gpu_class.resource_name, "operator": "Exists", "effect": "NoSchedule"}
    kept: list[Json] = original["tolerations"]
    return kept if own in kept else [*kept, own]


def _mark(original: Json, admission: Admission) -> Json:
    return {
        labels.GPU_CLASS: admission.gpu_class.name,
        labels.PLACEMENT: json.dumps(dict(sorted(admission.placement.items()))),
        labels.ADMITTED_AT: rfc3339(admission.at),
        labels.ORIGINAL: json.dumps({**original, "set": admission.members}, sort_keys=True),
        labels.EVICTED_BY: None,
        labels.POSITION: None,
    }


def _topology(notes: Mapping[str, str]) -> dict[str, str]:
    if required := notes.get(labels.TOPOLOGY_REQUIRED):
        return {"required": required}
    if preferred := notes.get(labels.TOPOLOGY_PREFERRED):
        return {"preferred": preferred}
    return {}


def _seconds(text: str | None) -> int | None:
    seconds = duration_s(text) if text else None
    return round(seconds) if seconds and seconds > 0 else None


def _predicted(text: str) -> tuple[float, float] | None:
    """``p50`` or ``p50,p90``; alone, twice the median stands in for P90."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    median = values[0]
    return (median, max(median, values[1] if len(values) > 1 else 2 * median))


def _checkpointed(notes: Mapping[str, str], pods: Sequence[Json]) -> datetime | None:
    """The Job's own word, else that of the pod whose checkpoint is the oldest (a gang restarts whole)."""
    if own := instant(notes.get(labels.CHECKPOINTED_AT)):
        return own
    said = [
        when
        for pod in pods
        if (when := instant((pod["metadata"].get("annotations") or {}).get(labels.CHECKPOINTED_AT)))
    ]
    return min(said, default=None)


def _state(obj: Json, pods: Sequence[Json]) -> Json:
    meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    notes: dict[str, str] = meta.get("annotations") or {}
    outcome, finished = _outcome(status)
    running = [p for p in pods if p["status"].get("phase") == "Running" and _stays(p)]
    parallelism = int(spec.get("parallelism", 1))
    done = int(status.get("succeeded") or 0)
    wanted = parallelism
    if spec.get("completions"):
        wanted = min(parallelism, max(0, int(spec["completions"]) - done))
    evicted_by = notes.get(labels.EVICTED_BY, "")
    return {
        "members": parallelism,
        "members_wanted": wanted,
        "members_up": len(running),
        "suspended": bool(spec.get("suspend")),
        "deleting": bool(meta.get("deletionTimestamp")),
        "marked": labels.GPU_CLASS in notes,
        "gpu_class": notes.get(labels.GPU_CLASS),
        "planned": _placement(notes.get(labels.PLACEMENT, "")),
        "admitted": instant(notes.get(labels.ADMITTED_AT)),
        "evicted_by": int(evicted_by) if evicted_by.isdecimal() else None,
        "outcome": outcome,
        "finished": finished,
        "started": max(
            (when for p in running if (when := instant(p["status"].get("startTime")))), default=None
        ),
        "placement": pods_of.by_node(pods),
        "pods_left": sum(not pods_of.is_over(p) for p in pods),
    }


def _stays(pod: Json) -> bool:
    return not pod["metadata"].get("deletionTimestamp")


def _outcome(status: Json) -> tuple[str, datetime | None]:
    for condition in status.get("conditions") or []:
        if condition.get("status") == "True" and condition["type"] in ("Complete", "Failed"):
            outcome = "succeeded" if condition["type"] == "Complete" else "failed"
            ended = status.get("completionTime") or condition.get("lastTransitionTime")
            return outcome, instant(ended)
    return "", None


def _placement(text: str) -> dict[str, int]:
    try:
        placement = json.loads(text)
        return {str(node): int(count) for node, count in placement.items()}
    except (ValueError, AttributeError, TypeError):
        return {}
