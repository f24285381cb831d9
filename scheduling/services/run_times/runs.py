"""Workloads of the ledger as the learner knows them."""

from __future__ import annotations

from datetime import datetime

from scheduling.models import MILLI, Outcome, State, Workload
from scheduling.prediction.runs import Run, Work, image_of, stem_of

NEEDED = (
    "id", "cluster", "name", "namespace", "kind", "uid", "user", "image", "type", "gpus", "memory_mib",
    "min_members", "run_time_limit_s", "submitted_at", "admitted_at", "started_at", "finished_at", "state",
    "outcome", "gpu_classes", "eviction_count", "used_gpu_s", "lost_gpu_s", "members", "placement",
    "predicted_p50_s", "queue__path", "queue__parent__path", "gpu_class__name",
)  # fmt: skip
"""Columns that ``work_of`` and ``run_of`` read."""


def work_of(row: Workload, gpu_class: str = "") -> Work:
    """What is known of ``row`` before it runs, on ``gpu_class``, else on that it runs on or asks for."""
    queue = row.queue
    wished = row.gpu_classes[0] if row.gpu_classes else ""
    return Work(
        user=row.user,
        queue=queue.path if queue else "",
        team=queue.parent.path if queue and queue.parent else "",
        stem=stem_of(row.name),
        image=image_of(row.image),
        type=row.type,
        gpu_class=gpu_class or (row.gpu_class.name if row.gpu_class else wished),
        gpus=row.requested_gpus / MILLI,
        memory_gib=round(row.memory_mib * row.min_members / 1024, 1),
        limit_s=float(row.run_time_limit_s or 0),
        submitted=row.submitted_at.timestamp(),
    )


def run_of(row: Workload) -> Run | None:
    """The run of one that has finished; None where it never ran."""
    if row.started_at is None or row.finished_at is None:
        return None
    last_s = (row.finished_at - row.started_at).total_seconds()
    ran_s = last_s if not row.eviction_count else max(last_s, banked_s(row))
    censored = row.outcome != Outcome.SUCCEEDED
    return Run(work_of(row), max(1.0, ran_s), row.finished_at.timestamp(), censored)


def banked_s(row: Workload) -> float:
    """Seconds of run time that its runs before have left it: used and not lost, by its whole gang."""
    gpus = row.requested_gpus / MILLI
    return max(0.0, row.used_gpu_s - row.lost_gpu_s) / gpus if gpus else 0.0


def ran_s(row: Workload, now: datetime) -> float:
    """How far one that has not finished has come, in seconds of its run."""
    runs = row.state in (State.RUNNING, State.EVICTED) and row.started_at is not None
    current_s = (now - row.started_at).total_seconds() if runs and row.started_at else 0.0
    return banked_s(row) + max(0.0, current_s)


def kin_of(name: str) -> str:
    """What the names of the same work have in common: without the counters that tell submissions apart."""
    return stem_of(name)
