"""The reports as pages, CSV and JSON: one address each, with every filter in it.

The page of a report that has no page of its own: its tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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
from django.urls import reverse

from portal.accounts.models import User
from portal.display.csv import Cell, Table, csv_lines
from portal.display.format import class_number
from portal.reports import words
from portal.reports.cells import as_text, head, is_number
from portal.reports.declaration import Report, ReportContent, exported
from portal.reports.figures import fragmentation as figures
from portal.reports.filters import ReportFilters
from portal.reports.forms import FilterForm, form_of
from portal.reports.fragmentation import SHOWN, FragmentationReport, lost_of
from portal.reports.kinds import REPORTS
from portal.reports.samples import known_since
from portal.reports.saved_views import views_of
from portal.web.frame.requests import page_view
from portal.web.frame.revision_cache import remembered
from portal.web.frame.shell import get_cluster
from portal.web.reports import pages
from portal.web.reports.fairness import fairness_page
from portal.web.reports.forecast import forecast_page
from portal.web.reports.preemptions import preemptions_page
from portal.web.reports.saved_views import address_of
from portal.web.reports.showback import showback_page
from portal.web.reports.use import use_page
from portal.web.reports.utilization import utilization_page
from scheduling.models import Cluster

LINES = 10
"""Of a table, until all are asked for."""
NARROWS = {"queue": "queue", "gpu_class": "class", "user": "user", "type": "type"}
"""Columns whose values a report can be narrowed to, and the filter."""
UID = "uid"
"""It is where the name of the workload leads."""


@dataclass(frozen=True, slots=True)
class ShownCell:
    head: str
    text: str
    is_number: bool
    link: str = ""


@dataclass(frozen=True)
class ShownTable:
    name: str
    title: str
    heads: tuple[ShownCell, ...]
    rows: tuple[tuple[ShownCell, ...], ...]
    more: int
    """Rows in all, where some are left out."""


def tables_page(
    report: ReportContent, *, cluster: str, filters: ReportFilters, show_all: bool
) -> dict[str, Any]:
    shown = [
        _table_on_page(table, cluster, filters, show_all) for table in report.tables() if table.rows
    ]
    return {"shown": shown}


def _table_on_page(
    table: Table, cluster: str, filters: ReportFilters, show_all: bool
) -> ShownTable:
    rows = table.rows if show_all else table.rows[:LINES]
    columns = list(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    numeric = {name for name, cells in columns if any(map(is_number, cells))}
    hidden = {UID, *(name for name, cells in columns if all(cell is None for cell in cells))}
    return ShownTable(
        table.name,
        table.title,
        tuple(ShownCell("", head(n), n in numeric) for n in table.columns if n not in hidden),
        tuple(
            _row(dict(zip(table.columns, row, strict=True)), numeric, hidden, cluster, filters)
            for row in rows
        ),
        len(table.rows) if len(rows) < len(table.rows) else 0,
    )


def _row(
    cells: dict[str, Cell],
    numeric: set[str],
    hidden: set[str],
    cluster: str,
    filters: ReportFilters,
) -> tuple[ShownCell, ...]:
    return tuple(
        ShownCell(
            head(name), as_text(cell, name, filters), name in numeric,
            _link(name, cell, cells, cluster, filters),
        )
        for name, cell in cells.items()
        if name not in hidden
    )  # fmt: skip


def _link(
    name: str, cell: Cell, cells: dict[str, Cell], cluster: str, filters: ReportFilters
) -> str:
    if name == "workload" and cells.get(UID):
        return reverse("web:workload", args=[cluster, cells[UID]])
    if name in NARROWS and cell:
        return f"?{filters.query(**{NARROWS[name]: str(cell).rpartition('/')[2]})}"
    return ""


def fragmentation_page(
    report: FragmentationReport, *, show_all: bool = False, **_: object
) -> dict[str, Any]:
    known = report.mean is not None
    return {
        "now_rows": [(row, class_number(row.gpu_class.position)) for row in report.now],
        "sums": {
            name: report.of_now(name) for name in ("free", "kept_back", "usable", "fragmented")
        },
        "figure": figures.by_period(report) if known else None,
        "day_rows": [
            (start, [line.means[i] for line in report.lines])
            for i, start in enumerate(report.periods.starts)
        ],
        "node_rows": report.nodes if show_all else report.nodes[:SHOWN],
        "orders": [(one, lost_of(one)) for one in report.orders],
    }


PAGES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "utilization": utilization_page,
    "use": use_page,
    "waits": pages.waits_page,
    "starts": pages.starts_page,
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


@page_view
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
    computed: ReportContent,
    cluster: Cluster,
) -> HttpResponse:
    context |= {"report": computed, "title": declared.title}
    if declared.compares and context["filters"].compare:
        since = remembered.lasting(cluster, "known since", lambda: known_since(cluster))
        context["not_compared"] = words.not_compared(context["filters"], since)
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
