"""The person's last 30 days, by the reports themselves: the home and they can't differ."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.http import Http404

from portal.accounts.models import User
from portal.display.spread import Spread
from portal.reports.filters import ReportFilters
from portal.reports.prices import stretches
from portal.reports.scope import Scope, report_scope
from portal.reports.showback import costs_of_users
from portal.reports.waits import spread_of_waits
from portal.reports.worked import worked
from scheduling.models import Cluster
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


def month(cluster: Cluster, user: User) -> Month | None:
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
    total = Work()
    for work in worked(scope, filters, filters.start, filters.end).values():
        total.add(work)
    return Month(
        start=filters.start,
        end=filters.end,
        gpu_hours=total.held_gpu_s / 3600,
        cost=_cost(scope, filters),
        lost_gpu_hours=total.lost_gpu_s / 3600,
        evictions=total.evictions,
        waits=spread_of_waits(scope, filters),
        query=filters.query(),
    )


def _cost(scope: Scope, filters: ReportFilters) -> Decimal:
    """As showback charges it."""
    charged = costs_of_users(scope, filters, stretches(scope, filters.start, filters.end))
    return Decimal(str(round(sum(one.cost for one in charged), 6))).quantize(Decimal("0.01"))
