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
from portal.reports.declared import Computed, Report, exported
from portal.reports.forms import FilterForm, form_of
from portal.reports.kinds import REPORTS
from portal.reports.saved import views_of
from portal.web.frame.shell import get_cluster
from portal.web.reports import pages
from portal.web.reports.fairness import fairness_page
from portal.web.reports.forecast import forecast_page
from portal.web.reports.fragmentation import fragmentation_page
from portal.web.reports.preemptions import preemptions_page
from portal.web.reports.saved import address_of
from portal.web.reports.showback import showback_page
from portal.web.reports.tables import tables_page
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
"""What the page of a report adds; one without shows its tables."""


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
        return _faulty(request, REPORTS[kind], form, place, wanted)
    filters = form.filters()
    computed = REPORTS[kind].compute(place, filters, user)
    if wanted == "csv":
        return table_of(request, computed, f"{place.name}-{kind}")
    if wanted == "json":
        return JsonResponse(computed.as_dict(), json_dumps_params={"indent": 1})
    context = pages.frame(kind, REPORTS.values(), form, place, filters)
    context["views"] = [(view.name, address_of(view)) for view in views_of(user, place)]
    return _page(request, REPORTS[kind], context, computed, place)


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - login_required guards every view
    return request.user


def _faulty(
    request: HttpRequest, declared: Report, form: FilterForm, cluster: Cluster, wanted: str
) -> HttpResponse:
    """The faults at their fields; what was typed stays."""
    if wanted in {"csv", "json"}:
        return JsonResponse({"errors": form.errors}, status=400)
    context = pages.frame(declared.name, REPORTS.values(), form, cluster, form.filters())
    return render(request, _template(declared), context | {"title": declared.title}, status=400)


def _template(declared: Report) -> str:
    return f"reports/{declared.name if declared.name in PAGES else 'tables'}.html"


def _page(
    request: HttpRequest,
    declared: Report,
    context: dict[str, Any],
    computed: Computed,
    cluster: Cluster,
) -> HttpResponse:
    context |= {"report": computed, "title": declared.title}
    show_all = "all" in request.GET
    if not computed.is_empty:
        context["finding"] = declared.finding(computed)
        if declared.name in PAGES:
            context |= PAGES[declared.name](computed, user=_person(request), show_all=show_all)
        else:
            context |= tables_page(
                computed, cluster=cluster.name, filters=context["filters"], show_all=show_all
            )
    return render(request, _template(declared), context)


def table_of(request: HttpRequest, computed: Tables, name: str) -> StreamingHttpResponse:
    """As CSV: the first table, or the one or the export that ``?table=`` names.

    Raises:
        Http404: the report has no table of that name.
    """
    tables = {table.name: table for table in computed.tables()}
    wanted = request.GET.get("table") or next(iter(tables))
    table = tables.get(wanted) or exported(computed, wanted)
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
