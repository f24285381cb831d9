"""Which GPU class a figure shows before its reader chooses one."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Case, QuerySet, When

from scheduling.models import GpuClass, Workload
from scheduling.models.workloads import HOLDING, WAITING


def class_waited_for(work: QuerySet[Workload], classes: Sequence[GpuClass]) -> GpuClass | None:
    """The one that the newest of ``work`` that waits is to run on, else that what runs holds; None where
    nothing does either. One query.
    """
    live = work.filter(state__in=(*WAITING, *HOLDING))
    waits_first = Case(When(state__in=WAITING, then=0), default=1)
    row = live.order_by(waits_first, "-submitted_at").values("gpu_class", "gpu_classes").first()
    if row is None:
        return None
    return class_wished(row["gpu_class"], row["gpu_classes"], classes)


def class_wished(
    gpu_class: int | None, names: Sequence[str], classes: Sequence[GpuClass]
) -> GpuClass | None:
    """The one that a workload holds, by id, or wishes first, by name."""
    wished = list(names[:1])
    return next((one for one in classes if one.pk == gpu_class or [one.name] == wished), None)
