"""Queues with their shares."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import generics, serializers

from portal.api.scope import ClusterView, named
from portal.selectors.fields import CpusField, GpusField
from portal.teams.access import visible_queues
from scheduling.models import Queue, Share, StepKind
from scheduling.services.policy.sharing import SAID


class StepSerializer(serializers.Serializer[Any]):
    """One step of the division, in GPUs; the steps of a share sum to it."""

    kind = serializers.ChoiceField(choices=[kind.value for kind in StepKind])
    gpus = serializers.FloatField()
    n = serializers.FloatField(
        help_text="Weight, normalised in its tier; 0 where nothing is short."
    )
    u = serializers.FloatField(help_text="Decayed usage as a share of capacity.")
    w = serializers.FloatField(
        help_text="max(0, n + k (n - u)): the ratio in which spare is poured."
    )
    tier = serializers.IntegerField()


class ShareSerializer(serializers.ModelSerializer[Share]):
    """The newest division of one class, in GPUs. ``limit`` null is unlimited."""

    gpu_class: Any = named()
    fair_share = GpusField(read_only=True)
    potential = GpusField(read_only=True)
    allocated = GpusField(read_only=True)
    nominal = GpusField(read_only=True)
    limit = GpusField(read_only=True, allow_null=True)
    demand = GpusField(read_only=True)
    pending = GpusField(read_only=True)
    guaranteed = GpusField(read_only=True)
    lent = GpusField(read_only=True)
    kept_back = GpusField(read_only=True)
    steps = StepSerializer(many=True, read_only=True)

    class Meta:
        model = Share
        fields = [
            "gpu_class",
            "fair_share",
            "potential",
            "allocated",
            "nominal",
            "limit",
            "demand",
            "pending",
            "guaranteed",
            "lent",
            "kept_back",
            "oversubscribed",
            "steps",
            "usage",
        ]
        read_only_fields = fields


class QueueSerializer(serializers.ModelSerializer[Queue]):
    parent: Any = named(allow_null=True)
    depth = serializers.IntegerField(source="tree_depth", read_only=True, help_text="Root is 0.")
    eviction_budget_gpus = GpusField(read_only=True, allow_null=True)
    max_gpus_per_user = GpusField(read_only=True, allow_null=True)
    pod_security = serializers.CharField(
        read_only=True, help_text="Level of its namespace; empty: as the nearest queue above says."
    )
    max_cpus = CpusField(read_only=True, allow_null=True, help_text="Null: derived from its GPUs.")
    sharing = serializers.CharField(
        read_only=True,
        help_text=" ".join(
            (
                "How what is above nominal is given out below it; empty: as the queue above.",
                *(f"{way.value}: {said}" for way, said in SAID.items()),
            )
        ),
    )
    shares = ShareSerializer(many=True, read_only=True)

    class Meta:
        model = Queue
        fields = [
            "name",
            "path",
            "parent",
            "depth",
            "priority",
            "stop",
            "sharing",
            "namespace",
            "eviction_budget_gpus",
            "max_running",
            "max_running_per_user",
            "max_gpus_per_user",
            "pod_security",
            "max_cpus",
            "max_memory_mib",
            "max_pods",
            "shares",
        ]
        read_only_fields = fields


class QueueView(ClusterView):
    serializer_class = QueueSerializer
    queryset = Queue.objects.none()

    def rows(self) -> QuerySet[Queue]:
        seen: Any = visible_queues(self.person).filter(cluster=self.cluster)
        tree: QuerySet[Queue] = seen.with_tree_fields()
        return tree.select_related("parent").prefetch_related("shares__gpu_class")


class QueueList(QueueView, generics.ListAPIView[Queue]):
    """The quota tree you may see, parents before children, each with its newest shares."""


class QueueDetail(QueueView, generics.RetrieveAPIView[Queue]):
    """One queue with its newest shares."""

    lookup_field = "name"
