"""How good start forecasts were."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from portal.teams.access import is_operator, visible_workloads
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.lab import forecasts, run_times


@page_view
def start_forecasts(request: PersonRequest, cluster: str) -> HttpResponse:
    """How good forecasts of starts were; workloads are named to whoever may see them."""
    found = get_cluster(request, cluster)
    classes = list(found.gpu_classes.all())
    days = request.GET.get("days", "30")
    query = forecasts.AskedForecast(
        days=int(days) if days in forecasts.RANGES else 30,
        gpu_class=request.GET.get("class", ""),
        hourly=request.GET.get("told") == "hourly",
    )
    context = {
        "cluster": found,
        "classes": classes,
        "asked": query,
        "ranges": forecasts.RANGES,
        "page": forecasts.page(found, query, visible_workloads(request.user)),
        "api": reverse("api:forecast_score", args=[found.name]),
        "is_operator": is_operator(request.user),
        "model": run_times.page(found) if is_operator(request.user) else None,
        "tab": "start_forecasts",
    }
    return render(request, "web/lab/forecasts.html", context)
