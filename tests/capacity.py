"""A study that is done, with waits that are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduling.models import MILLI, Cluster, Result, Study, Variant
from scheduling.services.studies.capacity.ladder import way_of
from tests.factories import NOW

H100 = "h100-80gb"
MIN = 60.0
WAITS = {-1: 400, 0: 320, 1: 220, 2: 150, 3: 100}
"""Nodes more or fewer -> median P90 wait in minutes."""
SPREAD = (0.8, 0.9, 1.0, 1.1, 1.2)


def studied(
    cluster: Cluster,
    waits_min: Mapping[int, float] | None = None,
    *,
    gpu_class: str = H100,
    nodes: int = 16,
    spread: Sequence[float] = SPREAD,
    recorded_min: float = 300,
    workloads: int = 120,
    end: datetime = NOW - timedelta(hours=2),
    days: int = 30,
    step_gpus: int = 0,
    **fields: Any,
) -> Study:
    """Of nodes of 8 GPUs; each replay's wait is the median times its part of ``spread``."""
    waits, size = WAITS if waits_min is None else waits_min, 8 * MILLI
    curve = {
        "gpu_class": gpu_class, "installed": nodes * size, "node_gpus": size,
        "rungs": [[more, (nodes + more) * size] for more in waits],
        "recorded_p90_s": recorded_min * MIN, "workloads": workloads,
    }  # fmt: skip
    told = {"author": "admin", "cpu_s": 38.0, "state": "done", "progress": 100, "asked_at": NOW}
    study = Study.objects.create(
        cluster=cluster, kind="capacity", name="capacity", begin=end - timedelta(days=days), end=end,
        replays=len(spread), question={"step_gpus": step_gpus, "most_cpu_s": 1800},
        basis={"curves": [curve]}, **{**told, **fields},
    )  # fmt: skip
    for more, wait in waits.items():
        letter = way_of(gpu_class, more)
        variant = Variant.objects.create(study=study, letter=letter, name=letter, state=study.state)
        Result.objects.bulk_create(
            Result(
                variant=variant, seed=seed, done_at=NOW,
                figures={gpu_class: [0, wait * part * MIN, workloads]},
            )
            for seed, part in enumerate(spread, 1)
        )  # fmt: skip
    return study


def set_slo(cluster: Cluster, minutes: int | None, gpu_class: str = H100) -> None:
    row = cluster.gpu_classes.get(name=gpu_class)
    row.wait_slo_s = None if minutes is None else 60 * minutes
    row.save()
