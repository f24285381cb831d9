"""Work that evictions threw away: GPU-seconds of whole GPUs, as reports count them."""

from __future__ import annotations

from django.db.models import Count, QuerySet, Sum

from portal.display.units import gpus_each, gpus_of
from scheduling.models import Eviction


def lost_in(evictions: QuerySet[Eviction]) -> tuple[int, float]:
    """How many, and GPU-seconds lost. One query."""
    rows = evictions.order_by().values_list("gpu_class__resource_name")
    found = list(rows.annotate(count=Count("pk"), lost=Sum("lost_gpu_s")))
    count = sum(count for _, count, _ in found)
    return count, sum((lost or 0.0) * float(gpus_of(name or "")) for name, _, lost in found)


def lost_by(eviction: Eviction) -> float:
    """GPU-seconds of one, read with its class."""
    each = gpus_each(eviction.gpu_class) if eviction.gpu_class else 1
    return eviction.lost_gpu_s * float(each)
