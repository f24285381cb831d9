"""The person's last 30 days, by the reports themselves: the home and they can't differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.http import Http404

from portal.accounts.models import User
from portal.display.spread import Spread
from portal.display.units import gpus_each
from portal.reports.filters import ReportFilters
from portal.reports.scope import report_scope
from portal.reports.waits import spread_of_waits
from portal.reports.worked import worked
from scheduling.models import Cluster, GpuClass
from scheduling.services.ledger.workdays import Work

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
        scope = report_scope(cluster, filters, user)
    except Http404:
        return None
    total, held = Work(), defaultdict[int, float](float)
    for kin, work in worked(scope, filters, filters.start, filters.end).items():
        total.add(work)
        held[kin.gpu_class] += work.held_gpu_s / 3600
    return Month(
        start=filters.start,
        end=filters.end,
        gpu_hours=total.held_gpu_s / 3600,
        cost=sum((_cost(c, held[c.pk]) for c in classes), Decimal(0)),
        lost_gpu_hours=total.lost_gpu_s / 3600,
        evictions=total.evictions,
        waits=spread_of_waits(scope, filters),
        query=filters.query(),
    )


def _cost(gpu_class: GpuClass, gpu_hours: float) -> Decimal:
    """Reports count GPUs; the price is that of one of the class, which may be a slice."""
    sold = gpu_hours / float(gpus_each(gpu_class))
    return (Decimal(str(round(sold, 6))) * gpu_class.price_per_gpu_hour).quantize(Decimal("0.01"))
