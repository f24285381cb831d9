"""What is done to a loan, each by POST."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from portal.approvals.loans import doors
from portal.approvals.loans.acts import LoanTerms, act_of
from portal.approvals.loans.forms import LoanActForm
from portal.approvals.loans.who import leads, open_offers
from portal.web.frame.requests import PersonRequest, act_view, acted
from portal.web.loans.views import get_loan, opened, show
from scheduling.services.errors import ServiceError

SAID: Mapping[str, str] = {
    "consent": "The loan runs, with the next cycle.",
    "decline": "Declined.",
    "withdraw": "Withdrawn.",
    "recall": "Recalled.",
    "undo": "It runs on.",
    "give-back": "Given back.",
}


@act_view
def act(request: PersonRequest, cluster: str, pk: int, verb: str) -> HttpResponse:
    """A person who comes too late is told what happened."""
    found = opened(request, cluster)
    loan = get_loan(request, found, pk)
    do = act_of(request.user, loan, verb)
    if do is None:
        raise Http404
    try:
        do(request.user, loan, _terms(request))
    except ServiceError as refused:
        return show(request, get_loan(request, found, pk), refused, status=409)
    messages.success(request, SAID[verb])
    return redirect("web:loan", found.name, loan.pk)


def _terms(request: PersonRequest) -> LoanTerms:
    """What was not typed is all of it. Raises ServiceError."""
    form = LoanActForm(request.POST)
    if form.is_valid():
        return LoanTerms(**form.cleaned_data)
    field, faults = next(iter(form.errors.items()))
    raise ServiceError("bad_terms", "It cannot be read.", str(faults[0]), field=field)


@act_view
def withdraw_offer(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = opened(request, cluster)
    offer = get_object_or_404(open_offers(request.user, found), pk=pk)
    if not leads(request.user, offer.lender):
        raise Http404
    acted(
        request, lambda: doors.withdraw_offer(by=request.user, offer=offer),
        "Withdrawn. Loans from it run on until their own ends.",
    )  # fmt: skip
    return redirect("web:loans", found.name)
