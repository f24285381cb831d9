"""What is done to a request from its page, each by POST. A refusal gives back what was typed."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from portal.approvals import doors
from portal.approvals.forms import DecisionForm
from portal.approvals.models import QuotaRequest
from portal.approvals.moves import MOVED_ON
from portal.approvals.who import decides_at, may_ask, verbs
from portal.web.frame.context import Shell
from portal.web.frame.requests import PersonRequest, act_view
from portal.web.frame.shell import get_cluster
from portal.web.requests import page, views
from scheduling.services.errors import ServiceError

Door = Callable[..., object]
VerbView = Callable[[PersonRequest, str, int], HttpResponse]


def _request_of(request: PersonRequest, cluster: str, pk: int) -> QuotaRequest:
    return views.get_request(request, get_cluster(request, cluster), pk)


def _may(request: PersonRequest, quota_request: QuotaRequest, verb: str) -> None:
    """A person who sees it and could never do that gets what is absent; one who comes too late is told by the
    door."""
    if verb not in verbs(request.user, quota_request) and not _acts_on(
        request, quota_request, verb
    ):
        raise Http404


def _acts_on(request: PersonRequest, quota_request: QuotaRequest, verb: str) -> bool:
    """Whether the verb would be theirs in another state of the request."""
    if verb in ("submit", "withdraw"):
        return quota_request.author_id == request.user.pk
    return quota_request.queue is not None and decides_at(request.user, quota_request.queue)


def _back(quota_request: QuotaRequest) -> HttpResponse:
    return redirect("web:request", quota_request.cluster.name, quota_request.pk)


def _plainly(verb: str, door: Door, said: str) -> VerbView:
    """A verb without a form."""

    def act(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
        quota_request = _request_of(request, cluster, pk)
        _may(request, quota_request, verb)
        try:
            door(by=request.user, request=quota_request)
        except ServiceError as refused:
            quota_request.refresh_from_db()
            return _refused(request, quota_request, refused, None)
        messages.success(request, said)
        return _back(quota_request)

    return act_view(act)


def _refused(
    request: PersonRequest,
    quota_request: QuotaRequest,
    refused: ServiceError,
    form: DecisionForm | None,
) -> HttpResponse:
    status = 409 if refused.code == MOVED_ON else 400
    fault = "" if form is not None and form.errors else str(refused)
    return views.show(request, quota_request, form=form, fault=fault, status=status)


@act_view
def renew(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """One click: the same again, for as long, from where it ends."""
    quota_request = _request_of(request, cluster, pk)
    if quota_request.queue is None or not may_ask(request.user, quota_request.queue):
        raise Http404
    try:
        made = doors.renew(by=request.user, request=quota_request)
    except ServiceError as refused:
        return _refused(request, quota_request, refused, None)
    messages.success(request, f"Asked for again as {made}.")
    return _back(made)


def _decide(
    request: PersonRequest, cluster: str, pk: int, verb: str, act: Callable[..., object], said: str
) -> HttpResponse:
    """A verb with the form of a decision."""
    quota_request = _request_of(request, cluster, pk)
    _may(request, quota_request, verb)
    form = DecisionForm(
        _with_defaults(request, quota_request),
        request=quota_request,
        user=request.user,
        zone_name=Shell(request).zone,
    )
    if not form.is_valid():
        return views.show(request, quota_request, form=form, status=400)
    try:
        act(quota_request, form)
    except ServiceError as refused:
        form.refuse(refused)
        quota_request = _request_of(request, cluster, pk)
        return _refused(request, quota_request, refused, form)
    messages.success(request, said)
    return _back(quota_request)


def _with_defaults(request: PersonRequest, quota_request: QuotaRequest) -> dict[str, str]:
    """What was posted; a field that was not is as it was asked."""
    known = views.decision_of(quota_request, request.user, Shell(request).zone)
    posted = {name: str(value) for name, value in request.POST.items()}
    return {name: str(value or "") for name, value in known.items()} | posted


@act_view
def forward(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    def act(quota_request: QuotaRequest, form: DecisionForm) -> None:
        typed = form.cleaned_data
        doors.forward(
            by=request.user, request=quota_request, giver=typed.get("giver"), note=typed["note"]
        )

    return _decide(request, cluster, pk, "forward", act, "Forwarded to the approvers.")


@act_view
def approve(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Grant it, or what the form leaves of it; the plan of the moment is kept with it."""

    def act(quota_request: QuotaRequest, form: DecisionForm) -> None:
        granted = form.granted()
        expected = page.expected(quota_request, gpus=granted["gpus"], giver=granted["giver"])
        doors.approve(
            by=request.user,
            request=quota_request,
            note=form.cleaned_data["note"],
            expected=expected,
            **granted,
        )

    return _decide(request, cluster, pk, "approve", act, "Approved. The next cycle sees it.")


def _with_a_word(verb: str, door: Door, said: str) -> VerbView:
    """A verb that takes a note alone."""

    def act(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
        def decide(quota_request: QuotaRequest, form: DecisionForm) -> None:
            door(by=request.user, request=quota_request, note=form.cleaned_data["note"])

        return _decide(request, cluster, pk, verb, decide, said)

    return act_view(act)


submit = _plainly("submit", doors.submit, "Submitted.")
withdraw = _plainly("withdraw", doors.withdraw, "Withdrawn.")
ask_changes = _with_a_word("ask_changes", doors.ask_changes, "Sent back with your words.")
reject = _with_a_word("reject", doors.reject, "Rejected.")
revoke = _with_a_word("revoke", doors.revoke, "Revoked. The next cycle sees it.")


@act_view
def comment(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """A word of anybody who sees it."""
    quota_request = _request_of(request, cluster, pk)
    text = request.POST.get("text", "")
    try:
        doors.comment(by=request.user, request=quota_request, text=text)
    except ServiceError as refused:
        return views.show(request, quota_request, comment=text, fault=str(refused), status=400)
    return _back(quota_request)
