"""Where a person lands, and how every page of a cluster authorises: by fetching it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from portal.accounts.capabilities import Capability
from portal.teams.access import clusters_of, is_admin, sees_everything, tops, visible_clusters
from portal.teams.rights import Person
from portal.web.frame.requests import page_view
from scheduling.models import Cluster


def get_cluster(request: HttpRequest, name: str) -> Cluster:
    """The cluster ``name`` if the person may see it, kept on the request for the frame.

    Raises:
        Http404: there is none of that name, or it is not theirs to see.
    """
    cluster = next((one for one in clusters_of(request.user) if one.name == name), None)
    if cluster is None:
        raise Http404
    request.cluster = cluster  # type: ignore[attr-defined]
    return cluster


def answers_for_others(user: Person) -> bool:
    """People who divide quotas or see all begin with everybody's work, the others with their own."""
    return sees_everything(user) or bool(tops(user, Capability.EDIT_QUOTAS))


@page_view
def home(request: HttpRequest) -> HttpResponse:
    cluster = visible_clusters(request.user).first()
    if cluster is None and is_admin(request.user):
        return redirect("web:set_up")
    if cluster is None:
        return render(request, "web/nowhere.html", status=404)
    page = "web:overview" if answers_for_others(request.user) else "web:my_work"
    return redirect(page, cluster=cluster.name)
