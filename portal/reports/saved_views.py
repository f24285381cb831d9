"""Views of reports that a person keeps: a report with its filters, under a name."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, QueryDict

from portal.accounts.models import User
from portal.boundary.reading import readable
from portal.reports.filters import ReportFilters
from portal.reports.forms import form_of
from portal.reports.kinds import REPORTS
from portal.reports.models import SavedView
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError

MOST = 50
"""Of one person in a cluster."""


def views_of(user: User, cluster: Cluster) -> QuerySet[SavedView]:
    return SavedView.objects.filter(user=user, cluster=cluster)


@transaction.atomic
def save_view(
    *, user: User, cluster: Cluster, name: str, kind: str, query: str, weekly: bool
) -> SavedView:
    """Keep a view under ``name``; one of that name becomes this one.

    Raises ServiceError at the field at fault, Http404 for whoever has no report in the cluster.
    """
    name = _valid_name(name)
    if kind not in REPORTS:
        raise ServiceError(
            "no_report", f"There is no report {kind}.", "Open one first.", field="kind"
        )
    filters = filters_of(query, cluster, user)
    # The person's row is the lock: two savings at once must not pass the bound together.
    User.objects.select_for_update().get(pk=user.pk)
    others = views_of(user, cluster).exclude(name=name)
    if others.count() >= MOST:
        raise ServiceError(
            "too_many",
            f"You keep {MOST} views already.",
            "Drop one that you no longer open.",
            field="name",
        )
    found, _ = SavedView.objects.update_or_create(
        user=user, cluster=cluster, name=name,
        defaults={"kind": kind, "query": filters.query(), "weekly": weekly},
    )  # fmt: skip
    return found


def _valid_name(name: str) -> str:
    name = " ".join(name.split())
    most = SavedView._meta.get_field("name").max_length or 0
    if not name or len(name) > most:
        raise ServiceError(
            "bad_name",
            f"A view needs a name of at most {most} characters.",
            "Write one.",
            field="name",
        )
    try:
        readable(name)
    except ValidationError as error:
        raise ServiceError("bad_name", error.messages[0], "Write it anew.", field="name") from None
    return name


def filters_of(query: str, cluster: Cluster, user: User) -> ReportFilters:
    """What ``query`` asks for, as ``user`` may have it now. Raises as ``save_view``."""
    form = form_of(cluster, user, QueryDict(query))
    if not form.is_valid():
        field, messages = next(iter(form.errors.items()))
        raise ServiceError(
            "bad_filters", f"Its filter {field} no longer holds: {messages[0]}", "Choose it anew.",
            field="query",
        )  # fmt: skip
    return form.filters()


def view_of(user: User, cluster: Cluster, pk: int) -> SavedView:
    """Raises Http404: there is none of theirs."""
    found = views_of(user, cluster).filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def set_weekly(view: SavedView, *, weekly: bool) -> None:
    SavedView.objects.filter(pk=view.pk).update(weekly=weekly)
