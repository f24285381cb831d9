"""Consolidations that are ordered, and what came of them. For operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.foresight import OperatedView
from portal.api.scope import named, sent
from scheduling.models import PARTLY_DONE, Consolidation, ConsolidationState
from scheduling.services.consolidation import orders
from scheduling.services.consolidation.moves import MOST_MOVES, MOST_NODES
from scheduling.services.errors import ServiceError


class MoveSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    name = serializers.CharField()
    origin: Any = serializers.ListField(child=serializers.CharField())
    target: Any = serializers.ListField(child=serializers.CharField())
    lost_gpu_s = serializers.FloatField(help_text="GPU-seconds since its last checkpoint.")
    moved = serializers.BooleanField(allow_null=True, help_text="Null until it is known.")
    why = serializers.CharField(help_text="Why it was not moved.")


class ConsolidationSerializer(serializers.ModelSerializer[Consolidation]):
    gpu_class: Any = named()
    cycle: Any = named("number", allow_null=True, help_text="That took it.")
    moves: Any = MoveSerializer(many=True, read_only=True)
    state = serializers.ChoiceField(
        source="stands",
        choices=[*ConsolidationState.choices, PARTLY_DONE],
        read_only=True,
        help_text="Partly done: some of its moves were not made.",
    )

    class Meta:
        model = Consolidation
        fields = [
            "id", "gpu_class", "nodes", "most_moves", "author", "asked_at", "state", "cycle", "moves",
            "outcome", "done_at",
        ]  # fmt: skip
        read_only_fields = fields


class OrderSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(max_length=100)
    nodes = serializers.IntegerField(min_value=1, max_value=MOST_NODES)
    most_moves = serializers.IntegerField(
        required=False, default=MOST_MOVES, min_value=1, max_value=MOST_MOVES
    )


def _of(view: OperatedView) -> QuerySet[Consolidation]:
    if view.is_schema:
        return Consolidation.objects.none()
    rows = Consolidation.objects.filter(cluster=view.cluster)
    return rows.select_related("gpu_class", "cycle", "cluster")


class ConsolidationList(OperatedView, generics.ListAPIView[Consolidation]):
    """What was ordered, the newest first."""

    serializer_class = ConsolidationSerializer
    queryset = Consolidation.objects.none()
    write_scope = Scope.ALL

    def get_queryset(self) -> QuerySet[Consolidation]:
        return _of(self)

    @extend_schema(request=OrderSerializer, responses={201: ConsolidationSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Have the next cycle move work together until so many more nodes are whole."""
        told = sent(OrderSerializer, request).validated_data
        made = orders.order(
            cluster=self.cluster,
            gpu_class=self._gpu_class(told["gpu_class"]),
            nodes=told["nodes"],
            most_moves=told["most_moves"],
            author=self.person,
        )
        address = reverse("api:consolidation", args=[self.cluster.name, made.pk])
        data = ConsolidationSerializer(made).data
        return Response(data, status=status.HTTP_201_CREATED, headers={"Location": address})

    def _gpu_class(self, name: str) -> Any:
        found = self.cluster.gpu_classes.filter(name=name).first()
        if found is None:
            raise ServiceError(
                "unknown_class",
                "There is no such GPU class.",
                "Name a class of this cluster.",
                field="gpu_class",
            )
        return found


class ConsolidationDetail(OperatedView, generics.RetrieveDestroyAPIView[Consolidation]):
    """One of them. DELETE cancels it while it waits for its cycle."""

    serializer_class = ConsolidationSerializer
    queryset = Consolidation.objects.none()
    write_scope = Scope.ALL

    def get_queryset(self) -> QuerySet[Consolidation]:
        return _of(self)

    def perform_destroy(self, instance: Consolidation) -> None:
        if not orders.cancel(instance, author=self.person):
            raise ServiceError(
                "taken", "A cycle took it already.", "Look at what came of it instead."
            )
