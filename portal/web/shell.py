"""Where a person lands, and how every page of a cluster authorises: by fetching it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from portal.teams.access import visible_clusters
from scheduling.models import Cluster


def get_cluster(request: HttpRequest, name: str) -> Cluster:
    """The cluster ``name`` if the person may see it, kept on the request for the frame.

    Raises:
        Http404: there is none of that name, or it is not theirs to see.
    """
    cluster = get_object_or_404(visible_clusters(request.user), name=name)
    request.cluster = cluster  # type: ignore[attr-defined]
    return cluster


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    cluster = visible_clusters(request.user).first()
    if cluster is None:
        return render(request, "web/nowhere.html", status=404)
    return redirect("web:overview", cluster=cluster.name)
