"""Policy lab, Learned policy: read by operators; the switch and withdrawals are for who sets the policy."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from portal.boundary.reading import one_line, whole_or
from portal.display.csv import csv_lines
from portal.teams.access import is_admin
from portal.web.frame.requests import PersonRequest
from portal.web.lab.adapting import context as adapting
from portal.web.learned import page as pages
from portal.web.learned.tables import table
from portal.web.operations.mode import operated
from scheduling.models import Cluster, LearnedOrder
from scheduling.services.errors import ServiceError
from scheduling.services.learned import states, training
from scheduling.services.learned.told import document


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def learned(request: PersonRequest, cluster: str) -> HttpResponse:
    """The page, as CSV and JSON too; POST trains a new version."""
    found = operated(request, cluster)
    if request.method == "POST":
        return _train(request, found)
    page = pages.page(found, _asked(request))
    wanted = request.GET.get("format", "")
    if wanted == "json":
        told = document(page.shown, found) if page.shown else {"version": None}
        return JsonResponse(told, json_dumps_params={"indent": 1})
    if wanted == "csv":
        answer = HttpResponse(csv_lines(table(page.shown)), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="{found.name}-learned-order.csv"'
        return answer
    return _page(request, found, page)


def _asked(request: PersonRequest) -> int | None:
    """The version of the address. Raises Http404 for one that is not there."""
    asked = request.GET.get("version", "")
    return whole_or(asked, 0) if asked else None


def _train(request: PersonRequest, cluster: Cluster) -> HttpResponse:
    try:
        order = training.begin(cluster=cluster, author=request.user.get_username())
    except ServiceError as error:
        return _page(request, cluster, pages.page(cluster), fault=error)
    training.start(order)
    messages.info(request, f"{order} is in training. You can leave: it is found again here.")
    return redirect("web:learned", cluster=cluster.name)


def _page(
    request: PersonRequest, cluster: Cluster, page: pages.Page, *, fault: ServiceError | None = None
) -> HttpResponse:
    if page.shown is None and request.method != "POST" and request.GET.get("version"):
        raise Http404
    here = reverse("web:learned", args=[cluster.name])
    own = f"version={page.shown.version}&" if request.GET.get("version") and page.shown else ""
    context: dict[str, Any] = {
        "cluster": cluster,
        "page": page,
        "order": page.shown,
        "fault": fault,
        "typed": request.POST,
        "may_set": is_admin(request.user),
        "is_operator": True,
        "here": f"{here}?{own}".rstrip("?&"),
        "csv_url": f"{here}?{own}format=csv",
        "json_url": f"{here}?{own}format=json",
        "api_url": reverse("api:learned_orders", args=[cluster.name]),
        "tab": "learned",
        **adapting(cluster, request.user),
    }
    return render(request, "web/lab/learned.html", context, status=400 if fault else 200)


@login_required
@require_POST
def switch(request: PersonRequest, cluster: str) -> HttpResponse:
    """Whether learned orders may decide, for who administers."""
    found = _administered(request, cluster)
    is_on = request.POST.get("on") == "1"
    states.set_switch(cluster=found, is_on=is_on, author=request.user.get_username())
    said = "may decide" if is_on else "decide nothing from the next cycle on"
    messages.success(request, f"Learned orders {said}.")
    return redirect("web:learned", cluster=found.name)


@login_required
@require_POST
def withdraw(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = _administered(request, cluster)
    order = get_object_or_404(LearnedOrder, cluster=found, pk=pk)
    try:
        reason = _readable(request.POST.get("reason", ""))
        changed = states.withdraw(order=order, author=request.user.get_username(), reason=reason)
    except ServiceError as error:
        return _page(request, found, pages.page(found, order.version), fault=error)
    if not changed:
        messages.info(request, f"{order} was over already.")
    return redirect("web:learned", cluster=found.name)


def _readable(text: str) -> str:
    try:
        one_line(text)
    except ValidationError as error:
        raise ServiceError("bad_text", error.messages[0], field="reason") from error
    return text


def _administered(request: PersonRequest, cluster: str) -> Cluster:
    found = operated(request, cluster)
    if not is_admin(request.user):
        raise Http404
    return found
