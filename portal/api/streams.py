"""Streams out and how they stand, for operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import generics, serializers

from portal.api.scope import PersonView
from portal.streams.models import Name, Stream
from portal.streams.standing import standings
from portal.teams.access import is_operator


class StreamSerializer(serializers.Serializer[Any]):
    name = serializers.ChoiceField(choices=Name.choices)
    where = serializers.CharField(help_text="Way, host and port.")
    waiting = serializers.IntegerField(help_text="Entries or rows that have not gone out.")
    lag_s = serializers.FloatField(help_text="Seconds for which the oldest of them could have.")
    sent_at = serializers.DateTimeField(allow_null=True)
    failing_since = serializers.DateTimeField(allow_null=True)
    next_try_at = serializers.DateTimeField(allow_null=True)
    fault = serializers.CharField(help_text="Why the last try failed; empty where it did not.")


class StreamList(PersonView, generics.ListAPIView[Any]):
    """Audit records, security events and usage that go out, where to, and how far. For operators."""

    serializer_class = StreamSerializer
    queryset = Stream.objects.none()
    pagination_class = None

    def rows(self) -> QuerySet[Any]:
        if not is_operator(self.person):
            raise Http404
        return standings()  # type: ignore[return-value] # a list is listed as well
