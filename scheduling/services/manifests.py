"""The Job that a form describes: the same manifest ``kubectl apply`` would take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduling.models import GpuClass

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
    raise NotImplementedError
