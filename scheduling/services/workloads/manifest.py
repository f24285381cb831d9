"""The Job that a form describes: the same manifest ``kubectl apply`` would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import duration_s, instant, mib_below, milli, rfc3339
from scheduling.models import GpuClass
from scheduling.services.errors import ServiceError

Json = dict[str, Any]


class FormKind(StrEnum):
    """What a form makes."""

    TRAINING = "training"
    INTERACTIVE = "interactive"
    """A Job that stays until its limit, for a shell."""
    SERVICE = "service"


SAID_BY_FIELDS = (labels.QUEUE, labels.PRIORITY_CLASS)
"""Labels that a form has fields of their own for. The priority class is one: that of a pod template can never
be changed again."""
SET_BY_SUBMITTING = (labels.USER,)
"""Annotations of which a manifest says nothing of its own."""


def build_job_manifest(
    *,
    name: str,
    queue: str,
    namespace: str,
    image: str,
    command: Sequence[str] = (),
    gpu_classes: Sequence[GpuClass],
    gpus_per_pod: int = 1,
    pods_min: int = 1,
    pods_max: int | None = None,
    cpus_per_pod: float = 0,
    memory_gib_per_pod: float = 0,
    priority_class: str = "",
    run_time_limit_s: int | None = None,
    checkpoint_interval_s: int | None = None,
    env: Mapping[str, str] | None = None,
    own_labels: Mapping[str, str] | None = None,
    volumes: Mapping[str, str] | None = None,
    secrets: Sequence[str] = (),
    not_before: datetime | None = None,
    after: Sequence[str] = (),
    topology: Mapping[str, str] | None = None,
    kind: FormKind = FormKind.TRAINING,
) -> Json:
    """Waiting work for ``queue`` (a queue's name): a suspended batch/v1 Job, or a Deployment for a service.

    ``volumes`` maps claims of its namespace to where they are mounted; ``secrets`` are names of Secrets there
    whose keys become environment. ``not_before`` and ``after`` are as ``weir.dev/…`` of those names say,
    ``topology`` as ``labels.TOPOLOGY`` do.

    ``gpu_classes`` are in order of preference and share one resource name; ``gpus_per_pod`` is whole
    GPUs; ``pods_max`` above ``pods_min`` makes it elastic. Raises ServiceError(field=…).
    """
    _check(gpu_classes, gpus_per_pod, pods_min, pods_max)
    pods = pods_max or pods_min
    resources = _resources(
        gpu_classes[0].resource_name, gpus_per_pod, cpus_per_pod, memory_gib_per_pod
    )
    notes = _notes(gpu_classes, pods_min, pods, checkpoint_interval_s)
    if not_before is not None:
        notes[labels.NOT_BEFORE] = rfc3339(not_before)
    if after:
        notes[labels.AFTER] = ",".join(after)
    notes |= {labels.TOPOLOGY[key]: level for key, level in (topology or {}).items() if level}
    if kind is FormKind.INTERACTIVE and not command:
        command = STAYS
    pod = _pod(image, command, resources, env or {}, volumes or {}, secrets)
    said = {labels.PRIORITY_CLASS: priority_class} if priority_class else {}
    meta: Json = {
        "name": name,
        "namespace": namespace,
        "labels": {labels.QUEUE: queue, **said, **(own_labels or {})},
        "annotations": notes,
    }
    if kind is FormKind.SERVICE:
        return _service(meta, pod, pods, run_time_limit_s)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": _suspended(pod, pods, run_time_limit_s),
    }


STAYS = ("sleep", "infinity")
"""What a session runs, into which its owner opens a shell."""


def _service(meta: Json, pod: Json, pods: int, run_time_limit_s: int | None) -> Json:
    """A Deployment, which waits with no replicas; Weir itself keeps its limit."""
    meta["annotations"][labels.REPLICAS] = str(pods)
    if run_time_limit_s:
        meta["annotations"][labels.RUN_TIME_LIMIT] = f"{run_time_limit_s}s"
    named = {"app.kubernetes.io/name": meta["name"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": named},
            "template": {"metadata": {"labels": named}, "spec": {**pod, "restartPolicy": "Always"}},
        },
    }


_NOT_THE_WORKS_FAULT: Json = {
    "action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}  # fmt: skip
"""Pods of a node that was lost or drained are made anew; only failures of its own end a Job."""


def _check(
    gpu_classes: Sequence[GpuClass], gpus_per_pod: int, pods_min: int, pods_max: int | None
) -> None:
    if not gpu_classes:
        raise ServiceError(
            "no_gpu_class", "No GPU class is chosen.", "Choose at least one.", field="gpu_classes"
        )
    if len({c.resource_name for c in gpu_classes}) > 1:
        raise ServiceError(
            "mixed_resources",
            "These GPU classes are different resources, and a Job asks for one.",
            "Choose classes of the same resource.",
            field="gpu_classes",
        )
    if gpus_per_pod < 1:
        raise ServiceError(
            "too_few_gpus", "A pod asks for at least one GPU.", "Raise it.", field="gpus_per_pod"
        )
    if pods_min < 1:
        raise ServiceError(
            "too_few_pods", "A Job has at least one pod.", "Raise it.", field="pods_min"
        )
    if pods_max is not None and pods_max < pods_min:
        raise ServiceError(
            "max_below_min",
            f"At most {pods_max} pods is fewer than at least {pods_min}.",
            "Raise the most or lower the least.",
            field="pods_max",
        )


def _notes(
    gpu_classes: Sequence[GpuClass], pods_min: int, pods: int, checkpoint_interval_s: int | None
) -> dict[str, str]:
    """What a Job has no field for, as annotations."""
    notes = {labels.GPU_CLASSES: ",".join(c.name for c in gpu_classes)}
    if pods > pods_min:
        notes[labels.MIN_MEMBERS] = str(pods_min)
    if checkpoint_interval_s:
        notes[labels.CHECKPOINT_INTERVAL] = f"{checkpoint_interval_s}s"
    return notes


def _suspended(pod: Json, pods: int, run_time_limit_s: int | None) -> Json:
    """The spec of a Job that runs ``pods`` copies of ``pod`` at once, when it is let go."""
    spec: Json = {
        "suspend": True,
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [_NOT_THE_WORKS_FAULT]},
        "template": {"spec": pod},
    }
    if run_time_limit_s:
        spec["activeDeadlineSeconds"] = run_time_limit_s
    return spec


def _pod(
    image: str,
    command: Sequence[str],
    resources: Json,
    env: Mapping[str, str],
    volumes: Mapping[str, str],
    secrets: Sequence[str],
) -> Json:
    container: Json = {"name": "main", "image": image, "resources": resources}
    if command:
        container["command"] = list(command)
    if env:
        container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    if secrets:
        container["envFrom"] = [{"secretRef": {"name": name}} for name in secrets]
    pod: Json = {"restartPolicy": "Never", "containers": [container]}
    if volumes:
        container["volumeMounts"] = [
            {"name": f"volume-{n}", "mountPath": path} for n, path in enumerate(volumes.values(), 1)
        ]
        pod["volumes"] = [
            {"name": f"volume-{n}", "persistentVolumeClaim": {"claimName": claim}}
            for n, claim in enumerate(volumes, 1)
        ]
    return pod


def _resources(resource_name: str, gpus: int, cpus: float, memory_gib: float) -> Json:
    """Requests equal limits: GPUs allow nothing else, and the pod keeps what it was planned with."""
    amounts: dict[str, str] = {resource_name: str(gpus)}
    if cpus:
        amounts["cpu"] = f"{round(cpus * 1000)}m"
    if memory_gib:
        amounts["memory"] = f"{round(memory_gib * 1024)}Mi"
    return {"requests": dict(amounts), "limits": dict(amounts)}


def asked_of(manifest: Mapping[str, Any]) -> Json | None:
    """What ``build_job_manifest`` would be given to make a Job like ``manifest``; None for another kind.

    What it cannot express is left out. Raises LookupError, TypeError or ValueError for one that cannot be
    read.
    """
    if manifest.get("kind") != "Job":
        return None
    meta, spec = manifest["metadata"], manifest["spec"]
    notes, said = meta.get("annotations") or {}, meta.get("labels") or {}
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    limits = container["resources"]["limits"]
    pods = int(spec.get("parallelism", 1))
    each = _amounts_of(limits)
    return {
        "name": meta["name"],
        "queue": labels.queue_of(said),
        "image": container["image"],
        "command": container.get("command") or [],
        "gpu_classes": [name for name in notes.get(labels.GPU_CLASSES, "").split(",") if name],
        "pods_min": int(notes.get(labels.MIN_MEMBERS, pods)),
        "pods_max": pods,
        **each,
        "priority_class": said.get(labels.PRIORITY_CLASS) or pod.get("priorityClassName", ""),
        "run_time_limit_s": spec.get("activeDeadlineSeconds"),
        "checkpoint_interval_s": _interval_s(notes.get(labels.CHECKPOINT_INTERVAL)),
        "env": {one["name"]: one["value"] for one in container.get("env") or []},
        "volumes": _volumes_of(pod, container),
        "secrets": [one["secretRef"]["name"] for one in container.get("envFrom") or []],
        "not_before": instant(notes.get(labels.NOT_BEFORE)),
        "after": [name for name in notes.get(labels.AFTER, "").split(",") if name],
        "topology": {key: notes[note] for key, note in labels.TOPOLOGY.items() if note in notes},
        "own_labels": {name: said[name] for name in said if name not in SAID_BY_FIELDS},
    }


def _volumes_of(pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, str]:
    """Claim -> where it is mounted."""
    paths = {one["name"]: one["mountPath"] for one in container.get("volumeMounts") or []}
    return {
        one["persistentVolumeClaim"]["claimName"]: paths[one["name"]]
        for one in pod.get("volumes") or []
    }


def _amounts_of(limits: Mapping[str, Any]) -> Json:
    """GPUs, CPUs and GiB of a pod with one container."""
    [gpus] = [int(limits[name]) for name in limits if name not in ("cpu", "memory")]
    return {
        "gpus_per_pod": gpus,
        "cpus_per_pod": milli(limits.get("cpu", 0)) / 1000,
        "memory_gib_per_pod": mib_below(limits.get("memory", 0)) / 1024,
    }


def _interval_s(text: str | None) -> int | None:
    seconds = duration_s(text) if text else None
    return round(seconds) if seconds else None
