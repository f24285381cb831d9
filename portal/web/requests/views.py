"""The list of requests, and one of them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from portal.accounts.models import User
from portal.approvals import edits
from portal.approvals.automatic import settable_queues
from portal.approvals.forms import DecisionForm
from portal.approvals.models import QuotaRequest
from portal.approvals.moves import MOVED_ON
from portal.approvals.previews import ReadablePreview
from portal.approvals.states import DECIDABLE, GRANTED, Verb
from portal.approvals.who import (
    Decider,
    askable_queues,
    decides_at,
    may_renew,
    verbs,
    visible_requests,
)
from portal.display.format import number
from portal.plans import asking as plans
from portal.plans.asking import PlanState
from portal.teams.access import visible_queues
from portal.web.frame.context import Shell
from portal.web.frame.requests import PersonRequest, act_view, page_view
from portal.web.frame.shell import get_cluster
from portal.web.moments import local
from portal.web.requests import lists, page
from portal.web.requests.lesser import LesserTable, table
from scheduling.models import MILLI, Cluster, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.queues.shift import givers

MOST_GIVERS = 3


@page_view
def index(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    context = {
        "cluster": found,
        "listed": lists.listed(request, found, request.GET.get("state", "open")),
        "filters": lists.FILTERS,
        "may_ask": askable_queues(request.user).filter(cluster=found).exists(),
        "sets_rules": any(queue.cluster_id == found.pk for queue in settable_queues(request.user)),
    }
    return render(request, "web/requests/requests.html", context)


def get_request(request: HttpRequest, cluster: Cluster, pk: int) -> QuotaRequest:
    """The request of that number if the person may see it, else Http404."""
    assert isinstance(request.user, User)  # noqa: S101 - behind login_required
    return get_object_or_404(visible_requests(request.user), cluster=cluster, pk=pk)


@page_view
def one(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = get_cluster(request, cluster)
    return show(request, get_request(request, found, pk))


def show(
    request: PersonRequest,
    quota_request: QuotaRequest,
    *,
    form: DecisionForm | None = None,
    comment: str = "",
    fault: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page of one request; ``form`` and ``comment`` hold what was typed, ``fault`` what is wrong."""
    user, shell = request.user, Shell(request)
    may = verbs(user, quota_request)
    plan, before, plan_state = _plans(request, quota_request, form)
    gpus = _granting(request, quota_request, form)
    decider = Decider(user)
    context = {
        **_context(request, quota_request),
        "cluster": quota_request.cluster,
        "asked": quota_request,
        "heading": page.heading(quota_request),
        "lead": page.lead(quota_request, user, plan),
        "badge": lists.badge(quota_request, user, turn=decider.has_turn(quota_request)),
        "plan": plan,
        "lesser": _lesser_of(request, quota_request, plan, plan_state),
        **plans.context_of(plan_state),
        "since": page.since(before, plan) if quota_request.state in DECIDABLE else "",
        "is_decidable": quota_request.state in DECIDABLE,
        "is_granted": quota_request.state in GRANTED,
        "may": {verb.value for verb in may},
        "form": form or _decision(request, quota_request),
        "eyes": page.four_eyes(quota_request, user),
        "label": page.approve_label(quota_request, plan, gpus),
        "gpus": number(gpus / MILLI, 3),
        "able": _able(quota_request, user) if Verb.FORWARD in may or Verb.APPROVE in may else [],
        "comment": comment,
        "fault": fault,
        "zone": shell.zone,
    }
    return render(request, "web/requests/request.html", context, status=status)


def _context(request: PersonRequest, quota_request: QuotaRequest) -> dict[str, Any]:
    """What is known of it whatever the plan says."""
    user = request.user
    return {
        "renews": may_renew(user, quota_request),
        "renewals": visible_requests(user).filter(renews=quota_request),
        "comments": quota_request.comments.select_related("by"),
        "facts": page.facts(quota_request, user, quota_request.cluster.now()),
        "giver": page.giver_of(quota_request, user),
        "grace_s": quota_request.cluster.lowering_grace_s,
        "listed": lists.listed(request, quota_request.cluster, "open"),
        "life": page.life(quota_request, list(quota_request.steps.select_related("by")), user),
    }


def _plans(request: PersonRequest, quota_request: QuotaRequest, form: DecisionForm | None) -> Any:
    """(what is told as its effect, what was told on submission, how the plan of now stands)."""
    before = page.preview_for(quota_request, request.user, quota_request.preview)
    if quota_request.state in DECIDABLE:
        plan_state = page.as_now(
            quota_request,
            gpus=_granting(request, quota_request, form) or None,
            giver=_giver(request, quota_request),
        )
        return (
            page.preview_for(
                quota_request, request.user, plan_state.answer if plan_state else None
            ),
            before,
            plan_state,
        )
    return (
        page.preview_for(
            quota_request, request.user, quota_request.expected or quota_request.preview
        ),
        before,
        None,
    )


def _lesser_of(
    request: PersonRequest,
    quota_request: QuotaRequest,
    plan: ReadablePreview | None,
    state: PlanState | None,
) -> LesserTable | None:
    if plan is None or not plan.lesser:
        return None
    answer = state.answer if state else None
    giver = _giver(request, quota_request) or quota_request.giver
    return table(request.user, quota_request, plan, answer or {}, giver)


@act_view
def replay(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Have the last days lived again with each amount of the table."""
    found = get_cluster(request, cluster)
    quota_request = get_request(request, found, pk)
    if quota_request.queue is None or not decides_at(request.user, quota_request.queue):
        raise Http404
    gpus = _granting(request, quota_request, None)
    state = page.as_now(quota_request, gpus=gpus or None, giver=_giver(request, quota_request))
    again = state.answer.get("again") if state and state.answer else None
    try:
        if quota_request.state not in DECIDABLE:
            raise ServiceError(MOVED_ON, "It is decided.", "Read what was expected of it.")
        if again is None:
            raise ServiceError("unplanned", "It is being planned anew.", "Ask again in a moment.")
        forms = [changes for _, changes in again["forms"]]
        edits.replays(found, request.user, forms, again["base"])
    except ServiceError as refused:
        messages.error(request, f"{refused.sentence} {refused.remedy}")
    query = request.GET.urlencode()
    back = reverse("web:request", args=[found.name, pk])
    return redirect(f"{back}?{query}" if query else back)


def _granting(
    request: PersonRequest, quota_request: QuotaRequest, form: DecisionForm | None
) -> int:
    """Milli-GPU that the page plans with: what is typed, or what the address says, up to what is asked."""
    most = quota_request.gpus or 0
    text = request.GET.get("gpus", "") or (form.data.get("gpus", "") if form else "")
    try:
        typed = round(float(text) * MILLI)
    except (ValueError, OverflowError):
        return most
    return typed if 0 < typed <= most else most


def _giver(request: PersonRequest, quota_request: QuotaRequest) -> Queue | None:
    name = request.GET.get("giver", "")
    if not name:
        return None
    return visible_queues(request.user).filter(cluster=quota_request.cluster, name=name).first()


def decision_of(quota_request: QuotaRequest, user: User, zone_name: str) -> dict[str, Any]:
    """What is asked, as the form of a decision begins with; a giver out of sight is left as it is."""
    seen = (
        quota_request.giver is not None
        and page.giver_of(quota_request, user) == quota_request.giver.name
    )
    return {
        "gpus": f"{(quota_request.gpus or 0) / MILLI:g}",
        "ends_at": local(quota_request.ends_at, zone_name),
        "giver": quota_request.giver.name if quota_request.giver is not None and seen else "",
    }


def _decision(request: PersonRequest, quota_request: QuotaRequest) -> DecisionForm:
    zone_name = Shell(request).zone
    given = {name: request.GET[name] for name in ("gpus", "giver") if request.GET.get(name)}
    initial = decision_of(quota_request, request.user, zone_name) | given
    return DecisionForm(
        request=quota_request, user=request.user, zone_name=zone_name, initial=initial
    )


def _able(quota_request: QuotaRequest, user: User) -> list[Any]:
    """Queues that could give it, where nobody was named: the one with most idle first."""
    found = quota_request.cluster.gpu_classes.filter(name=quota_request.gpu_class).first()
    if (
        not quota_request.is_about_quota
        or quota_request.giver
        or quota_request.queue is None
        or found is None
    ):
        return []
    if quota_request.figure != "nominal":
        return []
    seen = set(
        visible_queues(user).filter(cluster=quota_request.cluster).values_list("pk", flat=True)
    )
    able = givers(quota_request.queue, found, quota_request.gpus or 0, quota_request.cluster.now())
    return [giver for giver in able if giver.queue.pk in seen][:MOST_GIVERS]
