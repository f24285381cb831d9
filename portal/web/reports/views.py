"""The reports as pages, CSV and JSON: one address each, with every filter in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
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
from portal.reports.forms import FilterForm, form_of
from portal.reports.kinds import KINDS, Kind, Report
from portal.reports.saved import views_of
from portal.web.frame.shell import get_cluster
from portal.web.reports import pages
from portal.web.reports.fairness import fairness_page
from portal.web.reports.forecast import forecast_page
from portal.web.reports.fragmentation import fragmentation_page
from portal.web.reports.preemptions import preemptions_page
from portal.web.reports.saved import address_of
from portal.web.reports.showback import showback_page
from portal.web.reports.use import use_page
from portal.web.reports.utilization import utilization_page
from scheduling.models import Cluster

PAGES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "utilization": utilization_page,
    "use": use_page,
    "waits": pages.waits_page,
    "longest": pages.longest_page,
    "preemptions": preemptions_page,
    "fairness": fairness_page,
    "fragmentation": fragmentation_page,
    "showback": showback_page,
    "forecast": forecast_page,
}
"""What the page of each kind of report adds."""


class Tables(Protocol):
    def tables(self) -> tuple[Table, ...]: ...


@login_required
@require_safe
def report(request: HttpRequest, cluster: str, kind: str, suffix: str = "") -> HttpResponseBase:
    """``suffix`` or ``?format=``: empty for the page, csv (of one ``table``), or json."""
    user = _person(request)
    place = get_cluster(request, cluster)
    form = form_of(place, user, request.GET)
    wanted = suffix or request.GET.get("format", "")
    if not form.is_valid():
        return _faulty(request, KINDS[kind], form, place, wanted)
    filters = form.filters()
    computed = KINDS[kind].compute(place, filters, user)
    if wanted == "csv":
        return table_of(request, computed, f"{place.name}-{kind}")
    if wanted == "json":
        return JsonResponse(computed.as_dict(), json_dumps_params={"indent": 1})
    context = pages.frame(kind, KINDS.values(), form, place, filters)
    context["views"] = [(view.name, address_of(view)) for view in views_of(user, place)]
    return _page(request, KINDS[kind], context, computed)


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - login_required guards every view
    return request.user


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
        context["finding"] = kind.finding(computed)
        context |= PAGES[kind.name](computed, user=_person(request), show_all="all" in request.GET)
    return render(request, f"reports/{kind.name}.html", context)


def table_of(request: HttpRequest, computed: Tables, name: str) -> StreamingHttpResponse:
    """As CSV: the first table, or the one that ``?table=`` names.

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
