"""All of one's own work, and all the work one may see: the same table, the same filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from portal.display.filters import GROUPS, WorkloadFilter
from portal.selectors.workloads import rows
from portal.teams.access import visible_queues, visible_workloads
from portal.teams.reading import reader_of
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.sorting import PARAMETER, Sort, heads
from portal.web.workloads import sorting
from portal.web.workloads.export import csv_of
from portal.web.workloads.sorting import FINISHED
from scheduling.models import Cluster, Workload

PAGE = 50
TABS = (
    ("Active", "active"),
    ("Waiting", "waiting"),
    ("Running", "holding"),
    ("Finished", "finished"),
    ("All", "all"),
)
"""Label and what stands in the address; an address without a state means the first."""


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    query: str
    count: int
    current: bool


@page_view
def own_workloads(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    mine = visible_workloads(request.user).filter(user=request.user.get_username())
    return _table(request, found, mine, {"mine": True})


@page_view
def workloads(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    return _table(request, found, visible_workloads(request.user), {"mine": False})


def _table(
    request: PersonRequest,
    cluster: Cluster,
    seen: QuerySet[Workload],
    context: Mapping[str, Any],
) -> HttpResponse:
    """The page, its live fragment, or its CSV, by what was asked for."""
    seen = seen.filter(cluster=cluster)
    query = _with_state(request.GET)
    chosen = WorkloadFilter(query, queryset=seen, request=request, cluster=cluster.name)
    found = chosen.qs if chosen.is_valid() else seen.none()
    if request.GET.get("export") == "csv":
        return csv_of(found, f"{cluster.name}-workloads.csv", reader_of(request))
    state = str(query["state"])
    columns = sorting.columns(state, with_user=not context["mine"])
    by = Sort.of(request.GET.get(PARAMETER, ""), columns, sorting.default_sort(state))
    ordered = sorting.in_order(found, by, cluster.now())
    shown = ordered.select_related("cluster", "queue", "gpu_class", "priority_class")
    page = Paginator(shown, PAGE).get_page(request.GET.get("page"))
    fragment = bool(request.headers.get("X-Weir-Live"))
    template = "web/workloads/_table.html" if fragment else "web/workloads/list.html"
    return render(
        request,
        template,
        {
            **context,
            **_choices(request, cluster, fragment),
            **_addresses(request, page),
            "heads": heads(columns, by, request.GET),
            "cluster": cluster,
            "filter": chosen,
            "is_filtered": any(request.GET.get(name) for name in WorkloadFilter.base_filters),
            "page": page,
            "marking": state != FINISHED,
            "rows": rows(cluster, page.object_list, request.user),
            "tabs": _tabs(seen, query),
        },
    )


def _choices(request: PersonRequest, cluster: Cluster, fragment: bool) -> dict[str, Any]:
    """What the filter form offers; the fragment has no form."""
    if fragment:
        return {}
    queues = list(visible_queues(request.user).filter(cluster=cluster).order_by("path"))
    classes = list(cluster.gpu_classes.all())
    return {
        "queues": [queue for queue in queues if not queue.is_root],
        "classes": classes,
        "typed": request.GET,
        "unknown": [
            _Unknown(field, request.GET.get(name, ""), _without(request.GET, name))
            for field, name, known in (
                ("queue", "queue", {q.name for q in queues} | {q.path for q in queues}),
                ("GPU class", "gpu_class", {c.name for c in classes}),
            )
            if request.GET.get(name) and request.GET[name] not in known
        ],
    }


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A filter that names nothing the person may see, and the address without it."""

    field: str
    value: str
    without: str


def _without(query: QueryDict, name: str) -> str:
    rest = query.copy()
    rest.pop(name, None)
    rest.pop("page", None)
    return rest.urlencode()


def _with_state(typed: QueryDict) -> QueryDict:
    query = typed.copy()
    if not query.get("state"):
        query["state"] = TABS[0][1]
    return query


def _tabs(seen: QuerySet[Workload], query: QueryDict) -> list[Tab]:
    counts = dict(seen.order_by().values_list("state").annotate(Count("pk")))
    tabs = []
    for label, name in TABS:
        link = query.copy()
        link.pop("page", None)
        link["state"] = name
        count = sum(counts.get(state, 0) for state in GROUPS.get(name, (name,)))
        tabs.append(Tab(label, link.urlencode(), count, query.getlist("state") == [name]))
    return tabs


def _addresses(request: PersonRequest, page: Page[Workload]) -> dict[str, str]:
    """Links that keep what is filtered: to the neighbouring pages and the CSV."""

    def address(**changes: Any) -> str:
        query = request.GET.copy()
        query.pop("page", None)
        for key, value in changes.items():
            query[key] = str(value)
        return f"?{query.urlencode()}"

    return {
        "csv_url": address(export="csv"),
        "previous_url": address(page=page.previous_page_number()) if page.has_previous() else "",
        "next_url": address(page=page.next_page_number()) if page.has_next() else "",
    }
