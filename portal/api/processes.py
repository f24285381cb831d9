"""The processes of the installation and the streams out of it, for operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import generics, serializers

from portal.api.scope import PersonView
from portal.streams.models import Name, Stream
from portal.streams.standing import standings as stream_standings
from portal.teams.access import is_operator
from scheduling.models import Process, Role
from scheduling.services.worker.processes import standings as process_standings


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


class StandingsList(PersonView, generics.ListAPIView[Any]):
    pagination_class = None
    standings: ClassVar[Callable[[], Sequence[Any]]]

    def rows(self) -> QuerySet[Any]:
        if not is_operator(self.person):
            raise Http404
        return type(self).standings()  # type: ignore[return-value] # a list is listed as well


class ProcessList(StandingsList):
    """Processes that live, and those that fell silent and were replaced by none. For operators."""

    serializer_class = ProcessSerializer
    queryset = Process.objects.none()
    standings = process_standings


class StreamSerializer(serializers.Serializer[Any]):
    name = serializers.ChoiceField(choices=Name.choices)
    where = serializers.CharField(help_text="Way, host and port.")
    waiting = serializers.IntegerField(help_text="Entries or rows that have not gone out.")
    lag_s = serializers.FloatField(help_text="Seconds for which the oldest of them could have.")
    sent_at = serializers.DateTimeField(allow_null=True)
    failing_since = serializers.DateTimeField(allow_null=True)
    next_try_at = serializers.DateTimeField(allow_null=True)
    fault = serializers.CharField(help_text="Why the last try failed; empty where it did not.")


class StreamList(StandingsList):
    """Audit records, security events and usage that go out, where to, and how far. For operators."""

    serializer_class = StreamSerializer
    queryset = Stream.objects.none()
    standings = stream_standings
