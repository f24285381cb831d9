"""Loans between queues: all that their page does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope, User
from portal.api.bodies import body_of, name_field
from portal.api.nouns import ClusterNoun
from portal.api.scope import ClusterView, RowSerializer, named, sent
from portal.approvals.loans import doors
from portal.approvals.loans.acts import ACTS, LoanTerms, act_of
from portal.approvals.loans.forms import LoanActForm, LoanForm
from portal.approvals.loans.models import NOTICE_H, LoanOffer, QuotaLoan
from portal.approvals.loans.states import OVER, RUNNING, WAITING
from portal.approvals.loans.who import leads, led_of, led_queues, open_offers, verbs, visible_loans
from portal.boundary.reading import MOST
from portal.selectors.fields import GpusField
from portal.teams.access import visible_queues
from scheduling.models import Cluster, GpuClass, Queue
from scheduling.services.errors import ServiceError

STATES = {"waiting": WAITING, "running": RUNNING, "ended": OVER}


class LoanSerializer(RowSerializer[QuotaLoan]):
    """`ends_at` is as agreed, `term_ends_at` as it will be; `may` is what you may do to it now."""

    lender: Any = named()
    borrower: Any = named()
    gpu_class: Any = named()
    gpus = GpusField(read_only=True)
    author: Any = named("username", allow_null=True)
    term_ends_at = serializers.DateTimeField(
        source="term.ends_at", read_only=True, allow_null=True, default=None
    )
    may = serializers.SerializerMethodField()

    class Meta:
        model = QuotaLoan
        fields = [
            "id", "state", "lender", "borrower", "gpu_class", "gpus", "ends_at", "term_ends_at",
            "notice_h", "offer", "author", "reason", "created_at", "since", "may",
        ]  # fmt: skip

    def get_may(self, loan: QuotaLoan) -> list[str]:
        return sorted(verbs(loan, self.context["led"]))


class OfferSerializer(RowSerializer[LoanOffer]):
    lender: Any = named()
    gpu_class: Any = named()
    gpus = GpusField(read_only=True)
    left_gpus = GpusField(source="left", read_only=True, help_text="That nobody has taken.")

    class Meta:
        model = LoanOffer
        fields = [
            "id",
            "lender",
            "gpu_class",
            "gpus",
            "left_gpus",
            "ends_at",
            "notice_h",
            "created_at",
        ]


TERMS = body_of(
    LoanForm, "Terms", lender=name_field(), gpu_class=name_field(), borrower=None, reason=None
)
PROPOSAL = body_of(
    LoanForm,
    "Proposal",
    lender=name_field(),
    borrower=name_field(),
    gpu_class=name_field(),
    kind=serializers.ChoiceField(
        choices=["ask", "lend"], help_text="`ask` for a queue that you lead, or `lend` of one."
    ),
    offer=serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST,
        allow_null=True,
        help_text="An offer to all that it is taken of.",
    ),
)
ACT = body_of(LoanActForm, "LoanAct")


class LoansView(ClusterView):
    serializer_class: Any = LoanSerializer
    queryset = QuotaLoan.objects.none()
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[QuotaLoan]:
        return visible_loans(self.person).filter(cluster=self.cluster)

    def get_serializer_context(self) -> dict[str, Any]:
        led = frozenset() if self.is_schema else led_of(self.person, self.cluster)
        return {**super().get_serializer_context(), "led": led}

    def answer(self, loan: QuotaLoan) -> Response:
        fresh = get_object_or_404(self.get_queryset(), pk=loan.pk)
        return Response(LoanSerializer(fresh, context=self.get_serializer_context()).data)


STATE = OpenApiParameter("state", str, enum=[*STATES, "all"], description="Which; default: all.")


@extend_schema_view(list=extend_schema(parameters=[STATE]))
class Loans(LoansView, ClusterNoun):
    """Loans of queues that you lead, the last moved first."""

    at, key, names = "loans", "<int:pk>", ("loans", "loan")
    one = "One loan."
    takes = PROPOSAL
    is_located = True

    def rows(self) -> QuerySet[QuotaLoan]:
        rows = super().rows()
        wanted = STATES.get(self.request.query_params.get("state", ""))
        return rows.filter(state__in=wanted) if wanted and self.action == "list" else rows

    def make(self) -> Any:
        """Ask for a loan, or offer one to a queue; nothing changes before the other side consents."""
        body = self.given
        offer = _offer(self.person, self.cluster, body.get("offer"))
        mine, seen = led_queues(self.person), visible_queues(self.person)
        asks = body["kind"] == "ask"
        lender = (
            offer.lender
            if offer
            else _queue(self.cluster, seen if asks else mine, body["lender"], "lender")
        )
        borrower = _queue(self.cluster, mine if asks else seen, body["borrower"], "borrower")
        made = doors.propose(
            by=self.person,
            lender=lender,
            borrower=borrower,
            reason=body["reason"],
            asks=asks,
            offer=offer,
            **_terms(self.cluster, body),
        )
        return self.get_queryset().get(pk=made.pk)


class LoanAct(LoansView):
    @property
    def edited(self) -> str:
        """The address whose version it changes."""
        return reverse("api:loan", args=[self.cluster.name, self.kwargs["pk"]])

    def version(self) -> Any:
        return self.answer(self.get_object()).data

    @extend_schema(
        operation_id="clusters_loans_act_create",
        request=ACT,
        responses=LoanSerializer,
        parameters=[OpenApiParameter("verb", str, "path", enum=list(ACTS))],
    )
    def post(self, request: Request, cluster: str, pk: int, verb: str) -> Response:
        """Consent, decline, withdraw, recall, undo a recall, give back. The next cycle sees it."""
        loan = self.get_object()
        act = act_of(self.person, loan, verb)
        if act is None:
            raise NotFound
        body = sent(ACT, request).validated_data
        return self.answer(act(self.person, loan, LoanTerms(**body)))


class Offers(ClusterNoun):
    """Quota that is offered to all, for whoever leads a queue."""

    at, key, names = "loan-offers", "<int:pk>", ("loan_offers", "loan_offer")
    one = "One offer to all. DELETE withdraws it; what was lent of it runs on."
    serializer_class, takes = OfferSerializer, TERMS
    queryset = LoanOffer.objects.none()
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[LoanOffer]:
        return open_offers(self.person, self.cluster)

    def make(self) -> Any:
        """Offer idle nominal quota of a queue that you lead; you consent to each loan of it."""
        body = self.given
        lender = _queue(self.cluster, led_queues(self.person), body["lender"], "lender")
        made = doors.offer_to_all(by=self.person, lender=lender, **_terms(self.cluster, body))
        return self.get_queryset().get(pk=made.pk)

    def remove(self, row: LoanOffer) -> None:
        if not leads(self.person, row.lender):
            raise NotFound
        doors.withdraw_offer(by=self.person, offer=row)


def _terms(cluster: Cluster, body: Mapping[str, Any]) -> dict[str, Any]:
    found = GpuClass.objects.filter(cluster=cluster, name=body["gpu_class"]).first()
    if found is None:
        names = ", ".join(cluster.gpu_classes.values_list("name", flat=True))
        raise ServiceError(
            "no_class", f"There is no GPU class {body['gpu_class']}.", f"Use one of {names}.",
            field="gpu_class",
        )  # fmt: skip
    notice_h = NOTICE_H if body["notice_h"] is None else body["notice_h"]
    return {
        **{name: body[name] for name in ("gpus", "until")},
        "gpu_class": found,
        "notice_h": notice_h,
    }


def _queue(cluster: Cluster, rows: QuerySet[Queue], name: str, field: str) -> Queue:
    mine = rows.filter(cluster=cluster, parent__isnull=False).select_related("cluster")
    found = mine.filter(name=name).first()
    if found is None:
        raise ServiceError(
            "no_such_queue", "There is no such queue for you.", "Name a queue that you lead, or see.",
            field=field,
        )  # fmt: skip
    return found


def _offer(person: User, cluster: Cluster, key: int | None) -> LoanOffer | None:
    if key is None:
        return None
    found = open_offers(person, cluster).filter(pk=key).first()
    if found is None:
        raise ServiceError(
            "no_such_offer",
            "There is no such offer any more.",
            "Read the offers again.",
            field="offer",
        )
    return found
