"""What adapts by itself: read, switched, pinned."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from rest_framework import serializers

from portal.api.calls import call
from portal.api.clusters import ClusterAdminView
from portal.teams.access import is_admin, is_operator
from scheduling.services.studies.adapting import trials
from scheduling.services.studies.adapting.documents import adapting, document, row_document
from scheduling.services.studies.adapting.parameters import BY_NAME


class AdaptingParameterSerializer(serializers.Serializer[Any]):
    """Values are in the unit of the policy's field."""

    name = serializers.CharField()
    title = serializers.CharField()
    meaning = serializers.CharField()
    field = serializers.CharField()
    unit = serializers.CharField(allow_blank=True, help_text="Of the values: s, or none.")
    value: Any = serializers.FloatField()
    shipped: Any = serializers.FloatField()
    least: Any = serializers.FloatField()
    most: Any = serializers.FloatField()
    step: Any = serializers.FloatField()
    is_pinned = serializers.BooleanField()
    changed_at = serializers.DateTimeField(allow_null=True)
    changed_from: Any = serializers.FloatField(allow_null=True)
    changed_to: Any = serializers.FloatField(allow_null=True)
    state = serializers.CharField(
        allow_blank=True,
        help_text="Of its newest trial: judging, trying, kept, taken_back, no_better, stopped.",
    )
    asked_at = serializers.DateTimeField(allow_null=True)
    begun_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    evidence = serializers.CharField()
    figures: Any = serializers.ListField(
        child=serializers.DictField(), help_text="By value: base, mean difference, half interval."
    )


class AdaptationSerializer(serializers.Serializer[Any]):
    is_on = serializers.BooleanField()
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="When the next parameter is replayed at the earliest."
    )
    why = serializers.CharField(allow_blank=True, help_text="Why nothing could be replayed last.")
    parameters: Any = AdaptingParameterSerializer(many=True)


class SwitchSerializer(serializers.Serializer[Any]):
    is_on = serializers.BooleanField()


class PinSerializer(serializers.Serializer[Any]):
    is_pinned = serializers.BooleanField()


class AdaptingView(ClusterAdminView):
    """Operators read, admins write."""

    pagination_class = None

    def check_reading(self) -> None:
        """Raises Http404 for everybody else."""
        assert self.cluster  # noqa: S101 - fetching it is the check
        if not is_operator(self.person) and not is_admin(self.person):
            raise Http404


class AdaptationView(AdaptingView):
    """Which parameters of the policy follow feedback, within which bounds, and on what evidence."""

    serializer_class = AdaptationSerializer

    @call(AdaptationSerializer)
    def get(self) -> Any:
        """The parameters that adapt themselves, and whether they may. For operators."""
        self.check_reading()
        return document(self.cluster)

    @call(AdaptationSerializer, takes=SwitchSerializer)
    def put(self) -> Any:
        """Switch the adaptation on or off. Off, every parameter stays where it is. For who administers."""
        self.check()
        trials.switch(cluster=self.cluster, is_on=self.given["is_on"], author=self.person)
        return document(self.cluster)


class AdaptingParameterView(AdaptingView):
    """One parameter."""

    serializer_class = AdaptingParameterSerializer

    @call(AdaptingParameterSerializer)
    def get(self, name: str) -> Any:
        """One of them, with what was tried. For operators."""
        self.check_reading()
        return self._answer(name)

    @call(AdaptingParameterSerializer, takes=PinSerializer)
    def put(self, name: str) -> Any:
        """Pin it, so that it stays where it is, or let it go. For who administers."""
        self.check()
        if name not in BY_NAME:
            raise Http404
        pinned = self.given["is_pinned"]
        trials.pin(cluster=self.cluster, name=name, is_pinned=pinned, author=self.person)
        return self._answer(name)

    def _answer(self, name: str) -> Any:
        found = (one for one in adapting(self.cluster).standings if one.parameter.name == name)
        one = next(found, None)
        if one is None:
            raise Http404
        return row_document(one)
