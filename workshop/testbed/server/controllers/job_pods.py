"""The pods of a Job: what a new one looks like, and how they are stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice

from workshop.testbed.server.kinds.defaults import pod_requests, qos_class
from workshop.testbed.server.kinds.resources import PRIORITY_CLASSES, Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Record

from ..verbs.delete import DeleteOptions, mark_deleted
from ..verbs.update import write_metadata
from .tally import INDEX, TRACKING


def new_pod(world: World, job: Record, index: int | None) -> Json:
    """Return the body of a new pod of `job`; it shares the template's parts."""
    template = job.body["spec"]["template"]
    given = template.get("metadata") or {}
    metadata: Json = {
        **{key: given[key] for key in ("labels", "annotations") if given.get(key)},
        "namespace": job.namespace,
        "generateName": f"{job.name[:50]}-",
        "uid": world.new_uid(),
        "creationTimestamp": world.clock.stamp(),
        "generation": 1,
        "ownerReferences": [_owner(job)],
        "finalizers": [TRACKING, *(given.get("finalizers") or ())],
    }
    spec = {
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        **pod_requests(template["spec"]),
    }
    spec["priority"] = _priority(world, spec.get("priorityClassName"))
    if index is not None:
        _mark_index(job, metadata, spec, index)
    metadata["name"] = metadata["generateName"] + world.suffix()
    status = {"phase": "Pending", "qosClass": qos_class(spec)}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status
    }  # fmt: skip


def _owner(job: Record) -> Json:
    return {
        "apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": job.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def _priority(world: World, name: str | None) -> int:
    record = world.store.get(PRIORITY_CLASSES, "", name) if name else None
    return int(record.body["value"]) if record else 0


def _mark_index(job: Record, metadata: Json, spec: Json, index: int) -> None:
    """Give the pod its index: name, host name, label, annotation and environment."""
    stem = f"{job.name[:50]}-{index}"
    metadata["generateName"] = f"{stem}-"
    metadata["labels"] = {**metadata.get("labels", {}), INDEX: str(index)}
    metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: str(index)}
    spec["hostname"] = stem
    reference = {"fieldPath": f"metadata.labels['{INDEX}']"}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": reference}}
    spec["containers"] = [
        {**container, "env": [*(container.get("env") or ()), variable]}
        for container in spec["containers"]
    ]


def wanted_indexes(completions: int, taken: set[int], missing: int) -> Iterator[int]:
    """Return the lowest `missing` indexes below `completions` that are not `taken`."""
    free = (index for index in count() if index not in taken)
    return islice((i for i in islice(free, completions) if i < completions), missing)


def stop_pods(world: World, pods: Iterable[Record], *, counted: bool) -> list[Record]:
    """Delete `pods` with their grace; return those that are still there, terminating.

    Pods that suspending or shrinking a Job takes away are not to be `counted` as failures, so their
    tracking finalizer goes first.
    """
    stopped = []
    for pod in pods:
        if not counted:
            release(world, pod)
        current = world.store.find(pod.key)
        if current is not None:
            stopped.append(mark_deleted(world, current, DeleteOptions()))
    return [pod for pod in stopped if world.store.find(pod.key) is not None]


def release(world: World, pod: Record) -> None:
    """Take the tracking finalizer off `pod`, if it is there and has one."""
    current = world.store.find(pod.key)
    finalizers = current.body["metadata"].get("finalizers") or [] if current is not None else []
    if current is not None and TRACKING in finalizers:
        rest = [name for name in finalizers if name != TRACKING]
        write_metadata(world, current, finalizers=rest or None)
