"""The processes of the installation, for operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import generics, serializers

from portal.api.scope import PersonView
from portal.teams.access import is_operator
from scheduling.models import Process, Role
from scheduling.services.worker.processes import standings


class HeldSerializer(serializers.Serializer[Any]):
    lag_s = serializers.FloatField(help_text="Seconds that its mirror is out of touch.")
    objects = serializers.IntegerField(help_text="How many objects the mirror holds.")
    leads = serializers.BooleanField(help_text="It holds the lease, and writes.")
    lease_s = serializers.FloatField(help_text="Seconds that the lease still holds.")


class ProcessSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(source="process.role", choices=Role.choices)
    name = serializers.CharField(source="process.name", help_text="Host and number.")
    began_at = serializers.DateTimeField(source="process.began_at")
    seen_at = serializers.DateTimeField(source="process.seen_at")
    alive = serializers.BooleanField(help_text="False where it was not heard of lately.")
    memory_mib = serializers.IntegerField(
        source="process.memory_mib",
        allow_null=True,
        help_text="Of the process and what it started; null where the kernel does not tell.",
    )
    cpu = serializers.FloatField(
        source="process.cpu",
        allow_null=True,
        help_text="Cores that it kept busy between its last two beats.",
    )
    held: Any = serializers.DictField(
        source="process.held",
        child=HeldSerializer(),
        help_text="Of an engine worker: what it holds of each cluster.",
    )


class ProcessList(PersonView, generics.ListAPIView[Any]):
    """Processes that live, and those that fell silent and were replaced by none. For operators."""

    serializer_class = ProcessSerializer
    queryset = Process.objects.none()
    pagination_class = None

    def rows(self) -> QuerySet[Any]:
        if not is_operator(self.person):
            raise Http404
        return standings()  # type: ignore[return-value] # a list is listed as well
