"""My work: where a researcher lands. Own work first, then own queues, the organisation as one line.

The person's last 30 days, by the reports themselves: the home and they can't differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Max
from django.http import Http404, HttpResponse
from django.shortcuts import render

from portal.accounts.models import User
from portal.display.spread import Spread, share
from portal.reports.filters import ReportFilters
from portal.reports.prices import stretches
from portal.reports.scope import Scope, classes_of, report_scope
from portal.reports.showback import costs_of_users
from portal.reports.waits import spread_of_waits
from portal.reports.work import worked
from portal.selectors.default_class import class_wished
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.mine.active import Active, active_of, own
from portal.web.mine.again import again, ahead
from portal.web.mine.endings import EndedWork, ended
from portal.web.mine.now import Now, now_and_next
from portal.web.mine.queues import own_share, teams_of
from portal.web.overview.views import chosen_class
from scheduling.models import Cluster, GpuClass
from scheduling.services.ledger.singles import Work

PRESET = "30d"


@dataclass(frozen=True, slots=True)
class Month:
    start: datetime
    end: datetime
    gpu_hours: float
    cost: Decimal
    used_share: float | None
    """Really used of what was measured; None where nobody measured."""
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
        used_share=share(total.active_gpu_s, total.measured_gpu_s),
        lost_gpu_hours=total.lost_gpu_s / 3600,
        evictions=total.evictions,
        waits=spread_of_waits(scope, filters),
        query=filters.query(),
    )


def _cost(scope: Scope, filters: ReportFilters) -> Decimal:
    """As showback charges it."""
    charged = costs_of_users(scope, filters, stretches(scope, filters.start, filters.end))
    return Decimal(str(round(sum(one.cost for one in charged), 6))).quantize(Decimal("0.01"))


MONTH, AGAIN = "month", "again"
"""Parts of the page that are asked for once it stands."""


@page_view
def my_work(request: PersonRequest, cluster: str) -> HttpResponse:
    found, user = get_cluster(request, cluster), request.user
    if request.GET.get("part") == MONTH:
        # Weeks of rows: the page loads them once it stands.
        shown = {"cluster": found, "month": month(found, user)}
        return render(request, "web/mine/_month.html", shown)
    if request.GET.get("part") == AGAIN:
        return render(request, "web/mine/_again_ahead.html", ahead(request, found))
    classes = list(classes_of(found).values())
    chosen = chosen_class(request, classes) if "class" in request.GET else None
    active = active_of(found, user)
    chosen = chosen or _usual_class(found, user, active, classes)
    now, past = now_and_next(found, user, active), ended(found, user)
    context = {
        "cluster": found,
        "now": now,
        "ticks": now.axis.ticks(user.display_time_zone or found.display_time_zone),
        "ended": past,
        "marking": True,
        "needing": _needing(now, past),
        "again": again(found, user),
        "classes": classes,
        "chosen": chosen,
        "own": own_share(found, user, active, chosen) if chosen else None,
        "teams": teams_of(user, found),
    }
    return render(request, "web/mine/home.html", context)


def _needing(now: Now, past: EndedWork) -> int:
    """What waits for the person: it failed, or it can't start as it is."""
    return len(past.failed) + sum(line.needs_owner for line in now.lines)


def _usual_class(
    cluster: Cluster, user: User, active: Sequence[Active], classes: Sequence[GpuClass]
) -> GpuClass | None:
    """The class the person waits for, else holds, else used last, else the first."""
    newest = max(active, key=lambda one: (one.is_waiting, one.submitted_at), default=None)
    if newest and (found := class_wished(newest.gpu_class_id, newest.gpu_classes, classes)):
        return found
    # Not the newest workload: a database finds it by walking everybody's, and whoever has none waits for all.
    mine = own(cluster, user).exclude(gpu_class=None).order_by().values_list("gpu_class")
    last = mine.annotate(last=Max("submitted_at")).order_by("-last").first()
    used = last[0] if last else None
    return next((c for c in classes if c.pk == used), next(iter(classes), None))
