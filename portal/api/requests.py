"""Requests: asked for, decided, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.scope import ClusterView
from portal.approvals import automatic, doors, previews
from portal.approvals.models import ApprovalRule, Comment, QuotaRequest, Step
from portal.approvals.moves import title
from portal.approvals.states import Figure, Kind, Verb
from portal.approvals.waiting import narrowed
from portal.approvals.who import askable_queues, check, verbs, visible_requests
from portal.approvals.wishes import MOST_REASON, Wish, WishError
from portal.boundary.reading import one_line, printable, within_calendar
from portal.selectors.fields import GpusField
from portal.teams.access import visible_queues
from portal.teams.reading import reader_of
from scheduling.models import MILLI, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.words.told import queue_of

CHOSEN = ("open", "decide", "mine", "ended", "all")


class RequestStepSerializer(serializers.ModelSerializer[Step]):
    by: Any = serializers.SlugRelatedField(slug_field="username", read_only=True, allow_null=True)

    class Meta:
        model = Step
        fields = ["at", "verb", "by", "before", "after", "note"]
        read_only_fields = fields


class RequestCommentSerializer(serializers.ModelSerializer[Comment]):
    by: Any = serializers.SlugRelatedField(slug_field="username", read_only=True, allow_null=True)
    text = serializers.CharField(max_length=doors.MOST_COMMENT, validators=[printable])

    class Meta:
        model = Comment
        fields = ["id", "at", "by", "text"]
        read_only_fields = ["id", "at", "by"]


class RequestSerializer(serializers.ModelSerializer[QuotaRequest]):
    """What is asked for, and how it stands. Null ends are open; `may` is what you may do to it now."""

    title = serializers.SerializerMethodField()
    queue: Any = serializers.SlugRelatedField(
        slug_field="name", read_only=True, allow_null=True, help_text="Null: it is gone."
    )
    giver = serializers.SerializerMethodField(help_text="Empty: none is named.")
    gpus = GpusField(read_only=True, allow_null=True)
    granted_gpus = GpusField(read_only=True, allow_null=True)
    author: Any = serializers.SlugRelatedField(
        slug_field="username", read_only=True, allow_null=True
    )
    forwarder: Any = serializers.SlugRelatedField(
        slug_field="username", read_only=True, allow_null=True
    )
    decider: Any = serializers.SlugRelatedField(
        slug_field="username", read_only=True, allow_null=True
    )
    may = serializers.SerializerMethodField()
    steps: Any = RequestStepSerializer(many=True, read_only=True)
    comments: Any = RequestCommentSerializer(many=True, read_only=True)

    class Meta:
        model = QuotaRequest
        fields = [
            "id", "title", "kind", "state", "queue", "place", "gpu_class", "priority_class", "figure",
            "gpus", "granted_gpus", "giver", "name", "starts_at", "ends_at", "reason", "author",
            "forwarder", "decider", "decision", "created_at", "since", "granted_at", "outcome", "renews",
            "may", "steps", "comments",
        ]  # fmt: skip
        read_only_fields = fields

    def get_title(self, request: QuotaRequest) -> str:
        return title(request)

    def get_giver(self, request: QuotaRequest) -> str:
        told = queue_of(request.giver, reader_of(self.context["request"])) or ""
        return told.rpartition("/")[2]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_may(self, request: QuotaRequest) -> list[str]:
        return sorted(verbs(self.context["request"].user, request))


class WishSerializer(serializers.Serializer[Any]):
    """What is asked for. A quota or a boost names queue, class and GPUs; a queue its name and the one above;
    access one class."""

    kind = serializers.ChoiceField(choices=Kind.choices)
    queue = serializers.CharField(
        max_length=63, help_text="That gets it; of a new queue, the one above."
    )
    gpu_class = serializers.CharField(max_length=63, required=False, allow_blank=True)
    priority_class = serializers.CharField(max_length=63, required=False, allow_blank=True)
    figure = serializers.ChoiceField(
        choices=Figure.choices, required=False, default=Figure.NOMINAL.value
    )
    gpus = GpusField(required=False, allow_null=True, help_text="How many more.")
    giver = serializers.CharField(
        max_length=63, required=False, allow_blank=True, help_text="A queue beside it that gives."
    )
    name = serializers.CharField(max_length=63, required=False, allow_blank=True)
    starts_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Null: with the approval.",
        validators=[within_calendar],
    )  # fmt: skip
    ends_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Null: no end.", validators=[within_calendar]
    )
    reason = serializers.CharField(
        max_length=MOST_REASON, required=False, allow_blank=True, validators=[printable]
    )
    draft = serializers.BooleanField(
        required=False, default=False, help_text="Keep it to yourself; submit it later."
    )


class GrantSerializer(serializers.Serializer[Any]):
    """Why, and of what is granted how much, until when and from whom; left out: as it is asked."""

    note = serializers.CharField(max_length=doors.MOST_NOTE, validators=[one_line])
    gpus = GpusField(required=False, allow_null=True)
    ends_at = serializers.DateTimeField(
        required=False, allow_null=True, validators=[within_calendar]
    )
    giver = serializers.CharField(max_length=63, required=False, allow_blank=True)


class NoteSerializer(serializers.Serializer[Any]):
    note = serializers.CharField(max_length=doors.MOST_NOTE, validators=[one_line])


class ForwardSerializer(serializers.Serializer[Any]):
    note = serializers.CharField(
        max_length=doors.MOST_NOTE, required=False, allow_blank=True, validators=[one_line]
    )
    giver = serializers.CharField(max_length=63, required=False, allow_blank=True)


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
        gpus = serializers.FloatField(min_value=0.001, allow_null=True)
        most = gpus.run_validation(request.query_params.get("gpus") or None)
        milli = min(asked.gpus or 0, round(most * MILLI)) if most else None
        try:
            kept = previews.of_wish(Wish.of(asked), self.cluster.now(), gpus=milli)
        except ServiceError as refused:
            raise ServiceError("cannot_plan", previews.fault(refused)["fault"]) from refused
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


class RuleSerializer(serializers.ModelSerializer[ApprovalRule]):
    queue: Any = serializers.SlugRelatedField(slug_field="name", read_only=True)
    below_gpus = GpusField(read_only=True)
    author: Any = serializers.SlugRelatedField(
        slug_field="username", read_only=True, allow_null=True
    )

    class Meta:
        model = ApprovalRule
        fields = ["queue", "below_gpus", "most_days", "from_siblings", "author", "at"]
        read_only_fields = fields


class SetRuleSerializer(serializers.Serializer[Any]):
    """What queues directly below are given at once; null takes the rule away."""

    below_gpus = GpusField(allow_null=True)
    most_days = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=automatic.MOST_DAYS
    )
    from_siblings = serializers.BooleanField(required=False, default=False)


class RuleList(ClusterView, generics.ListAPIView[ApprovalRule]):
    """Approval rules of the queues that you see."""

    serializer_class = RuleSerializer
    queryset = ApprovalRule.objects.none()

    def get_queryset(self) -> QuerySet[ApprovalRule]:
        if self.is_schema:
            return ApprovalRule.objects.none()
        seen = visible_queues(self.person).filter(cluster=self.cluster)
        rows = ApprovalRule.objects.filter(queue__in=seen)
        return rows.select_related("queue", "author").order_by("queue__path")


class RuleDetail(ClusterView):
    serializer_class = SetRuleSerializer
    write_scope = Scope.QUOTAS

    @extend_schema(request=SetRuleSerializer, responses={200: RuleSerializer, 204: None})
    def put(self, request: Request, cluster: str, queue: str) -> Response:
        """Set the rule of a queue that you divide; 204 where it was taken away."""
        mine = [one for one in automatic.settable_queues(self.person) if one.name == queue]
        found = next((one for one in mine if one.cluster_id == self.cluster.pk), None)
        if found is None:
            raise ServiceError("gone", "There is no such queue, or you do not divide it.")
        typed = SetRuleSerializer(data=request.data)
        typed.is_valid(raise_exception=True)
        made = automatic.set_rule(by=self.person, queue=found, **typed.validated_data)
        if made is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(RuleSerializer(made).data)
