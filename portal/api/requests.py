"""Requests: asked for, decided, what became of them, and what a parent lets pass by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope, User
from portal.api.bodies import body_of
from portal.api.nouns import ClusterNoun, verb
from portal.api.request_bodies import (
    FORWARD,
    GRANT,
    NOTE,
    WISH,
    RequestCommentSerializer,
    RequestSerializer,
)
from portal.api.scope import ClusterView, RowSerializer, named
from portal.approvals import automatic, doors, previews, wish_plans
from portal.approvals.forms import RuleForm
from portal.approvals.inbox import narrowed
from portal.approvals.models import ApprovalRule, QuotaRequest
from portal.approvals.states import Verb
from portal.approvals.who import askable_queues, check, visible_requests
from portal.approvals.wishes import Wish, WishError
from portal.plans import asking as plans
from portal.plans.kinds import REQUEST, of_request
from portal.selectors.fields import MAX_GPUS, FiniteField, GpusField
from portal.teams.access import visible_queues
from scheduling.models import MILLI, Queue
from scheduling.services.errors import ServiceError

CHOSEN = ("open", "decide", "mine", "ended", "all")


class RequestsView(ClusterView):
    """Requests that the person may see."""

    serializer_class: Any = RequestSerializer
    queryset = QuotaRequest.objects.none()
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[QuotaRequest]:
        rows = visible_requests(self.person).filter(cluster=self.cluster)
        return rows.prefetch_related("steps__by", "comments__by")

    def handle_exception(self, exc: Exception) -> Response:
        """Every fault of a wish at its field."""
        if isinstance(exc, WishError):
            faults: dict[str, list[str]] = {}
            for fault in exc.faults:
                faults.setdefault(fault.field or "", []).append(str(fault))
            exc = serializers.ValidationError(faults)
        return super().handle_exception(exc)

    def fresh(self, request: QuotaRequest) -> QuotaRequest:
        return get_object_or_404(self.get_queryset(), pk=request.pk)

    def wish(self, data: dict[str, Any]) -> Wish:
        """Raises ServiceError at a queue that the person may not ask for, or does not see."""
        mine = askable_queues(self.person).filter(cluster=self.cluster)
        queue = mine.select_related("cluster", "parent").filter(name=data["queue"]).first()
        if queue is None:
            raise _no_queue("queue", "Name a queue for which you may ask.")
        return Wish.of_sent({**data, "queue": queue, "giver": self.giver(data)})

    def giver(self, data: dict[str, Any]) -> Queue | None:
        name = data.get("giver", "")
        if not name:
            return None
        seen = visible_queues(self.person).filter(cluster=self.cluster, parent__isnull=False)
        found = seen.select_related("cluster", "parent").filter(name=name).first()
        if found is None:
            raise _no_queue("giver", "Name a queue that you see, or leave it to the lead.")
        return found


def _no_queue(field: str, remedy: str) -> ServiceError:
    return ServiceError("no_such_queue", "There is no such queue for you.", remedy, field=field)


STATE = OpenApiParameter(
    "state", str, enum=CHOSEN, description="Which; `decide`: those that wait for people's word."
)


@extend_schema_view(list=extend_schema(parameters=[STATE]))
class Requests(RequestsView, ClusterNoun):
    """Requests that you may see, the last moved first."""

    at, key, names = "requests", "<int:pk>", ("requests", "request")
    one = "One request with its life and its comments."
    takes = WISH
    is_located = True
    decides = frozenset(
        {"submit", "forward", "approve", "ask_changes", "reject", "revoke", "withdraw", "renew"}
    )

    def rows(self) -> QuerySet[QuotaRequest]:
        if self.action != "list":
            return super().rows()
        wanted = self.request.query_params.get("state", "all")
        return narrowed(super().rows(), self.person, wanted)

    def make(self) -> Any:
        """Ask for quota, a boost, a queue or access. Submitted at once unless it is a draft; nothing is kept
        where it cannot be."""
        wish = self.wish(self.given)
        keep = doors.save_draft if self.given["draft"] else doors.submit_new
        return self.fresh(keep(by=self.person, wish=wish))

    def change(self, row: QuotaRequest) -> Any:
        """Edit your draft, or what was sent back to you; submitted again unless `draft`."""
        check(self.person, row, Verb.SAVE)
        made = doors.save_draft(by=self.person, wish=self.wish(self.given), request=row)
        if not self.given["draft"]:
            made = doors.submit(by=self.person, request=made)
        return self.fresh(made)

    @property
    def edited(self) -> str:
        """The address whose version a verb changes."""
        return reverse("api:request", args=[self.cluster.name, self.kwargs["pk"]])

    @verb("submit", RequestSerializer)
    def submit(self) -> Any:
        """Hand your draft to whoever decides."""
        return self._decided(Verb.SUBMIT, doors.submit)

    @verb("forward", RequestSerializer, takes=FORWARD)
    def forward(self) -> Any:
        """The lead's step: to an approver, and from whom it is taken."""
        return self._decided(Verb.FORWARD, self._forward)

    @verb("approve", RequestSerializer, takes=GRANT)
    def approve(self) -> Any:
        """Grant it, or less of it. The next cycle sees it."""
        return self._decided(Verb.APPROVE, self._approve)

    @verb("ask-changes", RequestSerializer, takes=NOTE)
    def ask_changes(self) -> Any:
        """Back to its author, with what should be otherwise."""
        return self._decided(Verb.ASK_CHANGES, doors.ask_changes)

    @verb("reject", RequestSerializer, takes=NOTE)
    def reject(self) -> Any:
        """Refuse it, with why in a word to its author."""
        return self._decided(Verb.REJECT, doors.reject)

    @verb("revoke", RequestSerializer, takes=NOTE)
    def revoke(self) -> Any:
        """Take back what was granted, from now on."""
        return self._decided(Verb.REVOKE, doors.revoke)

    @verb("withdraw", RequestSerializer)
    def withdraw(self) -> Any:
        """You want it no more."""
        return self._decided(Verb.WITHDRAW, doors.withdraw)

    @verb("renew", RequestSerializer)
    def renew(self) -> Any:
        """Ask for the same again, for as long, from where it ends; the answer is the new request."""
        return self._decided(None, doors.renew)

    @verb("comments", RequestCommentSerializer, takes=RequestCommentSerializer, code=201)
    def comment(self) -> Any:
        """A word of anybody who sees the request."""
        return doors.comment(by=self.person, request=self.get_object(), text=self.given["text"])

    def _decided(self, may: Verb | None, act: Callable[..., QuotaRequest]) -> QuotaRequest:
        """Whether the person may comes before what was sent is read. How much an approver grants is for the
        door to say; without ``may`` all of it is."""
        quota_request = self.get_object()
        if may is not None:
            check(self.person, quota_request, may, gpus=0)
        body = self.given if self.takes is not None else {}
        return self.fresh(act(by=self.person, request=quota_request, **body))

    def _forward(self, *, by: User, request: QuotaRequest, **data: Any) -> QuotaRequest:
        note = data.get("note", "")
        return doors.forward(by=by, request=request, giver=self.giver(data), note=note)

    def _approve(self, *, by: User, request: QuotaRequest, **data: Any) -> QuotaRequest:
        return doors.approve(
            by=by,
            request=request,
            note=data["note"],
            gpus=data.get("gpus"),
            ends_at=data.get("ends_at"),
            giver=self.giver(data),
            expected=wish_plans.attached(request),
        )


class RequestPreview(RequestsView):
    """What it would do, as planned for whoever looked last, else for this call; workloads of others are not
    named."""

    serializer_class = serializers.Serializer

    @extend_schema(
        parameters=[OpenApiParameter("gpus", float, description="As if so many were granted.")],
        responses={200: {"type": "object", "additionalProperties": True}},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        quota_request = self.get_object()
        gpus = FiniteField(min_value=0.001, max_value=MAX_GPUS, allow_null=True)
        most = gpus.run_validation(request.query_params.get("gpus") or None)
        milli = min(quota_request.gpus or 0, round(most * MILLI)) if most else None
        answer = plans.plan_now(self.cluster, REQUEST, of_request(quota_request, milli))
        if "fault" in answer:
            raise ServiceError(
                "cannot_plan", answer["fault"],
                "Have its author change it, or decide without a plan and say why.",
            )  # fmt: skip
        seen = previews.seen_by(
            self.person,
            self.cluster,
            answer,
            about=quota_request.place.rpartition("/")[2],
            gpu_class=quota_request.gpu_class,
        )
        return Response({} if seen is None else previews.document(seen))


class RuleSerializer(RowSerializer[ApprovalRule]):
    queue: Any = named()
    below_gpus = GpusField(read_only=True)
    author: Any = named("username", allow_null=True)

    class Meta:
        model = ApprovalRule
        fields = ["queue", "below_gpus", "most_days", "from_siblings", "author", "at"]


@extend_schema_view(update=extend_schema(responses={200: RuleSerializer, 204: None}))
class RequestRules(ClusterNoun):
    """Approval rules of the queues that you see."""

    at, key, names = "request-rules", "<str:queue>", ("request_rules", "request_rule")
    one = "The rule of a queue that you see."
    serializer_class, takes = RuleSerializer, body_of(RuleForm, "SetRule", needs=("below_gpus",))
    lookup_field, lookup_url_kwarg = "queue__name", "queue"
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[ApprovalRule]:
        seen = visible_queues(self.person).filter(cluster=self.cluster)
        rows = ApprovalRule.objects.filter(queue__in=seen)
        return rows.select_related("queue", "author").order_by("queue__path")

    def edited_row(self) -> Queue:
        """The queue: it needs no rule yet."""
        mine = automatic.settable_queues(self.person)
        name, here = self.kwargs["queue"], self.cluster.pk
        found = next((q for q in mine if q.name == name and q.cluster_id == here), None)
        if found is None:
            raise ServiceError(
                "gone",
                "There is no such queue, or you do not divide it.",
                "Name one that you divide.",
            )
        return found

    def change(self, row: Queue) -> Any:
        """Set the rule of a queue that you divide; 204 where it was taken away."""
        return automatic.set_rule(by=self.person, queue=row, **self.given)
