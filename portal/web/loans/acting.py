"""What is done to a loan, each by POST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from portal.approvals.loans import doors, previews
from portal.approvals.loans.models import QuotaLoan
from portal.approvals.loans.states import LoanVerb
from portal.approvals.loans.who import leads, open_offers
from portal.web.frame.requests import PersonRequest
from portal.web.loans.views import get_loan, opened, show
from scheduling.models import MILLI
from scheduling.services.errors import ServiceError

Act = Callable[[PersonRequest, QuotaLoan], object]


def _consent(request: PersonRequest, loan: QuotaLoan) -> object:
    gpus = _gpus(request.POST.get("gpus", ""), loan.gpus)
    expected = previews.planned(loan, gpus)
    return doors.consent(by=request.user, loan=loan, gpus=gpus, expected=expected)


def _gpus(text: str, otherwise: int) -> int:
    """Milli-GPU; what was not typed is all of it. Raises ServiceError."""
    try:
        return round(Decimal(text.strip()) * MILLI) if text.strip() else otherwise
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ServiceError(
            "no_number", "That is no number of GPUs.", "Write one, such as 4.", field="gpus"
        ) from error


VERBS: Mapping[str, tuple[LoanVerb, Act, str]] = {
    "consent": (LoanVerb.CONSENT, _consent, "The loan runs, with the next cycle."),
    "decline": (
        LoanVerb.DECLINE,
        lambda r, loan: doors.decline(by=r.user, loan=loan, note=r.POST.get("note", "")),
        "Declined.",
    ),
    "withdraw": (LoanVerb.WITHDRAW, lambda r, loan: doors.withdraw(by=r.user, loan=loan), "Withdrawn."),
    "recall": (
        LoanVerb.RECALL,
        lambda r, loan: doors.recall(by=r.user, loan=loan, note=r.POST.get("note", "")),
        "Recalled.",
    ),
    "undo": (LoanVerb.UNDO, lambda r, loan: doors.undo_recall(by=r.user, loan=loan), "It runs on."),
    "give-back": (LoanVerb.GIVE_BACK, lambda r, loan: doors.give_back(by=r.user, loan=loan), "Given back."),
}  # fmt: skip


@login_required
@require_POST
def act(request: PersonRequest, cluster: str, pk: int, verb: str) -> HttpResponse:
    """Whoever leads neither side finds nothing; who comes too late is told what happened."""
    found = opened(request, cluster)
    loan = get_loan(request, found, pk)
    if verb not in VERBS or not (
        leads(request.user, loan.lender) or leads(request.user, loan.borrower)
    ):
        raise Http404
    _, do, said = VERBS[verb]
    try:
        do(request, loan)
    except ServiceError as refused:
        return show(request, get_loan(request, found, pk), refused, status=409)
    messages.success(request, said)
    return redirect("web:loan", found.name, loan.pk)


@login_required
@require_POST
def withdraw_offer(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = opened(request, cluster)
    offer = get_object_or_404(open_offers(request.user, found), pk=pk)
    if not leads(request.user, offer.lender):
        raise Http404
    try:
        doors.withdraw_offer(by=request.user, offer=offer)
    except ServiceError as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, "Withdrawn. What was lent of it runs on until its own end.")
    return redirect("web:loans", found.name)
