"""A new loan: asked for, lent to a queue, or offered to all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from portal.approvals.loans import doors
from portal.approvals.loans.forms import LoanForm
from portal.approvals.loans.who import led_queues, open_offers
from portal.web.frame.context import Shell
from portal.web.frame.requests import PersonRequest, form_view, turned
from portal.web.frame.shell import get_cluster
from scheduling.models import MILLI, Cluster, Queue
from scheduling.services.errors import ServiceError

if TYPE_CHECKING:
    from portal.approvals.loans.models import OpenOffer

KINDS = {"ask": "Ask for a loan", "lend": "Lend to a queue", "offer": "Offer to all"}


@form_view
def new(request: PersonRequest, cluster: str) -> HttpResponse:
    """The address may say what to begin with, and of which offer it is taken."""
    found = get_cluster(request, cluster)
    if not led_queues(request.user).filter(cluster=found).exists():
        raise Http404
    if other := turned(request):
        return other
    query = request.POST if request.method == "POST" else request.GET
    kind = query.get("kind", "ask")
    kind = kind if kind in KINDS else "ask"
    offer = _offer(request, found, query.get("offer", ""), kind)
    form = LoanForm(
        _of_offer(request.POST.dict(), offer) if request.method == "POST" else None,
        user=request.user, cluster=found, kind=kind, zone_name=Shell(request).zone,
        initial=_of_offer(request.GET.dict(), offer),
    )  # fmt: skip
    if offer is not None:
        _fix(form, offer)
    if request.method == "POST" and form.is_valid():
        try:
            return _made(request, found, kind, form.cleaned_data, offer)
        except ServiceError as refused:
            form.refuse(refused)
    context = {
        "cluster": found, "form": form, "kind": kind, "kinds": KINDS, "offer": offer,
        "left": offer.left if offer else 0, "zone": Shell(request).zone,
    }  # fmt: skip
    return render(request, "web/loans/new.html", context, status=400 if form.errors else 200)


def _offer(request: PersonRequest, cluster: Cluster, text: str, kind: str) -> OpenOffer | None:
    if not text.isdecimal() or kind != "ask" or len(text) > 18:
        return None
    return open_offers(request.user, cluster).filter(pk=int(text)).first()


def _of_offer(values: dict[str, Any], offer: OpenOffer | None) -> dict[str, Any]:
    """What an offer says stands; the rest is asked."""
    if offer is None:
        return values
    fixed = {"lender": offer.lender.name, "gpu_class": offer.gpu_class.name}
    return {"gpus": f"{offer.left / MILLI:g}", "notice_h": offer.notice_h, **values, **fixed}


def _fix(form: LoanForm, offer: OpenOffer) -> None:
    """Its lender may be one that the person does not see otherwise."""
    lender: Any = form.fields["lender"]
    lender.queryset = Queue.objects.filter(pk=offer.lender_id)


def _made(
    request: PersonRequest,
    cluster: Cluster,
    kind: str,
    typed: dict[str, Any],
    offer: OpenOffer | None,
) -> HttpResponse:
    terms = {
        "by": request.user,
        "lender": typed["lender"],
        "gpu_class": cluster.gpu_classes.get(name=typed["gpu_class"]),
        "gpus": typed["gpus"],
        "until": typed["until"],
        "notice_h": typed["notice_h"],
    }
    if kind == "offer":
        doors.offer_to_all(**terms)
        messages.success(request, "Offered. Leads of queues here may ask for it.")
        return redirect("web:loans", cluster.name)
    loan = doors.propose(
        **terms, borrower=typed["borrower"], reason=typed["reason"], asks=kind == "ask", offer=offer
    )
    messages.success(request, f"{loan} waits for consent.")
    return redirect("web:loan", cluster.name, loan.pk)
