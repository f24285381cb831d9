"""What changed the quotas of a subtree: the list, one change with what came of it, its revert."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.accounts.models import User
from portal.accounts.views import person
from portal.approvals import edits
from portal.teams.access import dividable_queues
from portal.web.frame.requests import form_view, page_view
from portal.web.frame.shell import get_cluster
from portal.web.quotas.came import outcomes
from portal.web.quotas.changes import backwards, entries, entry
from portal.web.quotas.place import crumbs, get_queue
from portal.web.quotas.preview import lowered, planned, told, with_grace
from scheduling.models import Queue, QuotaChange
from scheduling.services.errors import ServiceError
from scheduling.services.quotas.save import cells_back, grid, history


@page_view
def changes(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    """Everything that changed the subtree's quotas."""
    found = get_cluster(request, cluster)
    top = get_queue(request, found, queue)
    listed, count = entries(top, person(request), found.now())
    context = {
        "queue": top,
        "crumbs": crumbs(request, top),
        "changes": listed,
        "change_count": count,
    }
    return render(request, "web/quotas/changes.html", context)


@page_view
def change(request: HttpRequest, cluster: str, queue: str, pk: int) -> HttpResponse:
    """One change: what was expected of it, and what came."""
    found = get_cluster(request, cluster)
    top = get_queue(request, found, queue)
    saved = get_object_or_404(history(top).select_related("cluster"), pk=pk)
    shown = entry(saved, top, person(request), found.now())
    if shown is None:
        raise Http404
    context = {
        "queue": top,
        "crumbs": crumbs(request, top),
        "entry": shown,
        "outcomes": outcomes(person(request), saved, found.now()),
    }
    return render(request, "web/quotas/change.html", context)


@form_view
def revert(request: HttpRequest, cluster: str, queue: str, pk: int) -> HttpResponse:
    """Say what a revert would do, then, by POST, do it."""
    found = get_cluster(request, cluster)
    top = get_queue(request, found, queue)
    saved = _revertible(request.user, top, pk)
    fault: ServiceError | None = None
    reason = request.POST.get("reason", f"Revert: {saved.reason}"[:500])
    if request.method == "POST":
        try:
            edits.revert(change=saved, author=person(request), reason=reason)
        except ServiceError as refused:
            fault = refused
        else:
            messages.success(request, "Reverted, in force with the next cycle.")
            return redirect("web:quotas", found.name, top.name)
    cells, start = cells_back(saved), max(found.now(), saved.effective_from)
    seen = told(person(request), found, planned(found, cells))
    context = {
        "queue": top,
        "crumbs": crumbs(request, top),
        "change": saved,
        "lines": backwards(saved, person(request)),
        "told": with_grace(seen, lowered(grid(saved.queue, start), cells, start)),
        "reason": reason,
        "fault": fault,
    }
    return render(request, "web/quotas/revert.html", context, status=400 if fault else 200)


def _revertible(user: User | Any, top: Queue, pk: int) -> QuotaChange:
    """A change of this subtree whose own queue the person divides; anything else is absent."""
    mine = history(top).filter(queue__in=dividable_queues(user))
    return get_object_or_404(mine.select_related("cluster"), pk=pk)
