"""Work that runs without a queue, and the call that brings it in. For operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.foresight import OperatedView
from portal.teams.people import named_person
from scheduling.models import Cluster
from scheduling.services.clusters.adopting import adopt
from scheduling.services.clusters.outside import Outside, look

MOST = 300
"""Brought in by one call."""


class OutsideSerializer(serializers.Serializer[Outside]):
    uid = serializers.CharField()
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    gpus = serializers.IntegerField()
    user = serializers.CharField(help_text="As it says itself; empty where it does not.")
    queue = serializers.CharField(
        help_text="That takes work of its namespace; empty where none does."
    )
    line = serializers.CharField(
        help_text="The command that brings it in; empty where no label does."
    )
    remedy = serializers.CharField(help_text="Where no label does, what does.")


class AdoptSerializer(serializers.Serializer[Any]):
    workloads: Any = serializers.ListField(
        child=serializers.CharField(max_length=64),
        allow_empty=False,
        max_length=MOST,
        help_text="By uid.",
    )
    owner = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=150,
        help_text="Whose it is from then on; empty: whose it says.",
    )


class OutsideWork(OperatedView):
    """Work that holds or asks for GPUs and names no queue: it is counted as used and never evicted."""

    write_scope = Scope.ALL
    pagination_class = None
    queryset = Cluster.objects.none()
    serializer_class = OutsideSerializer

    @call(OutsideSerializer, many=True)
    def get(self) -> Sequence[Outside]:
        """What holds most first, as the cluster shows it now."""
        return look(self.cluster)

    @call(OutsideSerializer, takes=AdoptSerializer, many=True)
    def post(self) -> Sequence[Outside]:
        """Label these with the queue of their namespace; they run on as they did. What was labelled is the
        answer."""
        owner = named_person(self.given["owner"], field="owner")
        return adopt(self.cluster, self.given["workloads"], owner=owner, author=self.person)
