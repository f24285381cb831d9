"""Where a person lands."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.teams.access import visible_clusters


@login_required
def home(request: HttpRequest) -> HttpResponse:
    cluster = visible_clusters(request.user).first()
    if cluster is None:
        raise Http404
    return redirect("web:overview", cluster=cluster.name)
