"""The reports as pages, CSV and JSON: one address each, with every filter in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from django.contrib.auth.decorators import login_required
from django.core.handlers.asgi import ASGIRequest
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts.models import User
from portal.display.csv import Table, csv_lines
from portal.display.format import zone
from portal.reports.fairness import fairness
from portal.reports.filters import ReportFilters
from portal.reports.forms import FilterForm
from portal.reports.longest import longest
from portal.reports.preemptions import preemptions
from portal.reports.scope import reportable_queues
from portal.reports.showback import showback
from portal.reports.use import use
from portal.reports.utilization import utilization
from portal.reports.waits import waits
from portal.web.frame.shell import get_cluster
from portal.web.reports import pages
from portal.web.reports.fairness import fairness_page
from portal.web.reports.preemptions import preemptions_page
from portal.web.reports.showback import showback_page
from portal.web.reports.use import use_page
from portal.web.reports.utilization import utilization_page
from scheduling.models import Cluster, Queue


class Report(Protocol):
    @property
    def is_empty(self) -> bool: ...
    def tables(self) -> tuple[Table, ...]: ...
    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Kind:
    """One report: how it is computed, and what its page adds."""

    name: str
    title: str
    compute: Callable[[Cluster, ReportFilters, User], Any]
    page: Callable[..., dict[str, Any]]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("utilization", "Utilization", utilization, utilization_page),
        Kind("use", "Real use", use, use_page),
        Kind("waits", "Queue waits", waits, pages.waits_page),
        Kind("longest", "Longest waits", longest, pages.longest_page),
        Kind("preemptions", "Preemptions", preemptions, preemptions_page),
        Kind("fairness", "Fairness", fairness, fairness_page),
        Kind("showback", "Showback", showback, showback_page),
    )
}


@login_required
@require_safe
def report(request: HttpRequest, cluster: str, kind: str, suffix: str = "") -> HttpResponseBase:
    """``suffix`` or ``?format=``: empty for the page, csv (of one ``table``), or json."""
    user = _person(request)
    place = get_cluster(request, cluster)
    queues = reportable_queues(place, user)
    form = _form(request, place, queues)
    wanted = suffix or request.GET.get("format", "")
    if not form.is_valid():
        return _faulty(request, KINDS[kind], form, place, wanted)
    filters = form.filters()
    computed = KINDS[kind].compute(place, filters, user)
    if wanted == "csv":
        return _csv(request, computed, f"{place.name}-{kind}")
    if wanted == "json":
        return JsonResponse(computed.as_dict(), json_dumps_params={"indent": 1})
    context = pages.frame(kind, KINDS.values(), form, place, filters)
    return _page(request, KINDS[kind], context, computed)


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - login_required guards every view
    return request.user


def _form(request: HttpRequest, cluster: Cluster, queues: dict[int, Queue]) -> FilterForm:
    own_zone = _person(request).display_time_zone or cluster.display_time_zone
    return FilterForm(
        request.GET,
        queues=queues.values(),
        classes=cluster.gpu_classes.values_list("name", flat=True),
        now=cluster.now(),
        zone=zone(own_zone).key,
    )


def _faulty(
    request: HttpRequest, kind: Kind, form: FilterForm, cluster: Cluster, wanted: str
) -> HttpResponse:
    """The faults at their fields; what was typed stays."""
    if wanted in {"csv", "json"}:
        return JsonResponse({"errors": form.errors}, status=400)
    context = pages.frame(kind.name, KINDS.values(), form, cluster, form.filters())
    return render(request, f"reports/{kind.name}.html", context, status=400)


def _page(
    request: HttpRequest, kind: Kind, context: dict[str, Any], computed: Report
) -> HttpResponse:
    context["report"] = computed
    if not computed.is_empty:
        context |= kind.page(computed, user=_person(request), show_all="all" in request.GET)
    return render(request, f"reports/{kind.name}.html", context)


def _csv(request: HttpRequest, computed: Report, name: str) -> StreamingHttpResponse:
    """The first table, or the one that ``?table=`` names.

    Raises:
        Http404: the report has no table of that name.
    """
    tables = {table.name: table for table in computed.tables()}
    table = tables.get(request.GET.get("table") or next(iter(tables)))
    if table is None:
        raise Http404
    lines = csv_lines(table)
    # Each server streams only the kind of iterator that is its own.
    content = _awaited(lines) if isinstance(request, ASGIRequest) else lines
    response = StreamingHttpResponse(content, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}-{table.name}.csv"'
    return response


async def _awaited(lines: Iterator[str]) -> AsyncIterator[str]:
    for line in lines:
        yield line
