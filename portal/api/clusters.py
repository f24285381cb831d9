"""Clusters: what there is of them, how they are connected, switched and ruled."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.bodies import body_of
from portal.api.nouns import Noun, verb
from portal.api.scope import ClusterView, RowSerializer, named, sent
from portal.boundary.reading import one_line
from portal.selectors.fields import GpusField
from portal.setup.connect_form import ConnectForm
from portal.teams.access import is_admin, is_operator, visible_clusters
from scheduling.models import Cluster, ClusterMode, Guardrail, Node
from scheduling.services.clusters.add import set_mode
from scheduling.services.clusters.connecting import Credentials, connect
from scheduling.services.clusters.enforcing import enforce
from scheduling.services.queues import knobs
from scheduling.services.queues.knobs import KNOBS


class ClusterSerializer(RowSerializer[Cluster]):
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


class ModeSerializer(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(choices=ClusterMode.choices)
    left = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=64,
        help_text="To enforce: what stays outside the queues and was read, as the refusal names it.",
    )


class Clusters(Noun):
    """Clusters you may see."""

    at, key, names = "clusters", "<slug:cluster>", ("clusters", "cluster")
    one = "One cluster: its mode, its clock and the policy its engine runs with."
    serializer_class, takes = ClusterSerializer, body_of(ConnectForm, "NewCluster", way=None)
    write_scope = Scope.ALL
    lookup_field, lookup_url_kwarg = "name", "cluster"
    is_for_admins = True

    def rows(self) -> QuerySet[Cluster]:
        return visible_clusters(self.person).order_by("name")

    def make(self) -> Any:
        """Connect a cluster, in observe mode; one that does not answer is not kept. For who administers."""
        given = dict(self.given)
        name = given.pop("name")
        return connect(name=name, credentials=Credentials(**given), author=self.person)

    @verb("mode", ClusterSerializer, takes=ModeSerializer)
    def mode(self) -> Any:
        """Observe, enforce or pause the cluster from the next cycle on. For operators."""
        if not is_operator(self.person):
            raise Http404
        found = self.get_object()
        mode, left = ClusterMode(self.given["mode"]), self.given["left"]
        if mode == ClusterMode.ENFORCE:
            enforce(found, left=left, author=self.person)
        else:
            set_mode(found, mode, author=self.person)
        return found


class NodeSerializer(RowSerializer[Node]):
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


class NodeList(ClusterView, generics.ListAPIView[Node]):
    """Nodes of a cluster as the mirror last saw them."""

    serializer_class = NodeSerializer
    filterset_fields = ["gpu_class__name", "ready"]

    def rows(self) -> QuerySet[Node]:
        return Node.objects.filter(cluster=self.cluster).select_related("gpu_class", "node_pool")


class GuardrailSerializer(RowSerializer[Guardrail]):
    class Meta:
        model = Guardrail
        fields = ["kind", "namespace", "name", "standing", "differs", "detail", "since"]

    differs = serializers.ListField(
        source="fields",
        child=serializers.CharField(),
        read_only=True,
        help_text="Paths of the fields that are not as they should be.",
    )


class GuardrailList(ClusterView, generics.ListAPIView[Guardrail]):
    """Objects that Weir keeps on the cluster, as they stood when it compared them last. For operators."""

    serializer_class = GuardrailSerializer
    filterset_fields = ["kind", "namespace", "standing"]

    def rows(self) -> QuerySet[Guardrail]:
        if not is_operator(self.person):
            raise Http404
        return Guardrail.objects.filter(cluster=self.cluster)


class ClusterAdminView(ClusterView):
    write_scope = Scope.ALL

    def check(self) -> None:
        """Raises Http404 for whoever sees no such cluster, or does not administer."""
        assert self.cluster  # noqa: S101 - fetching it is the check
        if not is_admin(self.person):
            raise Http404


class KnobSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    group = serializers.CharField()
    name = serializers.CharField()
    meaning = serializers.CharField()
    touches = serializers.CharField()
    unit = serializers.CharField()
    value: Any = serializers.JSONField(allow_null=True)
    default: Any = serializers.JSONField(allow_null=True)


class PolicyWriteSerializer(serializers.Serializer[Any]):
    values: Any = serializers.DictField(help_text="Field to value; others stay as they are.")
    reason = serializers.CharField(max_length=500, validators=[one_line])


class PolicyView(ClusterAdminView):
    """The policy that the engine of a cluster runs with, each field with its meaning and default."""

    serializer_class = KnobSerializer
    queryset = Cluster.objects.none()
    pagination_class = None

    @extend_schema(responses=KnobSerializer(many=True))
    def get(self, request: Request, cluster: str) -> Response:
        """Every setting of the policy, with its bounds and default. For operators."""
        found = self.cluster
        if not is_operator(self.person) and not is_admin(self.person):
            raise Http404
        return Response(_answer(found))

    @extend_schema(request=PolicyWriteSerializer, responses=KnobSerializer(many=True))
    def put(self, request: Request, cluster: str) -> Response:
        """Change fields, in force with the next cycle. For who administers."""
        self.check()
        given = sent(PolicyWriteSerializer, request).validated_data
        knobs.set_policy(
            cluster=self.cluster, values=given["values"], author=self.person, reason=given["reason"]
        )
        return Response(_answer(self.cluster))


def _answer(cluster: Any) -> Any:
    values = knobs.policy_of(cluster)
    rows = [
        {
            "field": knob.field, "group": knob.group, "name": knob.name, "meaning": knob.meaning,
            "touches": knob.touches, "unit": knob.unit,
            "value": values[knob.field], "default": knob.default,
        }
        for knob in knobs.KNOBS
    ]  # fmt: skip
    return KnobSerializer(rows, many=True).data
