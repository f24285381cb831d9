"""What a workload held, class by class, as its steps say: the one ledger that is charged by."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from django.db.models.functions import Coalesce

from scheduling.models import MILLI, Transition, Workload

OF_STEP: Final = Coalesce("gpu_class_id", "workload__gpu_class_id")
"""The class by which a transition's GPUs count."""


def by_class(work: Workload, steps: Iterable[Transition], now: datetime) -> dict[int, float]:
    """GPU-seconds that ``work`` held up to ``now``, by class id; ``steps`` are all of its. Where those are
    kept no more, all of it counts for the class that it held last."""
    ordered = sorted(steps, key=lambda step: (step.at, step.pk or 0))
    ends = [*(step.at for step in ordered[1:]), work.finished_at or now]
    found: dict[int, float] = {}
    for step, end in zip(ordered, ends, strict=False):
        pk = step.gpu_class_id or work.gpu_class_id
        if step.gpus and pk is not None:
            held_s = max(0.0, (min(end, now) - step.at).total_seconds())
            found[pk] = found.get(pk, 0.0) + step.gpus / MILLI * held_s
    if found or work.gpu_class_id is None:
        return found
    return {work.gpu_class_id: work.held_gpu_s(now)}
