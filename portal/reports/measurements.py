"""What the chosen work really used, from its hours: samples can't tell, because they know no user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from django.db.models import Sum

from portal.display.periods import HOUR_S, Floats
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from portal.reports.usage import Usage
from scheduling.models import GpuUse

Sums = tuple[float, float]
"""GPU-hours that were measured, and that of them really used."""


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """By (queue, class), and by (class, hour since 1970)."""

    queues: Mapping[tuple[int, int], Sums] = field(default_factory=dict)
    hours: Mapping[tuple[int, int], Sums] = field(default_factory=dict)

    def of_class(self, gpu_class: int) -> Sums:
        found = [sums for (_, pk), sums in self.queues.items() if pk == gpu_class]
        return sum(m for m, _ in found), sum(u for _, u in found)

    def line(self, gpu_class: int, starts_s: Floats, allocated: Floats) -> Floats:
        """Used of ``allocated`` in each step, as in the hour that it begins in; NaN where nobody measured."""
        shares = [self._share(gpu_class, int(start // HOUR_S)) for start in starts_s.tolist()]
        return np.where(allocated == 0, 0.0, np.array(shares, dtype=np.float64) * allocated)

    def _share(self, gpu_class: int, hour: int) -> float:
        measured, used = self.hours.get((gpu_class, hour), (0.0, 0.0))
        return used / measured if measured else float("nan")


def read(scope: Scope, filters: ReportFilters, chosen: object) -> MeasuredUse:
    """Of workloads that fulfil the condition ``chosen``, in the hours that touch the range."""
    rows = (
        GpuUse.objects.filter(
            chosen,
            workload__queue__in=list(scope.leaves),
            gpu_class__in=list(scope.classes),
            start__gt=filters.start - timedelta(hours=1),
            start__lt=filters.end,
        )
        .order_by()
        .values_list("workload__queue_id", "gpu_class_id", "start")
        .annotate(measured=Sum("gpu_s"), used=Sum("active_gpu_s"))
    )
    queues: dict[tuple[int, int], Sums] = defaultdict(lambda: (0.0, 0.0))
    hours: dict[tuple[int, int], Sums] = defaultdict(lambda: (0.0, 0.0))
    for queue, pk, start, measured, used in rows:
        sums = (measured / HOUR_S, used / HOUR_S)
        _add(queues, (queue, pk), sums)
        _add(hours, (pk, int(start.timestamp() // HOUR_S)), sums)
    return MeasuredUse(queues, hours)


def _add(into: dict[tuple[int, int], Sums], key: tuple[int, int], sums: Sums) -> None:
    measured, used = into[key]
    into[key] = measured + sums[0], used + sums[1]


def within(usage: Usage, sums: Sums) -> Usage:
    """``usage`` with what was measured of it: no more than was held, at the same share."""
    measured, used = sums
    if not measured:
        return usage
    part = min(1.0, usage.known / measured)
    return Usage.of(
        installed=usage.installed, capacity=usage.capacity, known=usage.known,
        measured=measured * part, used=used * part,
    )  # fmt: skip
