"""Asking: the form, what it would do as it is filled in, and who would have to agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from portal.accounts.models import User
from portal.approvals import automatic, doors
from portal.approvals.forms import RequestForm
from portal.approvals.models import QuotaRequest
from portal.approvals.states import Kind, State
from portal.approvals.who import approvers, askable_queues, has_lead, may_ask
from portal.approvals.wishes import Wish, WishError
from portal.approvals.wishes import check as check_wish
from portal.display.format import number
from portal.plans import asking as plans
from portal.web.frame.context import Shell
from portal.web.frame.requests import PersonRequest, form_view, page_view, turned
from portal.web.frame.shell import get_cluster
from portal.web.moments import local
from portal.web.requests import lists, page, views
from scheduling.models import MILLI, Cluster
from scheduling.services.errors import ServiceError

TYPED_FIRST = {Kind.QUOTA: "gpus", Kind.BOOST: "gpus", Kind.QUEUE: "name"}
"""What a request is about; of an access everything is chosen."""


def _kind(query: QueryDict, otherwise: str = Kind.QUOTA) -> Kind:
    text = query.get("kind", otherwise)
    return Kind(text) if text in Kind.values else Kind(otherwise)


def _form(
    request: PersonRequest, cluster: Cluster, kind: Kind, data: Any = None, initial: Any = None
) -> RequestForm:
    return RequestForm(
        data,
        user=request.user,
        cluster=cluster,
        kind=kind,
        zone_name=Shell(request).zone,
        initial=initial,
    )


@form_view
def new(request: PersonRequest, cluster: str) -> HttpResponse:
    """The address may say what to begin with; a POST keeps a draft, or submits."""
    found = get_cluster(request, cluster)
    if not askable_queues(request.user).filter(cluster=found).exists():
        raise Http404
    if request.method == "POST":
        return turned(request) or _keep(request, found, None)
    kind = _kind(request.GET)
    return _page(request, found, _form(request, found, kind, initial=request.GET.dict()), None)


@form_view
def edit(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """A draft, or what was sent back for changes. Its author's alone."""
    found = get_cluster(request, cluster)
    quota_request = views.get_request(request, found, pk)
    if (
        quota_request.author != request.user
        or quota_request.queue is None
        or not may_ask(request.user, quota_request.queue)
    ):
        raise Http404
    if request.method == "POST":
        return turned(request) or _keep(request, found, quota_request)
    if not quota_request.is_editable:
        messages.info(request, f"{quota_request} is no longer yours to edit.")
        return redirect("web:request", found.name, quota_request.pk)
    kind = _kind(request.GET, quota_request.kind)
    initial = initial_of(quota_request, Shell(request).zone) | request.GET.dict()
    return _page(request, found, _form(request, found, kind, initial=initial), quota_request)


def _keep(
    request: PersonRequest, cluster: Cluster, quota_request: QuotaRequest | None
) -> HttpResponse:
    form = _form(request, cluster, _kind(request.POST), data=request.POST)
    if not form.is_valid():
        return _page(request, cluster, form, quota_request, status=400)
    try:
        made = _save(request, form.wish(), quota_request)
    except ServiceError as refused:
        form.refuse_all(refused)
        return _page(request, cluster, form, quota_request, status=400)
    return redirect("web:request", cluster.name, made.pk)


def _save(request: PersonRequest, wish: Wish, quota_request: QuotaRequest | None) -> QuotaRequest:
    """A draft where that was the button, else submitted."""
    user = request.user
    if "draft" in request.POST:
        made = doors.save_draft(by=user, wish=wish, request=quota_request)
        messages.success(request, f"{made} is kept as a draft. Nobody else sees it.")
        return made
    if quota_request is None:
        made = doors.submit_new(by=user, wish=wish)
    else:
        check_wish(wish, wish.queue.cluster.now(), reader=user)
        made = doors.submit(
            by=user, request=doors.save_draft(by=user, wish=wish, request=quota_request)
        )
    messages.success(request, _answer_in_words(made))
    return made


def _answer_in_words(made: QuotaRequest) -> str:
    if made.state in (State.SUBMITTED, State.APPROVER):
        whom = "the lead" if made.state == State.SUBMITTED else "the approvers"
        return f"{made} is with {whom}. You are told of each step."
    return f"{made} was approved at once. {made.decision}"


def _page(
    request: PersonRequest,
    cluster: Cluster,
    form: RequestForm,
    quota_request: QuotaRequest | None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "cluster": cluster,
        "form": form,
        "asked": quota_request,
        "kinds": Kind.choices,
        "kind": form.kind,
        "zone": Shell(request).zone,
        "told": None,
    }
    return render(request, "web/requests/new.html", context, status=status)


@page_view
def preview(request: PersonRequest, cluster: str) -> HttpResponse:
    """What the form as it is filled in would do. Reads, and keeps nothing."""
    found = get_cluster(request, cluster)
    if not askable_queues(request.user).filter(cluster=found).exists():
        raise Http404
    kind = _kind(request.GET)
    form = _form(request, found, kind, data=request.GET)
    context: dict[str, Any] = {"cluster": found, "told": None, "zone": Shell(request).zone}
    # A form that nothing was typed into yet is not wrong.
    if form.is_valid() and request.GET.get(TYPED_FIRST.get(kind, "kind"), "").strip():
        context["told"] = effects(request.user, form.wish())
    return render(request, "web/requests/_outcome.html", context)


def effects(user: User, wish: Wish) -> dict[str, Any]:
    """What it would do, who has to agree, and what would be quicker; or what is wrong with it."""
    cluster, now = wish.queue.cluster, wish.queue.cluster.now()
    try:
        check_wish(replace(wish, reason=wish.reason or "to be written"), now, reader=user)
    except WishError as error:
        return {"faults": [str(fault) for fault in error.faults]}
    quota_request = QuotaRequest(cluster=cluster, author=user, **wish.columns())
    plan_state = page.as_typed(wish)
    plan = page.preview_for(quota_request, user, plan_state.answer if plan_state else None)
    rule = automatic.passing(quota_request, now)
    return {
        "asked": quota_request,
        "plan": plan,
        **plans.context_of(plan_state),
        "outcome": plan.outcome if plan and not plan.fault else "",
        "passes": rule.passes,
        "rule": rule.rule,
        "missed": rule.least_missed,
        "has_lead": has_lead(quota_request),
        "approvers": len(approvers(quota_request)),
        "below": _below(quota_request, rule),
        "enough": plan.enough if plan else None,
        "ended": lists.ended_boost(user, cluster, wish.queue.pk, now),
    }


def _below(quota_request: QuotaRequest, passing: automatic.RuleVerdict) -> str:
    """The whole amount that the rule would let pass at once, where this one is too large for it."""
    rule = passing.rule
    if rule is None or passing.passes:
        return ""
    left = rule.below_gpus - automatic.given_by_rule(quota_request)
    most = (left - 1) // MILLI
    smaller = QuotaRequest(
        cluster=quota_request.cluster,
        author=quota_request.author,
        queue=quota_request.queue,
        kind=quota_request.kind,
        gpu_class=quota_request.gpu_class,
        figure=quota_request.figure,
        giver=quota_request.giver,
        gpus=most * MILLI,
        starts_at=quota_request.starts_at,
        ends_at=quota_request.ends_at,
    )
    passes = most > 0 and automatic.passing(smaller, quota_request.cluster.now()).passes
    return number(most) if passes else ""


def initial_of(request: QuotaRequest, zone_name: str) -> dict[str, Any]:
    """What the form of a draft begins with."""
    return {
        "queue": request.queue.name if request.queue else "",
        "gpu_class": request.gpu_class,
        "priority_class": request.priority_class,
        "figure": request.figure,
        "gpus": request.gpus,
        "giver": request.giver.name if request.giver else "",
        "name": request.name,
        "starts_at": local(request.starts_at, zone_name),
        "ends_at": local(request.ends_at, zone_name),
        "reason": request.reason,
    }
