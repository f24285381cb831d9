"""GPU classes of a cluster, and classes of priority."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from portal.accounts.models import Scope
from portal.api.bodies import body_of
from portal.api.nouns import ClusterNoun, Noun
from portal.api.scope import RowSerializer
from portal.setup.forms import GpuClassForm, PriorityForm
from scheduling.models import GpuClass, PriorityClass
from scheduling.services.clusters.classes import save_gpu_class, save_priority_class


class GpuClassSerializer(RowSerializer[GpuClass]):
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


class GpuClasses(ClusterNoun):
    """GPU classes of a cluster, in the order every page shows them."""

    at, key, names = "gpu-classes", "<str:name>", ("gpu_classes", "gpu_class")
    one = "One GPU class."
    serializer_class = GpuClassSerializer
    takes = body_of(GpuClassForm, "GpuClassWrite", needs=("name",))
    write_scope = Scope.ALL
    lookup_field = "name"
    is_for_admins = True

    def rows(self) -> QuerySet[GpuClass]:
        return GpuClass.objects.filter(cluster=self.cluster)

    def make(self) -> Any:
        """Make a GPU class. For who administers."""
        return save_gpu_class(cluster=self.cluster, values=self.given, author=self.person)

    def change(self, row: GpuClass) -> Any:
        """Change what is sent of it. For who administers."""
        return save_gpu_class(
            cluster=self.cluster, values=self.given, author=self.person, gpu_class=row
        )


class PriorityClassSerializer(RowSerializer[PriorityClass]):
    class Meta:
        model = PriorityClass
        fields = ["name", "value", "preemptible", "min_run_time_s", "type", "is_default"]


class PriorityClasses(Noun):
    """Priority classes, highest value first."""

    at, key, names = "priority-classes", "<str:name>", ("priority_classes", "priority_class")
    one = "One priority class."
    serializer_class = PriorityClassSerializer
    takes = body_of(PriorityForm, "PriorityClassWrite", needs=("name",))
    write_scope = Scope.ALL
    lookup_field = "name"
    is_for_admins = True

    def rows(self) -> QuerySet[PriorityClass]:
        return PriorityClass.objects.all()

    def make(self) -> Any:
        """Make a priority class. For who administers."""
        return save_priority_class(values=self.given, author=self.person)

    def change(self, row: PriorityClass) -> Any:
        """Change what is sent of it. For who administers."""
        return save_priority_class(values=self.given, author=self.person, priority_class=row)
