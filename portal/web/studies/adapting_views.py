"""Policy lab, Adapting: the page, its switch and its pins."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from portal.teams.access import is_admin
from portal.web.frame.requests import PersonRequest, act_view, attached_csv, page_view
from portal.web.operations.mode import operated
from portal.web.studies.adapting import context, table
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.studies.adapting import trials
from scheduling.services.studies.adapting.documents import adapting as document_of
from scheduling.services.studies.adapting.documents import document


@page_view
def adapting(request: PersonRequest, cluster: str) -> HttpResponse:
    """For operators: the page, as CSV and JSON too."""
    found = operated(request, cluster)
    wanted = request.GET.get("format", "")
    if wanted == "csv":
        return attached_csv(table(document_of(found)), f"{found.name}-adapting.csv")
    if wanted == "json":
        return JsonResponse(document(found), json_dumps_params={"indent": 1})
    more = {"tab": "adapting", "api_url": reverse("api:adaptation", args=[found.name])}
    return render(request, "web/lab/adapting.html", {**context(found, request.user), **more})


def _page(cluster: Cluster) -> HttpResponse:
    return redirect("web:adapting", cluster=cluster.name)


def _administered(request: PersonRequest, cluster: str) -> Cluster:
    """For people who edit the policy. Raises Http404 for everybody else."""
    found = operated(request, cluster)
    if not is_admin(request.user):
        raise Http404
    return found


@act_view
def switch(request: PersonRequest, cluster: str) -> HttpResponse:
    found = _administered(request, cluster)
    is_on = request.POST.get("on") == "1"
    if not trials.switch(cluster=found, is_on=is_on, author=request.user):
        messages.info(request, "It was so already.")
    return _page(found)


@act_view
def pin(request: PersonRequest, cluster: str) -> HttpResponse:
    found = _administered(request, cluster)
    is_pinned, name = request.POST.get("pinned") == "1", request.POST.get("name", "")
    try:
        if not trials.pin(cluster=found, name=name, is_pinned=is_pinned, author=request.user):
            messages.info(request, "It was so already.")
    except ServiceError as error:
        messages.error(request, str(error))
    return _page(found)
