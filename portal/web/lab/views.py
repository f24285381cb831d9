"""Policy lab: what-if questions and how good start forecasts were."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.boundary.reading import whole_or
from portal.teams.access import is_operator, visible_workloads
from portal.web.frame.requests import PersonRequest
from portal.web.frame.shell import get_cluster
from portal.web.lab import drafts, forecasts, forms, run_times, what_if
from portal.web.operations.mode import operated
from portal.web.overview.views import chosen_class
from scheduling.models import Cluster, PriorityClass, Queue, WhatIf, WhatIfKind
from scheduling.services.errors import ServiceError
from scheduling.services.whatif import kept, told
from scheduling.services.whatif.changes import read

LISTED = 12
SETTINGS = (
    "order", "history_strength", "user_history_strength", "preemption_delay_s", "eviction_cap",
    "placement", "spread_weight", "fair_share_delay_s", "max_evictions", "max_moves", "cooldown_s",
    "claim_hold_s", "charge_s", "reserve_after_s", "backfill_quantile", "usage_half_life_s",
)  # fmt: skip


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def what_ifs(request: PersonRequest, cluster: str) -> HttpResponse:
    """The question as it grows in the address, and those that were asked before."""
    found = operated(request, cluster)
    query = request.POST if request.method == "POST" else request.GET
    changes: list[dict[str, Any]] = []
    fault: ServiceError | None = None
    try:
        changes = forms.changes_in(query)
        if query.get("add"):
            grown = [*changes, forms.added(query)]
            read(grown)
            return redirect(f"{request.path}?{forms.as_query(grown)}")
        if request.method == "POST":
            return _ask(request, found, changes)
    except ServiceError as error:
        fault = error
    context = _composing(found, changes, fault)
    context["typed"] = query
    return render(request, "web/lab/what_ifs.html", context, status=400 if fault else 200)


def _ask(request: PersonRequest, cluster: Cluster, changes: list[dict[str, Any]]) -> HttpResponse:
    days = request.POST.get("days", "7")
    question = kept.ask(
        cluster=cluster,
        document=changes,
        author=request.user.get_username(),
        days=whole_or(days, 0),
        replays=days != "now",
    )
    kept.start(question)
    return redirect("web:what_if", cluster=cluster.name, pk=question.pk)


def _composing(
    cluster: Cluster, changes: list[dict[str, Any]], fault: ServiceError | None
) -> dict[str, Any]:
    rows = []
    for i, one in enumerate(changes):
        rest = changes[:i] + changes[i + 1 :]
        rows.append(
            (
                what_if.WORDS.get(one.get("kind", ""), "Change"),
                _title(one),
                one,
                forms.as_query(rest),
            )
        )
    queues = Queue.objects.filter(cluster=cluster, parent__isnull=False)
    return {
        "cluster": cluster,
        "rows": rows,
        "hidden": [forms.as_text(one) for one in changes],
        "fault": fault,
        "queues": queues,
        "leaves": [queue for queue in queues if not queue.children.exists()],
        "classes": list(cluster.gpu_classes.all()),
        "priorities": list(PriorityClass.objects.all()),
        "settings": SETTINGS,
        "asked": list(
            WhatIf.objects.filter(cluster=cluster).exclude(kind=WhatIfKind.EDIT)[:LISTED]
        ),
        "tab": "what_if",
    }


def _title(change: dict[str, Any]) -> str:
    try:
        return told.title(read([change]))
    except ServiceError as error:
        return str(error)


@login_required
@require_safe
def one(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = operated(request, cluster)
    question = get_object_or_404(WhatIf, cluster=found, pk=pk)
    classes = list(found.gpu_classes.all())
    chosen = (
        chosen_class(request, classes) if request.GET.get("class") else _meant(question, classes)
    )
    changes = question.changes
    page = what_if.page(question, chosen.name if chosen else "")
    context = {
        "cluster": found,
        "question": question,
        "page": page,
        "ticks": page.axis.ticks(found.display_time_zone, wide_px=300, narrow_px=280)
        if page
        else (),
        "asked": what_if.Asked.all_of(question),
        "classes": classes,
        "chosen": chosen,
        "wait_ticks": what_if.wait_ticks(),
        "again": forms.as_query(changes),
        "draft": drafts.quota_draft(request.user, question) if page else None,
        "others": list(WhatIf.objects.filter(cluster=found, is_kept=True).exclude(pk=pk)[:4]),
        "tab": "what_if",
    }
    return render(request, "web/lab/what_if.html", context)


def _meant(question: WhatIf, classes: list[Any]) -> Any:
    """The class that the question is about, else the first."""
    names = [
        name
        for change in question.changes
        for name in (change.get("gpu_class"), *change.get("gpu_classes", ()))
        if name
    ]
    return next((c for c in classes if c.name in names), classes[0] if classes else None)


@login_required
@require_POST
def cancel(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = operated(request, cluster)
    question = get_object_or_404(WhatIf, cluster=found, pk=pk)
    if not kept.cancel(question):
        messages.info(request, "It had ended already.")
    return redirect("web:what_if", cluster=found.name, pk=pk)


@login_required
@require_POST
def keep(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = operated(request, cluster)
    question = get_object_or_404(WhatIf, cluster=found, pk=pk)
    kept.keep(question, is_kept=not question.is_kept)
    return redirect("web:what_if", cluster=found.name, pk=pk)


@login_required
@require_safe
def start_forecasts(request: PersonRequest, cluster: str) -> HttpResponse:
    """How good forecasts of starts were; workloads are named to who may see them."""
    found = get_cluster(request, cluster)
    classes = list(found.gpu_classes.all())
    days = request.GET.get("days", "30")
    asked = forecasts.Asked(
        days=int(days) if days in forecasts.RANGES else 30,
        gpu_class=request.GET.get("class", ""),
        hourly=request.GET.get("told") == "hourly",
    )
    context = {
        "cluster": found,
        "classes": classes,
        "asked": asked,
        "ranges": forecasts.RANGES,
        "page": forecasts.page(found, asked, visible_workloads(request.user)),
        "api": reverse("api:forecast_score", args=[found.name]),
        "is_operator": is_operator(request.user),
        "model": run_times.page(found) if is_operator(request.user) else None,
        "tab": "start_forecasts",
    }
    return render(request, "web/lab/forecasts.html", context)
