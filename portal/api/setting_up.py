"""Everything of the first run by REST: clusters, classes, queues, the tree as one, and the policy."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import yaml
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.clusters import (
    ClusterList,
    ClusterSerializer,
    GpuClassList,
    GpuClassSerializer,
    PriorityClassList,
    PriorityClassSerializer,
)
from portal.api.errors import refuse
from portal.api.queues import QueueDetail, QueueList, QueueSerializer
from portal.api.quotas import AT, asked_at
from portal.api.scope import ClusterView, PersonView, sent
from portal.boundary.reading import one_line
from portal.teams.access import (
    dividable_queues,
    editable_queues,
    is_admin,
    is_operator,
    visible_queues,
)
from scheduling.models import Cluster, PriorityClass, Queue, Stop
from scheduling.services.clusters.classes import (
    LEAST_SLO_S,
    MOST_SLO_S,
    save_gpu_class,
    save_priority_class,
)
from scheduling.services.clusters.connecting import Credentials, connect
from scheduling.services.policy import knobs
from scheduling.services.quotas.tree import create_queue, delete_queue
from scheduling.services.quotas.tree_files import apply_figures, apply_tree, parse, tree_of

LONGEST = 131_072
TYPES: Any = PriorityClass._meta.get_field("type").choices
MOST_WHOLE = 2**31 - 1


class AdminView(PersonView):
    write_scope = Scope.ALL

    def check(self) -> None:
        """Raises Http404 for who does not administer."""
        if not is_admin(self.person):
            raise Http404


class NewClusterSerializer(serializers.Serializer[Any]):
    """A kubeconfig, or an address with a token, or neither: the account of Weir's own pod."""

    name = serializers.SlugField(max_length=50)
    kubeconfig = serializers.CharField(max_length=LONGEST, required=False)
    context: Any = serializers.CharField(max_length=200, required=False, validators=[one_line])
    api_url = serializers.URLField(max_length=200, required=False)
    token = serializers.CharField(max_length=LONGEST, required=False)
    portal_token = serializers.CharField(
        max_length=LONGEST,
        required=False,
        help_text="Of the account that acts for people; left out, the other one does.",
    )
    ca = serializers.CharField(max_length=LONGEST, required=False)


class Clusters(AdminView, ClusterList):
    """Clusters you may see."""

    @call(ClusterSerializer, takes=NewClusterSerializer, code=201)
    def post(self) -> Any:
        """Connect a cluster, in observe mode; one that does not answer is not kept. For who administers."""
        self.check()
        given = dict(self.given)
        name = given.pop("name")
        return connect(name=name, credentials=Credentials(**given), author=self.person)


class GpuClassWriteSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63, validators=[one_line])
    resource_name = serializers.CharField(max_length=200, required=False, validators=[one_line])
    node_labels = serializers.DictField(
        child=serializers.CharField(max_length=63, allow_blank=True), required=False
    )
    exchange_rate = serializers.DecimalField(
        max_digits=9, decimal_places=4, min_value=Decimal(0), required=False
    )
    price_per_gpu_hour = serializers.DecimalField(
        max_digits=10, decimal_places=4, min_value=Decimal(0), required=False
    )
    wait_slo_s = serializers.IntegerField(
        min_value=LEAST_SLO_S,
        max_value=MOST_SLO_S,
        required=False,
        allow_null=True,
        help_text="Seconds that the P90 wait is meant to stay under; null: no SLO.",
    )


class ClusterAdminView(ClusterView):
    write_scope = Scope.ALL

    def check(self) -> None:
        """Raises Http404 for who sees no such cluster, or does not administer."""
        assert self.cluster  # noqa: S101 - fetching it is the check
        if not is_admin(self.person):
            raise Http404


class GpuClasses(ClusterAdminView, GpuClassList):
    """GPU classes of a cluster, in the order every page shows them."""

    @call(GpuClassSerializer, takes=GpuClassWriteSerializer, code=201)
    def post(self) -> Any:
        """Make a GPU class. For who administers."""
        self.check()
        return save_gpu_class(cluster=self.cluster, values=self.given, author=self.person)


class OneGpuClass(ClusterAdminView):
    """One GPU class."""

    serializer_class = GpuClassSerializer

    @call(GpuClassSerializer)
    def get(self, name: str) -> Any:
        return get_object_or_404(self.cluster.gpu_classes, name=name)

    @call(GpuClassSerializer, takes=GpuClassWriteSerializer)
    def put(self, name: str) -> Any:
        """Change what is sent of it. For who administers."""
        self.check()
        found = get_object_or_404(self.cluster.gpu_classes, name=name)
        return save_gpu_class(
            cluster=self.cluster, values=self.given, author=self.person, gpu_class=found
        )


class PriorityClassWriteSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63, validators=[one_line])
    value = serializers.IntegerField(min_value=-1_000_000, max_value=1_000_000, required=False)
    preemptible = serializers.BooleanField(required=False)
    min_run_time_s = serializers.IntegerField(min_value=0, max_value=MOST_WHOLE, required=False)
    type = serializers.ChoiceField(choices=TYPES, required=False)
    is_default = serializers.BooleanField(required=False)


class PriorityClasses(AdminView, PriorityClassList):
    """Priority classes, highest value first."""

    @call(PriorityClassSerializer, takes=PriorityClassWriteSerializer, code=201)
    def post(self) -> Any:
        """Make a priority class. For who administers."""
        self.check()
        return save_priority_class(values=self.given, author=self.person)


class OnePriorityClass(AdminView):
    """One priority class."""

    serializer_class = PriorityClassSerializer

    @call(PriorityClassSerializer)
    def get(self, name: str) -> Any:
        return get_object_or_404(PriorityClass, name=name)

    @call(PriorityClassSerializer, takes=PriorityClassWriteSerializer)
    def put(self, name: str) -> Any:
        """Change what is sent of it. For who administers."""
        self.check()
        found = get_object_or_404(PriorityClass, name=name)
        values = self.given
        return save_priority_class(values=values, author=self.person, priority_class=found)


class NewQueueSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63, validators=[one_line])
    parent: Any = serializers.CharField(max_length=63, help_text="Name of the queue above.")
    priority = serializers.IntegerField(min_value=-1000, max_value=1000, required=False)
    stop = serializers.ChoiceField(choices=[stop.value for stop in Stop], required=False)
    namespace = serializers.CharField(max_length=63, required=False, validators=[one_line])
    taking = serializers.CharField(
        max_length=63,
        required=False,
        validators=[one_line],
        help_text="The namespace once more, by an admin who was shown in a refusal what stands in it.",
    )


class Queues(QueueList):
    """Queues you may see, with their shares."""

    write_scope = Scope.QUOTAS

    @call(QueueSerializer, takes=NewQueueSerializer, code=201)
    def post(self) -> Any:
        """Add a queue below one whose quotas you divide. It starts without quota."""
        mine = dividable_queues(self.person).filter(cluster=self.cluster)
        if not mine.exists():
            raise Http404
        values = dict(self.given)
        parent = mine.select_related("cluster").filter(name=values.pop("parent")).first()
        if parent is None:
            refuse("parent", "You divide no queue of that name.")
        if "stop" in values:
            values["stop"] = Stop(values["stop"])
        made = create_queue(parent=parent, author=self.person, **values)
        return Queue.objects.with_tree_fields().get(pk=made.pk)


class OneQueue(QueueDetail):
    """One queue with its shares."""

    write_scope = Scope.QUOTAS

    @call()
    def delete(self, name: str) -> None:
        """Remove an empty queue below one that you divide."""
        seen = visible_queues(self.person).filter(cluster=self.cluster)
        found = get_object_or_404(seen & editable_queues(self.person), name=name)
        delete_queue(queue=found, author=self.person)


class TreeSerializer(serializers.Serializer[Any]):
    queues = serializers.ListField(
        child=serializers.DictField(), help_text="As the YAML file of the first run has them."
    )
    reason = serializers.CharField(max_length=500, required=False, validators=[one_line])
    taking = serializers.ListField(
        child=serializers.CharField(max_length=63, validators=[one_line]),
        required=False,
        help_text="Namespaces of which you were shown in a refusal what stands in them.",
    )


class MadeSerializer(serializers.Serializer[Any]):
    queues = serializers.ListField(child=serializers.CharField(), help_text="Paths.")


TOP = OpenApiParameter("queue", str, description="Top of a subtree that you divide; default: all.")


class Tree(ClusterAdminView):
    """The queue tree as one: all of what is sent, or nothing."""

    serializer_class = TreeSerializer

    def top(self) -> Queue | None:
        """The queue that ``queue`` of the query names, if the person divides it; None where it names none,
        for who administers. Raises Http404 for everything else."""
        name = self.request.query_params.get("queue")
        if name is None:
            self.check()
            return None
        mine = dividable_queues(self.person).filter(cluster=self.cluster)
        return get_object_or_404(mine.select_related("cluster"), name=name)

    @extend_schema(parameters=[AT, TOP], responses=TreeSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Every queue below the root that there is today, with the figures in force, as PUT takes them. For
        who administers; of ``queue`` for who divides it."""
        top = self.top()
        return Response({"queues": tree_of(self.cluster, asked_at(request, self.cluster), top)})

    @call(MadeSerializer, takes=TreeSerializer, parameters=[TOP])
    def put(self) -> Any:
        """Make and change the queues that are named, with their figures. Others stay. For who administers; of
        ``queue`` who divides it changes the figures, and nothing else."""
        top, given = self.top(), self.given
        text = yaml.safe_dump({"queues": given["queues"]}, sort_keys=False)
        queues = parse(text, self.cluster, name="body")
        reason = given.get("reason") or "By the API"
        if top is not None:
            made = apply_figures(top=top, queues=queues, author=self.person, reason=reason)
        else:
            made = apply_tree(
                cluster=self.cluster,
                queues=queues,
                author=self.person,
                reason=reason,
                taking=given.get("taking", ()),
            )
        return {"queues": [str(queue) for queue in made]}


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
        return Response(_told(found))

    @extend_schema(request=PolicyWriteSerializer, responses=KnobSerializer(many=True))
    def put(self, request: Request, cluster: str) -> Response:
        """Change fields, in force with the next cycle. For who administers."""
        self.check()
        given = sent(PolicyWriteSerializer, request).validated_data
        knobs.set_policy(
            cluster=self.cluster,
            values=given["values"],
            author=self.person,
            reason=given["reason"],
        )
        return Response(_told(self.cluster))


def _told(cluster: Any) -> Any:
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
