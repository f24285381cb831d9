"""Loans of the queues that one leads, and one of them."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.approvals.loans import previews
from portal.approvals.loans.doors import recalled_end
from portal.approvals.loans.models import QuotaLoan
from portal.approvals.loans.states import RUNNING, LoanVerb
from portal.approvals.loans.who import led_of, led_queues, may_open, verbs, visible_loans
from portal.web.frame.remembered import remembered
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.loans import shown
from portal.web.quotas.preview import Told, told
from scheduling.models import MILLI, Cluster
from scheduling.services.errors import ServiceError


@page_view
def index(request: PersonRequest, cluster: str) -> HttpResponse:
    found = opened(request, cluster)
    context = {
        "cluster": found,
        "page": shown.page(request.user, found),
        "leads": led_queues(request.user).filter(cluster=found).exists(),
    }
    return render(request, "web/loans/loans.html", context)


def opened(request: PersonRequest, cluster: str) -> Cluster:
    """The cluster if the person has anything to do with its loans, else Http404."""
    found = get_cluster(request, cluster)
    if not may_open(request.user, found):
        raise Http404
    return found


def get_loan(request: PersonRequest, cluster: Cluster, pk: int) -> QuotaLoan:
    return get_object_or_404(visible_loans(request.user), cluster=cluster, pk=pk)


@page_view
def one(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = opened(request, cluster)
    return show(request, get_loan(request, found, pk))


def show(
    request: PersonRequest, loan: QuotaLoan, fault: ServiceError | None = None, status: int = 200
) -> HttpResponse:
    """The page of one loan: its terms, and what the next step would do before its button."""
    may = verbs(loan, led_of(request.user, loan.cluster))
    row = shown.rows(loan.cluster, [loan])[0]
    context: dict[str, Any] = {
        "cluster": loan.cluster,
        "loan": loan,
        "may": may,
        "row": row,
        "sides": (row.lender, row.borrower),
        "recalled_end": recalled_end(loan),
        "lent_gpus": loan.gpus / MILLI,
        "is_running": loan.state in RUNNING,
        "told": _told(request, loan, may),
        "fault": fault,
    }
    return render(request, "web/loans/loan.html", context, status=status)


def _told(request: PersonRequest, loan: QuotaLoan, may: set[LoanVerb]) -> Told | None:
    """What consent would do, or a recall once its notice is over; None where neither is theirs."""
    gpus = loan.gpus if LoanVerb.CONSENT in may else -loan.gpus
    if not may & {LoanVerb.CONSENT, LoanVerb.RECALL}:
        return None
    key = ("loan", loan.pk, loan.state, gpus)
    kept = remembered.of(loan.cluster, key, lambda: previews.planned(loan, gpus))
    return told(request.user, loan.cluster, kept)
