"""A new loan: asked for, lent to a queue, or offered to all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from portal.accounts.models import User
from portal.approvals.forms import gpus_field
from portal.approvals.loans import doors
from portal.approvals.loans.models import NOTICE_H
from portal.approvals.loans.who import led_queues, open_offers
from portal.boundary.fields import MomentField
from portal.boundary.forms import WeirForm
from portal.display.format import zone
from portal.teams.access import visible_queues
from portal.web.frame.context import Shell
from portal.web.frame.requests import PersonRequest, form_view, turned
from portal.web.frame.shell import get_cluster
from scheduling.models import MILLI, Cluster, Queue
from scheduling.services.errors import ServiceError

if TYPE_CHECKING:
    from portal.approvals.loans.models import OpenOffer

KINDS = {"ask": "Ask for a loan", "lend": "Lend to a queue", "offer": "Offer to all"}
FIELDS = {
    "ask": ("borrower", "lender", "gpu_class", "gpus", "until", "notice_h", "reason"),
    "lend": ("lender", "borrower", "gpu_class", "gpus", "until", "notice_h", "reason"),
    "offer": ("lender", "gpu_class", "gpus", "until", "notice_h"),
}


def _queue(label: str, required: str) -> forms.ModelChoiceField[Queue]:
    return forms.ModelChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        label=label,
        empty_label=None,
        error_messages={"required": required, "invalid_choice": "Choose one of the listed queues."},
    )


class LoanForm(WeirForm):
    """Which fields it has depends on the kind; the doors check the rest."""

    lender = _queue("Lender", "Say who lends.")
    borrower = _queue("Borrower", "Say who borrows.")
    gpu_class = forms.ChoiceField(label="GPU class")
    gpus = gpus_field("GPUs")
    until = MomentField(label="Until", help_text="It ends by itself then")
    notice_h = forms.IntegerField(
        label="Notice of a recall, hours",
        min_value=0,
        max_value=doors.MOST_NOTICE_H,
        initial=NOTICE_H,
        help_text="So long after a recall the borrower keeps it",
    )
    reason = forms.CharField(
        label="Why",
        max_length=doors.MOST_REASON,
        widget=forms.Textarea(attrs={"rows": 3, "maxlength": doors.MOST_REASON}),
        help_text="Read by the other side.",
    )

    def __init__(
        self, *args: Any, user: User, cluster: Cluster, kind: str, zone_name: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for name in set(self.fields) - set(FIELDS[kind]):
            del self.fields[name]
        self.order_fields(FIELDS[kind])
        fields: dict[str, Any] = self.fields
        fields["until"].zone = zone(zone_name)
        mine = led_queues(user).filter(cluster=cluster).order_by("path")
        seen = visible_queues(user).filter(cluster=cluster, parent__isnull=False).order_by("path")
        own = "borrower" if kind == "ask" else "lender"
        for name in {"lender", "borrower"} & set(fields):
            fields[name].queryset = mine if name == own else seen
        names = cluster.gpu_classes.values_list("name", flat=True)
        fields["gpu_class"].choices = [(name, name) for name in names]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        for name, sentence in (("gpus", "Write how many GPUs."), ("until", "Say until when.")):
            if name not in self.errors and cleaned.get(name) is None:
                self.add_error(name, sentence)
        return cleaned


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
        messages.success(request, "Offered. A lead of a queue here may ask for it.")
        return redirect("web:loans", cluster.name)
    loan = doors.propose(
        **terms, borrower=typed["borrower"], reason=typed["reason"], asks=kind == "ask", offer=offer
    )
    messages.success(request, f"{loan} waits for consent.")
    return redirect("web:loan", cluster.name, loan.pk)
