"""Saving a view of a report, and the page of those that a person keeps."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse

from portal.reports import saved_views
from portal.reports.edit_forms import ViewForm
from portal.reports.kinds import REPORTS
from portal.reports.models import SavedView
from portal.web.frame.requests import PersonRequest, act_view, page_view
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError


@page_view
def views(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    return _page(request, found, None)


@act_view
def save(request: PersonRequest, cluster: str) -> HttpResponse:
    """Back to the report; a refusal is shown on the page of views with what was typed."""
    found = get_cluster(request, cluster)
    form = ViewForm(request.POST)
    if not form.is_valid():
        return _page(request, found, form)
    try:
        view = saved_views.save_view(user=request.user, cluster=found, **form.cleaned_data)
    except ServiceError as refused:
        form.refuse(refused)
        return _page(request, found, form)
    messages.success(request, f"The view {view.name} is kept.")
    return HttpResponseRedirect(address_of(view))


@act_view
def change(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Whether it is told each Monday, or no longer kept: by the button that was pressed."""
    found = get_cluster(request, cluster)
    view = saved_views.view_of(request.user, found, pk)
    if "drop" in request.POST:
        view.delete()
        messages.success(request, f"The view {view.name} is dropped.")
    else:
        saved_views.set_weekly(view, weekly=request.POST.get("weekly") == "on")
    return redirect("reports:views", found.name)


def address_of(view: SavedView) -> str:
    return f"{reverse(f'reports:{view.kind}', args=[view.cluster.name])}?{view.query}"


def _page(request: PersonRequest, cluster: Cluster, form: ViewForm | None) -> HttpResponse:
    rows = saved_views.views_of(request.user, cluster).select_related("cluster")
    context: dict[str, Any] = {
        "cluster": cluster,
        "rows": [(view, REPORTS[view.kind].title, address_of(view)) for view in rows],
        "form": form,
    }
    return render(request, "reports/views.html", context, status=400 if form else 200)
