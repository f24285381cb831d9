"""The person's last 30 days, by the reports themselves: the home and they can't differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.http import Http404

from portal.accounts.models import User
from portal.display.spread import Spread
from portal.display.units import gpus_each
from portal.reports.filters import ReportFilters
from portal.reports.utilization import utilization
from portal.reports.waits import waits
from portal.web.mine.now import own
from scheduling.models import Cluster, Eviction, GpuClass

PRESET = "30d"


@dataclass(frozen=True, slots=True)
class Month:
    start: datetime
    end: datetime
    gpu_hours: float
    cost: Decimal
    lost_gpu_hours: float
    evictions: int
    waits: Spread
    query: str
    """Of the same range and person, for the reports."""

    @property
    def gpu_s(self) -> float:
        return 3600 * self.gpu_hours

    @property
    def lost_gpu_s(self) -> float:
        return 3600 * self.lost_gpu_hours


def month(cluster: Cluster, user: User, classes: Iterable[GpuClass]) -> Month | None:
    """None where the person has no queue to report on."""
    filters = ReportFilters.last(
        PRESET,
        cluster.now(),
        user=user.get_username(),
        compare=False,
        zone=cluster.display_time_zone,
    )
    try:
        use, started = utilization(cluster, filters, user), waits(cluster, filters, user)
    except Http404:
        return None
    held = {row.name: row.usage.allocated for row in use.classes}
    acts = Eviction.objects.filter(
        workload__in=own(cluster, user), at__gte=filters.start, at__lt=filters.end
    )
    return Month(
        start=filters.start,
        end=filters.end,
        gpu_hours=use.total.allocated,
        cost=sum((_cost(c, held.get(c.name, 0.0)) for c in classes), Decimal(0)),
        lost_gpu_hours=use.total.lost,
        evictions=acts.count(),
        waits=started.total,
        query=filters.query(),
    )


def _cost(gpu_class: GpuClass, gpu_hours: float) -> Decimal:
    """Reports count GPUs; the price is that of one of the class, which may be a slice."""
    sold = gpu_hours / float(gpus_each(gpu_class))
    return (Decimal(str(round(sold, 6))) * gpu_class.price_per_gpu_hour).quantize(Decimal("0.01"))
