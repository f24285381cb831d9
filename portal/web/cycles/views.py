"""A cycle's page: what was decided and why, who else could have left, and the same plan on a laptop."""

from __future__ import annotations

import json

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.teams.reading import reader_of
from portal.web.cycles.around import Around
from portal.web.cycles.figures import Pass
from portal.web.cycles.finding import finding
from portal.web.cycles.leavers import searches
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, attached, page_view
from portal.web.frame.revision_cache import remembered
from portal.web.frame.shell import get_cluster
from scheduling.models import Action, Cycle, CycleRecord
from scheduling.services.cycle.record.records import unpacked
from scheduling.services.explain.asking import name_in_plan
from scheduling.services.explain.documents import searches_of

TRIGGERS = {"timer": "its timer", "event": "a change on the cluster"}
"""What woke a cycle, in words."""
TAKING = (Action.EVICT, Action.SHRINK, Action.MOVE)


def _found(request: PersonRequest, cluster: str, number: int) -> Cycle:
    return get_object_or_404(_cycles(request, cluster), number=number)


def _cycles(request: PersonRequest, cluster: str) -> QuerySet[Cycle]:
    found = get_cluster(request, cluster)
    return Cycle.objects.filter(cluster=found).select_related("cluster").order_by("number")


@page_view
def cycle(request: PersonRequest, cluster: str, number: int) -> HttpResponse:
    cycles = _cycles(request, cluster)
    shown = cycles.filter(number=number).first()
    if shown is None:
        return _unchanged(request, cycles, number)
    seen = Pass(shown, request.user)
    record = seen.record
    context = {
        "cycle": shown,
        "seen": seen,
        "page": page_of(request, seen.acts),
        "finding": finding(seen, reader_of(request)),
        "record": record,
        "around": Around.of(record, request.user) if record else None,
        "woken_by": TRIGGERS.get(shown.trigger, shown.trigger),
        "may_plan_again": sees_all(request, shown),
        "first": next((name_in_plan(line.decision.workload) for line in seen.acts), ""),
        "took_from": any(line.decision.action in TAKING for line in seen.acts) or shown.evicted,
        "snapshot_bytes": len(record.snapshot) if record and record.snapshot else 0,
    }
    return render(request, "web/cycles/cycle.html", context)


def _unchanged(request: PersonRequest, cycles: QuerySet[Cycle], number: int) -> HttpResponse:
    """The row of a cycle that changed nothing is the next one's; one that is to come is absent."""
    later = cycles.filter(number__gt=number).first()
    if later is None or number < 1:
        raise Http404
    earlier = cycles.filter(number__lt=number).last()
    context = {"number": number, "earlier": earlier, "later": later}
    return render(request, "web/cycles/unchanged.html", context)


@page_view
def candidates(request: PersonRequest, cluster: str, number: int) -> HttpResponse:
    """Planned again for each who stayed, once for all readers: asked for on its own, so that the page does
    not wait for it."""
    shown = _found(request, cluster, number)
    document = _document(shown)
    every = remembered.lasting(
        shown.cluster, ("left", number), lambda: searches_of(document) if document else []
    )
    found = searches(every, shown.cluster, reader_of(request))
    context = {"cycle": shown, "searches": found, "is_kept": document is not None}
    page = "_candidates.html" if request.htmx else "candidates.html"
    return render(request, f"web/cycles/{page}", context)


@page_view
def snapshot(request: PersonRequest, cluster: str, number: int) -> HttpResponse:
    """The file to plan again, for whoever sees all the work that it names."""
    shown = _found(request, cluster, number)
    document = _document(shown) if sees_all(request, shown) else None
    if document is None:
        raise Http404
    return attached(json.dumps(document, indent=1), f"cycle-{number}.json", "application/json")


def sees_all(request: PersonRequest, cycle: Cycle) -> bool:
    return reader_of(request).sees_work(cycle.cluster_id, "")


def _document(cycle: Cycle) -> dict[str, object] | None:
    record = CycleRecord.objects.filter(cycle=cycle).first()
    return unpacked(record) if record else None
