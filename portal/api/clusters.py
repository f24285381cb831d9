"""Clusters, GPU classes, nodes and priority classes: what there is."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import generics, serializers

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.scope import ClusterView, PersonView, named
from portal.selectors.fields import GpusField
from portal.teams.access import is_operator, visible_clusters
from scheduling.models import Cluster, ClusterMode, GpuClass, Guardrail, Node, PriorityClass
from scheduling.services.clusters.add import set_mode
from scheduling.services.policy.knobs import KNOBS


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    now = serializers.DateTimeField(read_only=True, help_text="The cluster's own time.")

    class Meta:
        model = Cluster
        fields = [
            "name",
            "mode",
            "now",
            "revision",
            "planned_at",
            "guarded_at",
            "currency",
            "display_time_zone",
            *(knob.field for knob in KNOBS),
        ]
        read_only_fields = fields


class ClusterList(PersonView, generics.ListAPIView[Cluster]):
    """Clusters you may see."""

    serializer_class = ClusterSerializer
    queryset = Cluster.objects.none()

    def get_queryset(self) -> QuerySet[Cluster]:
        return visible_clusters(self.person).order_by("name")


class ClusterDetail(ClusterView, generics.RetrieveAPIView[Cluster]):
    """One cluster: its mode, its clock and the policy its engine runs with."""

    serializer_class = ClusterSerializer
    queryset = Cluster.objects.none()

    def get_object(self) -> Cluster:
        return self.cluster


class ModeSerializer(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(choices=ClusterMode.choices)


class ClusterModeView(ClusterView):
    serializer_class = ModeSerializer
    write_scope = Scope.ALL

    @call(ClusterSerializer, takes=ModeSerializer)
    def post(self) -> Any:
        """Observe, enforce or pause the cluster from the next cycle on. For operators."""
        if not is_operator(self.person):
            raise Http404
        set_mode(self.cluster, ClusterMode(self.given["mode"]), author=self.person)
        return self.cluster


class GpuClassSerializer(serializers.ModelSerializer[GpuClass]):
    node_labels: Any = serializers.DictField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = GpuClass
        fields = [
            "name",
            "resource_name",
            "node_labels",
            "exchange_rate",
            "price_per_gpu_hour",
            "position",
            "wait_slo_s",
        ]
        read_only_fields = fields


class GpuClassList(ClusterView, generics.ListAPIView[GpuClass]):
    """GPU classes of a cluster, in the order every page shows them."""

    serializer_class = GpuClassSerializer
    queryset = GpuClass.objects.none()

    def get_queryset(self) -> QuerySet[GpuClass]:
        return GpuClass.objects.filter(cluster=self.cluster)


class NodeSerializer(serializers.ModelSerializer[Node]):
    gpu_class: Any = named()
    node_pool: Any = named(allow_null=True)
    gpus = GpusField(read_only=True)
    allocated_gpus = GpusField(read_only=True)
    foreign_gpus = GpusField(read_only=True, help_text="Held by pods outside the queues.")
    topology: Any = serializers.DictField(child=serializers.CharField(), read_only=True)
    troubles = serializers.SerializerMethodField(
        help_text="Why it takes no work, or less than it has: not_ready, silent, disk_pressure,"
        " memory_pressure, pid_pressure, network_unavailable, cordoned, tainted, reserved,"
        " unhealthy_gpus, no_gpus or gone."
    )

    def get_troubles(self, node: Node) -> list[str]:
        return [trouble["code"] for trouble in node.troubles]

    class Meta:
        model = Node
        fields = [
            "name",
            "gpu_class",
            "node_pool",
            "gpus",
            "allocated_gpus",
            "foreign_gpus",
            "topology",
            "ready",
            "troubles",
        ]
        read_only_fields = fields


class NodeList(ClusterView, generics.ListAPIView[Node]):
    """Nodes of a cluster as the mirror last saw them."""

    serializer_class = NodeSerializer
    queryset = Node.objects.none()
    filterset_fields = ["gpu_class__name", "ready"]

    def get_queryset(self) -> QuerySet[Node]:
        return Node.objects.filter(cluster=self.cluster).select_related("gpu_class", "node_pool")


class GuardrailSerializer(serializers.ModelSerializer[Guardrail]):
    class Meta:
        model = Guardrail
        fields = ["kind", "namespace", "name", "standing", "differs", "detail", "since"]
        read_only_fields = fields

    differs = serializers.ListField(
        source="fields",
        child=serializers.CharField(),
        read_only=True,
        help_text="Paths of the fields that are not as they should be.",
    )


class GuardrailList(ClusterView, generics.ListAPIView[Guardrail]):
    """Objects that Weir keeps on the cluster, as they stood when it compared them last. For operators."""

    serializer_class = GuardrailSerializer
    queryset = Guardrail.objects.none()
    filterset_fields = ["kind", "namespace", "standing"]

    def rows(self) -> QuerySet[Guardrail]:
        if not is_operator(self.person):
            raise Http404
        return Guardrail.objects.filter(cluster=self.cluster)


class PriorityClassSerializer(serializers.ModelSerializer[PriorityClass]):
    class Meta:
        model = PriorityClass
        fields = ["name", "value", "preemptible", "min_run_time_s", "type", "is_default"]
        read_only_fields = fields


class PriorityClassList(PersonView, generics.ListAPIView[PriorityClass]):
    """Priority classes, highest value first."""

    serializer_class = PriorityClassSerializer
    queryset = PriorityClass.objects.all()
