"""Requests: asked for, decided, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.requested import (
    ForwardSerializer,
    GrantSerializer,
    NoteSerializer,
    RequestCommentSerializer,
    RequestSerializer,
    WishSerializer,
)
from portal.api.scope import ClusterView
from portal.approvals import doors, previews, unplanned
from portal.approvals.models import QuotaRequest
from portal.approvals.states import Figure, Kind, Verb
from portal.approvals.waiting import narrowed
from portal.approvals.who import askable_queues, check, visible_requests
from portal.approvals.wishes import Wish, WishError
from portal.selectors.fields import MAX_GPUS, FiniteField
from portal.teams.access import visible_queues
from scheduling.models import MILLI, Queue
from scheduling.services.errors import ServiceError

CHOSEN = ("open", "decide", "mine", "ended", "all")


class RequestsView(ClusterView):
    """Requests that the person may see."""

    serializer_class: Any = RequestSerializer
    queryset = QuotaRequest.objects.none()
    write_scope = Scope.QUOTAS

    def get_queryset(self) -> QuerySet[QuotaRequest]:
        if self.is_schema:
            return QuotaRequest.objects.none()
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

    def told(self, request: QuotaRequest, code: int = status.HTTP_200_OK) -> Response:
        fresh = get_object_or_404(self.get_queryset(), pk=request.pk)
        address = reverse("api:request", args=[self.cluster.name, fresh.pk])
        data = RequestSerializer(fresh, context=self.get_serializer_context()).data
        headers = {"Location": address} if code == status.HTTP_201_CREATED else None
        return Response(data, status=code, headers=headers)

    def wish(self, asked: dict[str, Any]) -> Wish:
        """Raises ServiceError at a queue that the person may not ask for, or does not see."""
        mine = askable_queues(self.person).filter(cluster=self.cluster)
        queue = mine.select_related("cluster", "parent").filter(name=asked["queue"]).first()
        if queue is None:
            raise _no_queue("queue", "Name a queue for which you may ask.")
        return Wish(
            kind=Kind(asked["kind"]),
            queue=queue,
            gpu_class=asked.get("gpu_class", ""),
            priority_class=asked.get("priority_class", ""),
            figure=Figure(asked["figure"]),
            gpus=asked.get("gpus"),
            giver=self.giver(asked),
            name=asked.get("name", ""),
            starts_at=asked.get("starts_at"),
            ends_at=asked.get("ends_at"),
            reason=asked.get("reason", ""),
        )

    def giver(self, asked: dict[str, Any]) -> Queue | None:
        name = asked.get("giver", "")
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


class RequestList(RequestsView, generics.ListAPIView[QuotaRequest]):
    """Requests that you may see, the last moved first."""

    def get_queryset(self) -> QuerySet[QuotaRequest]:
        rows = super().get_queryset()
        if self.is_schema:
            return rows
        return narrowed(rows, self.person, self.request.query_params.get("state", "all"))

    @extend_schema(parameters=[STATE])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=WishSerializer, responses={201: RequestSerializer})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ask. Submitted at once unless it is a draft; nothing is kept where it cannot be."""
        asked = WishSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = self.wish(asked.validated_data)
        keep = doors.save_draft if asked.validated_data["draft"] else doors.submit_new
        return self.told(keep(by=self.person, wish=wish), status.HTTP_201_CREATED)


class RequestDetail(RequestsView, generics.RetrieveAPIView[QuotaRequest]):
    """One request with its life and its comments."""

    @extend_schema(request=WishSerializer, responses=RequestSerializer)
    def put(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Edit your draft, or what was sent back to you; submitted again unless `draft`."""
        mine = self.get_object()
        check(self.person, mine, Verb.SAVE)
        asked = WishSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = self.wish(asked.validated_data)
        made = doors.save_draft(by=self.person, wish=wish, request=mine)
        if not asked.validated_data["draft"]:
            made = doors.submit(by=self.person, request=made)
        return self.told(made)


class RequestPreview(RequestsView):
    """What it would do, planned now on the live cluster; workloads of others are not named."""

    serializer_class = serializers.Serializer

    @extend_schema(
        parameters=[OpenApiParameter("gpus", float, description="As if so many were granted.")],
        responses={200: {"type": "object", "additionalProperties": True}},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        asked = self.get_object()
        gpus = FiniteField(min_value=0.001, max_value=MAX_GPUS, allow_null=True)
        most = gpus.run_validation(request.query_params.get("gpus") or None)
        milli = min(asked.gpus or 0, round(most * MILLI)) if most else None
        try:
            kept = previews.of_wish(Wish.of(asked), self.cluster.now(), gpus=milli)
        except ServiceError as refused:
            raise ServiceError(
                "cannot_plan",
                unplanned.fault(refused)["fault"],
                "Have its author change it, or decide without a plan and say why.",
            ) from refused
        seen = previews.seen_by(
            self.person,
            self.cluster,
            kept,
            about=asked.place.rpartition("/")[2],
            gpu_class=asked.gpu_class,
        )
        return Response({} if seen is None else previews.document(seen))


class _Verb(RequestsView):
    """What is done to a request; the answer is the request as it is then."""

    verb: Verb
    takes: type[serializers.Serializer[Any]] | None = None

    @property
    def edited(self) -> str:
        """The address whose version it changes."""
        return reverse("api:request", args=[self.cluster.name, self.kwargs["pk"]])

    def version(self) -> Any:
        return self.told(self.get_object()).data

    def may(self, asked: QuotaRequest) -> None:
        """Before what was sent is read. How much an approver grants is looked at by the door."""
        check(self.person, asked, self.verb, gpus=0)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        raise NotImplementedError

    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        asked = self.get_object()
        self.may(asked)
        told: dict[str, Any] = {}
        if self.takes is not None:
            typed = self.takes(data=request.data)
            typed.is_valid(raise_exception=True)
            told = typed.validated_data
        return self.told(self.act(asked, told))


def _schema(takes: type[serializers.Serializer[Any]] | None) -> Callable[[Any], Any]:
    return extend_schema(request=takes, responses=RequestSerializer)


class RequestSubmit(_Verb):
    verb = Verb.SUBMIT

    @_schema(None)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Hand your draft to whoever decides."""
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        return doors.submit(by=self.person, request=asked)


class RequestForward(_Verb):
    verb = Verb.FORWARD
    takes = ForwardSerializer

    @_schema(ForwardSerializer)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The lead's step: to an approver, and from whom it is taken."""
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        note = told.get("note", "")
        return doors.forward(by=self.person, request=asked, giver=self.giver(told), note=note)


class RequestApprove(_Verb):
    verb = Verb.APPROVE
    takes = GrantSerializer

    @_schema(GrantSerializer)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Grant it, or less of it. The next cycle sees it."""
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        return doors.approve(
            by=self.person,
            request=asked,
            note=told["note"],
            gpus=told.get("gpus"),
            ends_at=told.get("ends_at"),
            giver=self.giver(told),
            expected=previews.attached(asked),
        )


class RequestAskChanges(_Verb):
    verb = Verb.ASK_CHANGES
    takes = NoteSerializer

    @_schema(NoteSerializer)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Back to its author, with what should be otherwise."""
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        return doors.ask_changes(by=self.person, request=asked, note=told["note"])


class RequestReject(_Verb):
    verb = Verb.REJECT
    takes = NoteSerializer

    @_schema(NoteSerializer)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        return doors.reject(by=self.person, request=asked, note=told["note"])


class RequestRevoke(_Verb):
    verb = Verb.REVOKE
    takes = NoteSerializer

    @_schema(NoteSerializer)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Take back what was granted, from now on."""
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        return doors.revoke(by=self.person, request=asked, note=told["note"])


class RequestWithdraw(_Verb):
    verb = Verb.WITHDRAW

    @_schema(None)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """You want it no more."""
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        return doors.withdraw(by=self.person, request=asked)


class RequestRenew(_Verb):
    def may(self, asked: QuotaRequest) -> None:
        """For the door to say: whoever may ask there may."""

    @_schema(None)
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ask for the same again, for as long, from where it ends; the answer is the new request."""
        return super().post(request, *args, **kwargs)

    def act(self, asked: QuotaRequest, told: dict[str, Any]) -> QuotaRequest:
        return doors.renew(by=self.person, request=asked)


class RequestComments(RequestsView):
    """A word of anybody who sees the request."""

    serializer_class = RequestCommentSerializer

    @extend_schema(request=RequestCommentSerializer, responses={201: RequestCommentSerializer})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        asked = self.get_object()
        typed = RequestCommentSerializer(data=request.data)
        typed.is_valid(raise_exception=True)
        made = doors.comment(by=self.person, request=asked, text=typed.validated_data["text"])
        return Response(RequestCommentSerializer(made).data, status=status.HTTP_201_CREATED)
