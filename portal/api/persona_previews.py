"""What an edit of a persona would do before it is saved: the page's own selector. For who administers."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from portal.accounts.models import Persona, Scope
from portal.api.calls import call
from portal.api.members import PersonaWriteSerializer
from portal.api.scope import PersonView
from portal.teams.access import is_admin
from portal.teams.persona_preview import preview


class PersonaHolderSerializer(serializers.Serializer[Any]):
    user = serializers.CharField()
    teams: Any = serializers.ListField(child=serializers.CharField())

    def to_representation(self, instance: tuple[str, list[str]]) -> dict[str, Any]:
        user, teams = instance
        return {"user": user, "teams": teams}


class PersonaChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()
    loses = serializers.BooleanField(
        allow_null=True, help_text="Null where it neither takes nor gives."
    )


class StoppedWorkSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField(source="workload.cluster.name")
    uid = serializers.CharField(source="workload.uid")
    name = serializers.CharField(source="workload.name")
    user = serializers.CharField(source="workload.user")
    state = serializers.CharField(source="workload.state")
    sentence = serializers.CharField(help_text="Why it would not be admitted.")


class PersonaPreviewSerializer(serializers.Serializer[Any]):
    people: Any = PersonaHolderSerializer(many=True, help_text="Who has it now, and where.")
    lines: Any = PersonaChangeSerializer(many=True, help_text="What changes.")
    waiting: Any = StoppedWorkSerializer(
        many=True, help_text="Work that waits and would not be admitted any more."
    )
    running: Any = StoppedWorkSerializer(
        many=True, help_text="Work that holds GPUs: it goes on, and would not start again."
    )


class PersonaPreview(PersonView):
    """The edited persona, tried and undone. For who administers."""

    serializer_class = PersonaPreviewSerializer
    queryset = Persona.objects.none()
    write_scope = Scope.ALL

    @call(PersonaPreviewSerializer, takes=PersonaWriteSerializer)
    def post(self, name: str) -> Any:
        """What saving this would do; nothing is saved. What is not sent is set to its default."""
        if not is_admin(self.person):
            raise Http404
        persona = get_object_or_404(Persona, name=name)
        return preview(by=self.person, persona=persona, values=self.sent.values())
