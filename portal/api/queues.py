"""Queues with their shares, each and as one tree."""

from __future__ import annotations

from typing import Any

import yaml
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.bodies import body_of, name_field
from portal.api.calls import call
from portal.api.clusters import ClusterAdminView
from portal.api.errors import refuse
from portal.api.nouns import ClusterNoun
from portal.api.quotas import AT, asked_at
from portal.api.scope import RowSerializer, named
from portal.boundary.reading import one_line
from portal.selectors.fields import CpusField, GpusField
from portal.setup.queue_form import NewQueueForm
from portal.teams.access import dividable_queues, editable_queues, visible_queues
from scheduling.models import Queue, Share, StepKind, Stop
from scheduling.services.queues.sharing import SAID
from scheduling.services.queues.tree import create_queue, delete_queue
from scheduling.services.queues.tree_files import apply_figures, apply_tree, parse, tree_of


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


class ShareSerializer(RowSerializer[Share]):
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


class QueueSerializer(RowSerializer[Queue]):
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


NEW_QUEUE = body_of(
    NewQueueForm,
    "NewQueue",
    needs=("name",),
    parent=name_field(help_text="Name of the queue above."),
)


class Queues(ClusterNoun):
    """Queues you may see, with their shares."""

    at, key, names = "queues", "<str:name>", ("queues", "queue")
    one = "One queue with its shares."
    serializer_class, takes = QueueSerializer, NEW_QUEUE
    lookup_field = "name"
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[Queue]:
        seen: Any = visible_queues(self.person).filter(cluster=self.cluster)
        tree: QuerySet[Queue] = seen.with_tree_fields()
        return tree.select_related("parent").prefetch_related("shares__gpu_class")

    def make(self) -> Any:
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

    def remove(self, row: Queue) -> None:
        """Remove an empty queue below one that you divide."""
        mine = editable_queues(self.person).select_related("cluster")
        delete_queue(queue=get_object_or_404(mine, pk=row.pk), author=self.person)


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
        for whoever administers. Raises Http404 for everything else."""
        name = self.request.query_params.get("queue")
        if name is None:
            self.check()
            return None
        mine = dividable_queues(self.person).filter(cluster=self.cluster)
        return get_object_or_404(mine.select_related("cluster"), name=name)

    @extend_schema(parameters=[AT, TOP], responses=TreeSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Every queue below the root that there is today, with the figures in force, as PUT takes them. For
        whoever administers; of ``queue`` for whoever divides it."""
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
