"""All of one's own work, and all the work one may see: the same table, the same filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.db.models import Case, Count, F, QuerySet, Value, When
from django.db.models.functions import Coalesce, NullIf
from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from portal.display.csv import Table
from portal.display.filters import GROUPS, HOLDING, WorkloadFilter
from portal.selectors.costs import hours_of
from portal.selectors.workloads import rows
from portal.teams.access import visible_queues, visible_workloads
from portal.teams.reading import reader_of
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, attached_csv, page_view
from portal.web.frame.shell import get_cluster
from portal.web.sorting import PARAMETER, Sort, heads
from portal.web.workloads import paging, sorting
from portal.web.workloads.sorting import FINISHED
from scheduling.models import MILLI, Cluster, Workload
from scheduling.services.words.sentences import Reader, Sentence, tell

GPUS = 1.0 / MILLI
HOURS = 1.0 / 3600
COLUMNS: dict[str, Any] = {
    "uid": F("uid"),
    "name": F("name"),
    "namespace": F("namespace"),
    "queue": Coalesce(NullIf(F("queue__path"), Value("")), F("queue_label")),
    "user": F("user"),
    "priority_class": F("priority_class__name"),
    "type": F("type"),
    "state": F("state"),
    "outcome": F("outcome"),
    "held": Case(When(held=True, then=Value("held")), default=Value("")),
    "position": Case(When(held=False, then=F("position"))),
    "reason": F("reason"),
    "sentence": F("sentence"),
    "gpus_requested": F("gpus") * F("min_members") * GPUS,
    "gpus_allocated": Case(
        When(state__in=HOLDING, then=F("gpus") * F("members") * GPUS), default=Value(0.0)
    ),
    "gpu_class": F("gpu_class__name"),
    "submitted_at": F("submitted_at"),
    "started_at": F("started_at"),
    "finished_at": F("finished_at"),
    "evictions": F("eviction_count"),
    "gpu_hours_held": F("pk"),
    "gpu_hours_lost": F("lost_gpu_s") * HOURS,
}


PLACE, SENTENCE, HELD = (
    list(COLUMNS).index(name) for name in ("queue", "sentence", "gpu_hours_held")
)
KEPT = ("cluster_id", "queue__path", "user", "reason", "sentence", "sealed", "numbers")
"""What a sentence is judged by, in the order of ``Said``; the label comes after it."""


def csv_of(workloads: QuerySet[Workload], name: str, reader: Reader) -> HttpResponse:
    """All of ``workloads`` as a download for ``reader``, in the order of their submission."""
    rows = list(_rows(workloads, reader, hours_of(workloads)))
    return attached_csv(Table("workloads", "Workloads", tuple(COLUMNS), rows), name)


def _rows(
    workloads: QuerySet[Workload], reader: Reader, usage: Mapping[int, float]
) -> Iterator[tuple[Any, ...]]:
    """Plain values: a hundred thousand model objects would cost seconds."""
    named = {f"csv_{name}": value for name, value in COLUMNS.items()}
    ordered = workloads.order_by("submitted_at", "id").annotate(**named)
    for row in ordered.values_list(*named, *KEPT, "queue_label").iterator(chunk_size=5000):
        shown, (*words, label) = list(row[: len(COLUMNS)]), row[len(COLUMNS) :]
        said = Sentence(*words)
        shown[SENTENCE] = tell(said, reader).sentence
        shown[HELD] = usage.get(shown[HELD], 0.0)
        if said.queue is not None and not reader.sees_queue(said.cluster_id, said.queue):
            shown[PLACE] = label
        yield tuple(shown)


NARROWING = sorted(set(WorkloadFilter.base_filters) - {"state", "ordering"})
"""Filters that leave out some of a state."""
TABS = (
    ("Active", "active"),
    ("Waiting", "waiting"),
    ("Running", "holding"),
    ("Finished", "finished"),
    ("All", "all"),
)
"""Label and what stands in the address; an address without a state means the first."""


@dataclass(frozen=True, slots=True)
class ListTab:
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
    request: PersonRequest, cluster: Cluster, seen: QuerySet[Workload], context: Mapping[str, Any]
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
    counts = _counts(seen)
    is_narrowed = not chosen.is_valid() or any(map(request.GET.get, NARROWING))
    of_found = _counts(found) if is_narrowed else _of_states(counts, query.getlist("state"))
    shown = paging.paged(found, by, of_found, cluster.now())
    page: Page[Workload] = page_of(request, shown)
    fragment = bool(request.headers.get("X-Weir-Live"))
    template = "web/workloads/_table.html" if fragment else "web/workloads/list.html"
    return render(
        request,
        template,
        {
            **context,
            **_choices(request, cluster, fragment),
            "heads": heads(columns, by, request.GET),
            "cluster": cluster,
            "filter": chosen,
            "is_filtered": any(map(request.GET.get, WorkloadFilter.base_filters)),
            "page": page,
            "marking": state != FINISHED,
            "rows": rows(cluster, page.object_list, request.user),
            "tabs": _tabs(counts, query),
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


def _counts(workloads: QuerySet[Workload]) -> dict[str, int]:
    """By state."""
    return dict(workloads.order_by().values_list("state").annotate(Count("pk")))


def _of_states(counts: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    """Of ``counts`` those of states, or of groups of them."""
    states = {state for name in names for state in GROUPS.get(name, (name,))}
    return {state: count for state, count in counts.items() if state in states}


def _tabs(counts: Mapping[str, int], query: QueryDict) -> list[ListTab]:
    tabs = []
    for label, name in TABS:
        link = query.copy()
        link.pop("page", None)
        link["state"] = name
        count = sum(counts.get(state, 0) for state in GROUPS.get(name, (name,)))
        tabs.append(ListTab(label, link.urlencode(), count, query.getlist("state") == [name]))
    return tabs
