"""Saved views of reports that people want each Monday: a notice, and by mail for whoever is told by mail."""

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
from portal.reports.kinds import REPORTS
from portal.reports.letters import lines_of
from portal.reports.models import SavedView
from portal.reports.saved_views import filters_of
from scheduling.services.errors import ServiceError

STALE = timedelta(days=2)
"""A Monday that is so long gone is not told any more: the next one comes."""


def look() -> int:
    """Tell of every view that is due; how many. Each is told once a Monday, whatever is killed in between."""
    return sum(_tell(view, monday) for view, monday in _views_to_send(timezone.now()))


def _views_to_send(now: datetime) -> list[tuple[SavedView, date]]:
    views = SavedView.objects.filter(weekly=True, user__is_active=True)
    found = [
        (view, due_on(view, now)) for view in views.select_related("user", "cluster").order_by("pk")
    ]
    return [(view, monday) for view, monday in found if monday is not None]


def due_on(view: SavedView, now: datetime) -> date | None:
    """The Monday that ``view`` is to be told of now, from the hour of the person's digest on; None: none."""
    local = now.astimezone(zone(view.user.display_time_zone or view.cluster.display_time_zone))
    monday = local.date() - timedelta(days=local.weekday())
    begin = local.replace(hour=hours_of(view.user).digest_hour, minute=0, second=0, microsecond=0)
    begin -= timedelta(days=local.weekday())
    is_due = begin <= local < begin + STALE and view.told_on != monday
    return monday if is_due else None


def _tell(view: SavedView, monday: date) -> bool:
    """Whether it was told now: not where another process did so, or its person dropped it, while the report
    was computed, which takes too long to hold a lock for."""
    lines = _lines(view)
    page = reverse(f"reports:{view.kind}", args=[view.cluster.name])
    with transaction.atomic():
        still = SavedView.objects.filter(pk=view.pk, weekly=True, told_on=view.told_on)
        if not still.update(told_on=monday):
            return False
        tell(
            view.user, Kind.REPORT, view.cluster, source=f"view {view.pk} {monday}", about=view.name,
            title=f"{view.name}: {REPORTS[view.kind].title.lower()} of {view.cluster.name}",
            lines=lines, address=f"{page}?{view.query}",
        )  # fmt: skip
    return True


def _lines(view: SavedView) -> list[list[str]]:
    """As the person may have it now; what stands against it where they may no longer."""
    try:
        filters = filters_of(view.query, view.cluster, view.user)
        report = REPORTS[view.kind].compute(view.cluster, filters, view.user)
    except ServiceError as error:
        return [["Not made", str(error)]]
    except Http404:
        return [["Not made", "You have no queue in this cluster any more. Drop the view."]]
    return lines_of(view.kind, report, filters)
