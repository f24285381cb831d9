"""The Job that a form describes: the same manifest ``kubectl apply`` would take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduling.cluster import labels
from scheduling.models import GpuClass
from scheduling.services.errors import ServiceError

Json = dict[str, Any]


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
) -> Json:
    """A suspended batch/v1 Job for ``queue`` (a queue's name).

    ``gpu_classes`` are in order of preference and share one resource name; ``gpus_per_pod`` is whole
    GPUs; ``pods_max`` above ``pods_min`` makes it elastic. Raises ServiceError(field=…).
    """
    _check(gpu_classes, gpus_per_pod, pods_min, pods_max)
    pods = pods_max or pods_min
    resources = _resources(
        gpu_classes[0].resource_name, gpus_per_pod, cpus_per_pod, memory_gib_per_pod
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {labels.QUEUE: queue},
            "annotations": _notes(gpu_classes, pods_min, pods, checkpoint_interval_s),
        },
        "spec": _suspended(_pod(image, command, resources, priority_class), pods, run_time_limit_s),
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


def _pod(image: str, command: Sequence[str], resources: Json, priority_class: str) -> Json:
    container: Json = {"name": "main", "image": image, "resources": resources}
    if command:
        container["command"] = list(command)
    pod: Json = {"restartPolicy": "Never", "containers": [container]}
    if priority_class:
        pod["priorityClassName"] = priority_class
    return pod


def _resources(resource_name: str, gpus: int, cpus: float, memory_gib: float) -> Json:
    """Requests equal limits: GPUs allow nothing else, and the pod keeps what it was planned with."""
    amounts: dict[str, str] = {resource_name: str(gpus)}
    if cpus:
        amounts["cpu"] = f"{round(cpus * 1000)}m"
    if memory_gib:
        amounts["memory"] = f"{round(memory_gib * 1024)}Mi"
    return {"requests": dict(amounts), "limits": dict(amounts)}
