"""Personas, and what an edit of one would do before it is saved: the page's own selector."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import serializers

from portal.accounts.models import Persona, Scope
from portal.api.bodies import body_of
from portal.api.nouns import Noun, verb
from portal.api.scope import RowSerializer, named
from portal.selectors.fields import GpusField
from portal.teams.access import is_admin
from portal.teams.people import visible_personas
from portal.teams.persona_form import PersonaForm
from portal.teams.persona_preview import preview
from portal.teams.personas import PersonaValues, delete_persona, save_persona

PERSONA = body_of(PersonaForm, "PersonaWrite")


class PersonaSerializer(RowSerializer[Persona]):
    """Empty ``gpu_classes`` or ``priority_classes``: every class."""

    priority_classes: Any = named(many=True)
    gpu_classes: Any = named(many=True)
    grants: Any = type(PERSONA().fields["grants"])(
        read_only=True,
        help_text="Capability to how far it reaches; one that is not there is not given.",
    )
    approves_gpus = GpusField(read_only=True, allow_null=True)
    max_gpus_per_workload = GpusField(read_only=True, allow_null=True)
    max_gpus_at_once = GpusField(read_only=True, allow_null=True)

    class Meta:
        model = Persona
        fields = [
            "name",
            "grants",
            "approves_gpus",
            "priority_classes",
            "gpu_classes",
            "max_gpus_per_workload",
            "max_gpus_at_once",
            "max_run_time_s",
            "preemptible_only",
            "interactive",
        ]


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
    people: Any = PersonaHolderSerializer(
        many=True, help_text="The people who have it now, and where."
    )
    lines: Any = PersonaChangeSerializer(many=True, help_text="What changes.")
    waiting: Any = StoppedWorkSerializer(
        many=True, help_text="Work that waits and would not be admitted any more."
    )
    running: Any = StoppedWorkSerializer(
        many=True, help_text="Work that holds GPUs: it goes on, and would not start again."
    )


class Personas(Noun):
    """Personas of your teams; all of them for whoever hands some out, operates or administers."""

    at, key, names = "personas", "<str:name>", ("personas", "persona")
    one = "One persona. For who administers."
    serializer_class, takes = PersonaSerializer, PERSONA
    write_scope = Scope.ALL
    lookup_field = "name"
    is_for_admins = True

    def rows(self) -> QuerySet[Persona]:
        if self.action != "list" and not is_admin(self.person):
            raise Http404
        rows = visible_personas(self.person)
        return rows.prefetch_related("priority_classes", "gpu_classes")

    def make(self) -> Any:
        """Make a persona. For who administers."""
        return save_persona(by=self.person, values=PersonaValues(**self.given))

    def change(self, row: Persona) -> Any:
        """Change it: what is not sent is set to its default."""
        return save_persona(by=self.person, values=PersonaValues(**self.given), persona=row)

    def remove(self, row: Persona) -> None:
        """Remove it, while nobody has it."""
        delete_persona(by=self.person, persona=row)

    @verb("preview", PersonaPreviewSerializer, takes=PERSONA)
    def preview(self) -> Any:
        """What saving this would do; nothing is saved. What is not sent is set to its default."""
        return preview(
            by=self.person, persona=self.get_object(), values=PersonaValues(**self.given)
        )
