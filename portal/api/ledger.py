"""The ledger: cycles, decisions and evictions."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from rest_framework import generics, serializers

from portal.api.nouns import ClusterNoun
from portal.api.scope import ClusterView, RowSerializer, named
from portal.display.filters import DecisionFilter, EvictionFilter
from portal.selectors.fields import GpuHoursField, GpusField
from portal.teams.access import visible_workloads
from portal.teams.reading import reader_of
from scheduling.models import Cycle, Decision, Eviction
from scheduling.services.words.sentences import Reader, name_of, queue_of, readable


class ToldSerializer(RowSerializer[Any]):
    """A row with a sentence and numbers, as the person who asks may have them."""

    numbers: Any = serializers.DictField(read_only=True)

    @property
    def reader(self) -> Reader:
        return reader_of(self.context["request"])

    def to_representation(self, row: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(row)
        may = readable(row, self.reader)
        return shown | {
            name: getattr(may, name) for name in ("sentence", "numbers") if name in self.fields
        }


class PartySerializer(ToldSerializer):
    """The same with the one for whom it was decided."""

    for_workload = serializers.SerializerMethodField(
        help_text="Its name; that it is another team's, where you may not see it."
    )

    def get_for_workload(self, row: Any) -> str | None:
        return name_of(row.for_workload, self.reader)


class CycleSerializer(RowSerializer[Cycle]):
    class Meta:
        model = Cycle
        fields = [
            "number",
            "at",
            "took_ms",
            "lag_s",
            "trigger",
            "mode",
            "pending",
            "running",
            "admitted",
            "evicted",
        ]


class Cycles(ClusterNoun):
    """Passes of the engine, newest first."""

    at, key, names = "cycles", "<int:number>", ("cycles", "cycle")
    one = "One pass of the engine."
    serializer_class = CycleSerializer
    lookup_field = "number"

    def rows(self) -> QuerySet[Cycle]:
        return Cycle.objects.filter(cluster=self.cluster).order_by("-number")


class DecisionSerializer(PartySerializer):
    """One line of a plan. Others' work and queues are not named, nor are figures of such queues."""

    cycle = serializers.IntegerField(source="cycle.number", read_only=True)
    at = serializers.DateTimeField(source="cycle.at", read_only=True)
    workload = serializers.CharField(source="workload.uid", read_only=True, help_text="Its uid.")
    name = serializers.CharField(source="workload.name", read_only=True)
    gpu_class: Any = named(allow_null=True)
    placement: Any = serializers.DictField(child=serializers.IntegerField(), read_only=True)

    class Meta:
        model = Decision
        fields = [
            "cycle",
            "at",
            "workload",
            "name",
            "action",
            "reason",
            "sentence",
            "numbers",
            "gpu_class",
            "members",
            "placement",
            "for_workload",
            "until",
            "position",
        ]


class DecisionList(ClusterView, generics.ListAPIView[Decision]):
    """What the engine decided about the workloads you may see, newest cycle first."""

    serializer_class = DecisionSerializer
    filterset_class = DecisionFilter

    def rows(self) -> QuerySet[Decision]:
        return (
            Decision.objects.filter(cycle__cluster=self.cluster)
            .filter(workload__in=visible_workloads(self.person))
            .select_related("cycle", "workload__queue", "gpu_class", "for_workload__queue")
            .order_by("-cycle__number", "id")
        )


class EvictionSerializer(PartySerializer):
    """Of a victim that you may not see, the uid, name and sentence are null."""

    workload = serializers.CharField(
        source="workload.uid", read_only=True, allow_null=True, help_text="Its uid."
    )
    name = serializers.CharField(source="workload.name", read_only=True, allow_null=True)
    sentence = serializers.CharField(read_only=True, allow_null=True)
    cycle = serializers.IntegerField(
        source="cycle.number", read_only=True, allow_null=True, default=None
    )
    queue = serializers.SerializerMethodField(help_text="Its path, where you may see it.")
    for_queue = serializers.SerializerMethodField(help_text="The same.")
    gpu_class: Any = named(allow_null=True)
    gpus = GpusField(read_only=True)
    asked_gpus = GpusField(read_only=True)
    lost_gpu_hours = GpuHoursField(source="lost_gpu_s", read_only=True)
    allowed_by = serializers.CharField(
        read_only=True, help_text="Which row of the rules let it go; empty where nobody noted it."
    )
    in_vain = serializers.CharField(
        read_only=True,
        help_text="Why whom it made room for did not get it; empty where it did, or still may.",
    )

    class Meta:
        model = Eviction
        fields = [
            "at",
            "rule",
            "allowed_by",
            "in_vain",
            "workload",
            "name",
            "queue",
            "for_workload",
            "for_queue",
            "gpu_class",
            "gpus",
            "asked_gpus",
            "lost_gpu_hours",
            "sentence",
            "numbers",
            "cycle",
        ]

    def get_queue(self, eviction: Eviction) -> str | None:
        return queue_of(eviction.queue, self.reader)

    def get_for_queue(self, eviction: Eviction) -> str | None:
        return queue_of(eviction.for_queue, self.reader)

    def to_representation(self, eviction: Eviction) -> dict[str, Any]:
        shown = super().to_representation(eviction)
        if not getattr(eviction, "victim_is_seen", True):
            shown |= dict.fromkeys(("workload", "name", "sentence"))
        return shown


EVICTION_PARTIES = (
    "workload__queue", "cycle", "queue", "for_queue", "for_workload__queue", "gpu_class",
)  # fmt: skip


class EvictionList(ClusterView, generics.ListAPIView[Eviction]):
    """Evictions in which you may see the victim or the winner, newest first."""

    serializer_class = EvictionSerializer
    filterset_class = EvictionFilter

    def rows(self) -> QuerySet[Eviction]:
        seen = visible_workloads(self.person).filter(cluster=self.cluster).values("pk")
        return (
            Eviction.objects.filter(workload__cluster=self.cluster)
            .filter(Q(workload__in=seen) | Q(for_workload__in=seen))
            .annotate(victim_is_seen=Exists(seen.filter(pk=OuterRef("workload"))))
            .select_related(*EVICTION_PARTIES)
        )
