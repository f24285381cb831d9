"""Consolidations that are ordered, and what came of them. For operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from portal.accounts.models import Scope
from portal.api.foresight import OperatedView
from portal.api.nouns import ClusterNoun
from portal.api.scope import RowSerializer, named
from scheduling.models import PARTLY_DONE, Consolidation, ConsolidationState
from scheduling.services.clusters import consolidation_orders
from scheduling.services.clusters.consolidation import MOST_MOVES, MOST_NODES
from scheduling.services.errors import ServiceError


class MoveSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    name = serializers.CharField()
    origin: Any = serializers.ListField(child=serializers.CharField())
    target: Any = serializers.ListField(child=serializers.CharField())
    lost_gpu_s = serializers.FloatField(help_text="GPU-seconds since its last checkpoint.")
    moved = serializers.BooleanField(allow_null=True, help_text="Null until it is known.")
    why = serializers.CharField(help_text="Why it was not moved.")


class ConsolidationSerializer(RowSerializer[Consolidation]):
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


class OrderSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(max_length=100)
    nodes = serializers.IntegerField(min_value=1, max_value=MOST_NODES)
    most_moves = serializers.IntegerField(
        required=False, default=MOST_MOVES, min_value=1, max_value=MOST_MOVES
    )


class Consolidations(OperatedView, ClusterNoun):
    """What was ordered, the newest first."""

    at, key, names = "consolidations", "<int:pk>", ("consolidations", "consolidation")
    one = "One of them. DELETE cancels it while it waits for its cycle."
    serializer_class, takes = ConsolidationSerializer, OrderSerializer
    write_scope = Scope.ALL
    queryset = Consolidation.objects.none()
    is_located = True

    def rows(self) -> QuerySet[Consolidation]:
        rows = Consolidation.objects.filter(cluster=self.cluster)
        return rows.select_related("gpu_class", "cycle", "cluster")

    def make(self) -> Any:
        """Have the next cycle move work together until so many more nodes are whole."""
        body = self.given
        return consolidation_orders.order(
            cluster=self.cluster,
            gpu_class=self._gpu_class(body["gpu_class"]),
            nodes=body["nodes"],
            most_moves=body["most_moves"],
            author=self.person,
        )

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

    def remove(self, row: Consolidation) -> None:
        if not consolidation_orders.cancel(row, author=self.person):
            raise ServiceError(
                "taken", "A cycle took it already.", "Look at what came of it instead."
            )
