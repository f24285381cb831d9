"""Saved views of reports that people want each Monday: a notice, and by mail for who is told by mail."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.db import transaction
from django.http import Http404
from django.urls import reverse
from django.utils import timezone

from portal.display.format import zone
from portal.notices.models import Kind
from portal.notices.outbox import tell
from portal.notices.times import hours_of
from portal.reports.kinds import KINDS
from portal.reports.mailed import lines_of
from portal.reports.models import SavedView
from portal.reports.saved import filters_of
from scheduling.services.errors import ServiceError

STALE = timedelta(days=2)
"""A Monday that is so long gone is not told any more: the next one comes."""


def look() -> int:
    """Tell of every view that is due; how many. Each is told once a Monday, whatever is killed in between."""
    views = SavedView.objects.filter(weekly=True, user__is_active=True)
    return sum(_tell(pk) for pk in views.order_by("pk").values_list("pk", flat=True))


def due_on(view: SavedView, now: datetime) -> date | None:
    """The Monday that ``view`` is to be told of now, from the hour of the person's digest on; None: none."""
    local = now.astimezone(zone(view.user.display_time_zone or view.cluster.display_time_zone))
    monday = local.date() - timedelta(days=local.weekday())
    begin = local.replace(hour=hours_of(view.user).digest_hour, minute=0, second=0, microsecond=0)
    begin -= timedelta(days=local.weekday())
    is_due = begin <= local < begin + STALE and view.told_on != monday
    return monday if is_due else None


@transaction.atomic
def _tell(pk: int) -> bool:
    rows = SavedView.objects.select_for_update(of=("self",)).select_related("user", "cluster")
    view = rows.filter(pk=pk, weekly=True).first()
    monday = None if view is None else due_on(view, timezone.now())
    if view is None or monday is None:
        return False
    page = reverse(f"reports:{view.kind}", args=[view.cluster.name])
    tell(
        view.user, Kind.REPORT, view.cluster, source=f"view {view.pk} {monday}", about=view.name,
        title=f"{view.name}: {KINDS[view.kind].title.lower()} of {view.cluster.name}",
        lines=_lines(view), address=f"{page}?{view.query}",
    )  # fmt: skip
    SavedView.objects.filter(pk=view.pk).update(told_on=monday)
    return True


def _lines(view: SavedView) -> list[list[str]]:
    """As the person may have it now; what stands against it where they may no longer."""
    try:
        filters = filters_of(view.query, view.cluster, view.user)
        report = KINDS[view.kind].compute(view.cluster, filters, view.user)
    except ServiceError as error:
        return [["Not made", str(error)]]
    except Http404:
        return [["Not made", "You have no queue in this cluster any more. Drop the view."]]
    return lines_of(view.kind, report, filters)
