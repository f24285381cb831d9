"""Quotas: in force, through time, planned on the live cluster, and changed through the one door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Max, Q, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope, User
from portal.api.errors import MissingRight, refuse
from portal.api.scope import ClusterView, RowSerializer, named, sent
from portal.approvals.edits import expectation, revert, save
from portal.approvals.loans.previews import with_loans
from portal.approvals.previews import document, seen_by
from portal.boundary.reading import MOST, instant, one_line, within_calendar
from portal.display.filters import QuotaFilter
from portal.selectors.fields import GpusField
from portal.teams.access import (
    dividable_queues,
    editable_queues,
    own_queues,
    visible_cells,
    visible_queues,
)
from scheduling.models import Cluster, Queue, Quota, QuotaChange
from scheduling.services.queues.save import Field, QuotaCell, QuotaError
from scheduling.services.studies.whatif.documents import changes_of
from scheduling.services.studies.whatif.preview import preview


class QuotaSerializer(RowSerializer[Quota]):
    """A row that holds during [effective_from, effective_until). A null limit is unlimited."""

    queue: Any = named()
    gpu_class: Any = named()
    nominal_gpus = GpusField(read_only=True)
    borrowing_limit_gpus = GpusField(read_only=True, allow_null=True)
    lending_limit_gpus = GpusField(read_only=True, allow_null=True)
    weight = serializers.FloatField(read_only=True)
    change = serializers.IntegerField(source="change_id", read_only=True, allow_null=True)

    class Meta:
        model = Quota
        fields = [
            "queue",
            "gpu_class",
            "nominal_gpus",
            "borrowing_limit_gpus",
            "lending_limit_gpus",
            "weight",
            "budget_gpu_hours",
            "effective_from",
            "effective_until",
            "change",
        ]


class CellSerializer(serializers.Serializer[Any]):
    queue = serializers.CharField(max_length=63)
    gpu_class = serializers.CharField(max_length=63)
    field = serializers.ChoiceField(choices=[f.value for f in Field])
    value = serializers.DecimalField(
        max_digits=12,
        decimal_places=3,
        min_value=Decimal(0),
        allow_null=True,
        help_text="GPUs, GPU-hours a month, or the weight; null is unlimited (limits only).",
    )


class ChangeRequestSerializer(serializers.Serializer[Any]):
    """An edit of quotas strictly below ``queue``, all or nothing."""

    queue = serializers.CharField(max_length=63, help_text="Top of the subtree that is edited.")
    cells = CellSerializer(many=True, allow_empty=False)
    reason = serializers.CharField(max_length=500, validators=[one_line])
    effective_from = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Null: now.", validators=[within_calendar]
    )
    effective_until = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Null: no end.", validators=[within_calendar]
    )
    version = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        help_text="The newest `change` of the rows (all=true) of `queue` and below that this edit was made "
        "of, 0 for none. Refused as `stale` when there is a newer one; left out, the last edit wins.",
    )


class ChangedCellSerializer(serializers.Serializer[Any]):
    queue = serializers.CharField()
    gpu_class = serializers.CharField()
    field = serializers.CharField()
    before = serializers.FloatField(allow_null=True)
    after = serializers.FloatField(allow_null=True)


class QuotaChangeSerializer(RowSerializer[QuotaChange]):
    queue: Any = named()
    author: Any = named("username", allow_null=True)
    cells = serializers.SerializerMethodField(help_text="Those of queues you may see.")
    expected = serializers.SerializerMethodField(
        help_text="The outcome that a plan foretold, in numbers; empty where nothing was planned."
    )

    class Meta:
        model = QuotaChange
        fields = [
            "id",
            "queue",
            "author",
            "reason",
            "at",
            "effective_from",
            "effective_until",
            "cells",
            "expected",
        ]

    def get_expected(self, change: QuotaChange) -> str:
        return expectation(change.expected)

    @extend_schema_field(ChangedCellSerializer(many=True))
    def get_cells(self, change: QuotaChange) -> Any:
        seen = self.context["seen"]
        return [cell for cell in change.cells if cell["queue"] in seen]


AT = OpenApiParameter("at", datetime, description="In force at this instant; default: now.")
ALL = OpenApiParameter("all", bool, description="Every row, past and planned ones too.")


class QuotaList(ClusterView, generics.ListAPIView[Quota]):
    """Quotas of the queues you may see, in force at one instant or through all time."""

    serializer_class = QuotaSerializer
    filterset_class = QuotaFilter
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[Quota]:
        rows = Quota.objects.filter(
            queue__in=visible_queues(self.person).filter(cluster=self.cluster)
        )
        if self.request.query_params.get("all", "").lower() not in ("true", "1"):
            rows = rows.in_force(asked_at(self.request, self.cluster))
        return rows.select_related("queue", "gpu_class").order_by(
            "queue__path", "gpu_class__position", "effective_from"
        )

    def version(self) -> dict[str, int]:
        """The newest change that rows which the person sees come from; filters do not matter."""
        mine = visible_queues(self.person).filter(cluster=self.cluster)
        newest = Quota.objects.filter(queue__in=mine).aggregate(at=Max("change"))["at"]
        return {"change": newest or 0}

    @extend_schema(parameters=[AT, ALL])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=ChangeRequestSerializer, responses={201: QuotaChangeSerializer})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Change quotas below a queue you lead. Saving changes no pod; the next cycle sees it."""
        body = sent(ChangeRequestSerializer, request)
        change = self._save(body.validated_data)
        mine = {"seen": {cell["queue"] for cell in change.cells}}
        answer = QuotaChangeSerializer(change, context=mine).data
        return Response(answer, status=status.HTTP_201_CREATED)

    def _save(self, data: dict[str, Any]) -> QuotaChange:
        seen = visible_queues(self.person).filter(cluster=self.cluster)
        queue = get_object_or_404(seen, name=data["queue"])
        check_cells(self.person, self.cluster, data["cells"])
        try:
            return save(
                queue=queue,
                cells=[as_cell(cell) for cell in data["cells"]],
                author=self.person,
                reason=data["reason"],
                effective_from=data.get("effective_from"),
                effective_until=data.get("effective_until"),
                version=data.get("version"),
            )
        except QuotaError as refused:
            raise serializers.ValidationError(_faults(refused, data["cells"])) from refused


def check_cells(person: User, cluster: Cluster, cells: list[dict[str, Any]]) -> None:
    """Every cell names a queue the person edits; a name they can't see counts the same. Raises NotAllowed."""
    mine = editable_queues(person).filter(cluster=cluster)
    names = set(mine.values_list("name", flat=True))
    wrong = next((cell["queue"] for cell in cells if cell["queue"] not in names), None)
    if wrong is not None:
        raise MissingRight(
            f"You may not edit quotas of a queue called '{wrong}'.",
            "Ask the lead of the team above it.",
        )


def asked_at(request: Request, cluster: Cluster) -> datetime:
    """What ``at`` in the query says, else now. Raises ValidationError."""
    text = request.query_params.get("at")
    return cluster.now() if text is None else read_instant("at", text)


def read_instant(name: str, text: str) -> datetime:
    """An ISO 8601 instant of the query, UTC unless it says otherwise. Raises ValidationError."""
    try:
        return instant(text.replace(" ", "+"))
    except ValidationError as error:
        said = " ".join(error.messages)
        refuse(name, f"'{text[:40]}': {said} Write one such as 2026-01-05T10:00:00Z.")


def as_cell(cell: Mapping[str, Any]) -> QuotaCell:
    """Of a validated ``CellSerializer``."""
    value: Decimal | None = cell["value"]
    return QuotaCell(cell["queue"], cell["gpu_class"], Field(cell["field"]), value)


def _faults(refused: QuotaError, cells: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Faults of figures at ``cells.N.value``, the rest at their own field."""
    found: dict[str, list[str]] = {}
    for fault in refused.faults:
        place = next(
            (
                f"cells.{i}.value"
                for i, cell in enumerate(cells)
                if (cell["queue"], cell["gpu_class"], cell["field"])
                == (fault.queue, fault.gpu_class, fault.field)
            ),
            "cells" if fault.queue else fault.field,
        )
        found.setdefault(place, []).append(f"{fault.sentence} {fault.remedy}")
    return found


class QuotaChangeList(ClusterView, generics.ListAPIView[QuotaChange]):
    """Changes of quotas, with author, time and reason, newest first."""

    serializer_class = QuotaChangeSerializer

    def rows(self) -> QuerySet[QuotaChange]:
        own = own_queues(self.person).filter(cluster=self.cluster)
        touched = Quota.objects.filter(queue__in=own).exclude(change=None).values("change")
        rows = QuotaChange.objects.filter(Q(queue__in=own) | Q(pk__in=touched))
        return rows.select_related("queue", "author").order_by("-at", "-id")

    def get_serializer_context(self) -> dict[str, Any]:
        seen = visible_queues(self.person) if not self.is_schema else Queue.objects.none()
        names = seen.filter(cluster__name=self.kwargs.get("cluster")).values_list("name", flat=True)
        return {**super().get_serializer_context(), "seen": set(names)}


class RevertSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=500, validators=[one_line])


class QuotaRevert(ClusterView):
    serializer_class = RevertSerializer
    queryset = QuotaChange.objects.none()
    write_scope = Scope.QUOTAS

    @extend_schema(request=RevertSerializer, responses={201: QuotaChangeSerializer})
    def post(self, request: Request, cluster: str, pk: int) -> Response:
        """Put back what a change replaced: a new change, planned and checked like any other."""
        mine = QuotaChange.objects.filter(
            cluster=self.cluster, queue__in=dividable_queues(self.person)
        )
        change = get_object_or_404(mine.select_related("cluster", "queue"), pk=pk)
        body = sent(RevertSerializer, request)
        try:
            made = revert(change=change, author=self.person, reason=body.validated_data["reason"])
        except QuotaError as refused:
            raise serializers.ValidationError(_faults(refused, [])) from refused
        seen = {"seen": {cell["queue"] for cell in visible_cells(self.person, made)}}
        return Response(QuotaChangeSerializer(made, context=seen).data, status=201)


Json = dict[str, Any]


class EditSerializer(serializers.Serializer[Any]):
    cells = CellSerializer(many=True, allow_empty=False)


class QuotaPreview(ClusterView):
    serializer_class = EditSerializer
    write_scope = Scope.QUOTAS

    @extend_schema(
        request=EditSerializer, responses={200: {"type": "object", "additionalProperties": True}}
    )
    def post(self, request: Request, cluster: str) -> Response:
        """What an edit of quotas would do now: who starts, leaves or waits longer, and whose fair share
        moves. Nothing is saved; others' workloads are not named."""
        body = sent(EditSerializer, request)
        cells = body.validated_data["cells"]
        check_cells(self.person, self.cluster, cells)
        changes = changes_of(map(as_cell, cells))
        answer = preview(self.cluster, with_loans(self.cluster, changes))
        return Response(self._answer(answer, cells))

    def _answer(self, answer: Json, cells: Iterable[Mapping[str, Any]]) -> Json:
        about = {cell["gpu_class"]: cell["queue"] for cell in cells}
        body: Json = {}
        for name, queue in about.items():
            seen = seen_by(self.person, self.cluster, answer, about=queue, gpu_class=name)
            if seen is None:
                continue
            one = document(seen)
            rows = [{**row, "gpu_class": name} for row in one.pop("queues")]
            body = {**one, "queues": [*body.get("queues", []), *rows]}
        return body
