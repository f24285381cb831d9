"""People, the personas they are given in teams, and what they may do and why."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter
from rest_framework import generics, serializers

from portal.accounts.capabilities import MEANINGS, Capability, Reach
from portal.accounts.models import Persona, Scope, User
from portal.api.calls import call
from portal.api.errors import refuse
from portal.api.people import (
    MemberSerializer,
    MembershipSerializer,
    PersonaList,
    PersonaSerializer,
    TeamDetail,
    TeamList,
    TeamSerializer,
)
from portal.api.permissions import SESSION_ONLY
from portal.api.scope import PersonView
from portal.boundary.reading import one_line
from portal.selectors.fields import GpusField
from portal.teams import people as doors
from portal.teams.access import is_admin, visible_queues
from portal.teams.may import Answer, answer_about, may, may_not
from portal.teams.memberships import remove_member, set_member
from portal.teams.models import Membership, Team
from portal.teams.people import led_teams, may_add_people, visible_people, visible_teams
from portal.teams.personas import PersonaValues, delete_persona, save_persona
from portal.teams.sight import memberships_for
from scheduling.models import GpuClass, PriorityClass, Queue

REACHES = [reach.value for reach in Reach]
CAPABILITIES = [capability.value for capability in Capability]


class PersonSerializer(serializers.ModelSerializer[User]):
    memberships = MembershipSerializer(many=True, read_only=True)

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "is_active", "memberships"]
        read_only_fields = fields


class NewPersonSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=63, validators=[one_line])
    first_name = serializers.CharField(max_length=150, required=False, validators=[one_line])
    last_name = serializers.CharField(max_length=150, required=False, validators=[one_line])
    email = serializers.EmailField(max_length=254, required=False)


class AddedPersonSerializer(PersonSerializer):
    password = serializers.CharField(read_only=True, help_text="Shown once.")

    class Meta(PersonSerializer.Meta):
        fields = [*PersonSerializer.Meta.fields, "password"]


class PeopleView(PersonView):
    serializer_class = PersonSerializer
    queryset = User.objects.none()
    write_scope: Scope | None = Scope.ALL

    def rows(self) -> QuerySet[User]:
        rows = visible_people(self.person).order_by("username")
        return rows.prefetch_related(memberships_for(self.person))


class PersonList(PeopleView, generics.ListAPIView[User]):
    """Yourself, and the members of your teams and of those below, with their memberships there."""

    write_scope = SESSION_ONLY

    @call(AddedPersonSerializer, takes=NewPersonSerializer, code=201)
    def post(self) -> Any:
        """Add a person. For who gives personas. The answer holds their first password."""
        if not may_add_people(self.person):
            raise Http404
        made, password = doors.add_person(by=self.person, **self.given)
        made.password = password
        return made


class ActiveSerializer(serializers.Serializer[Any]):
    is_active = serializers.BooleanField()


class PersonDetail(PeopleView, generics.RetrieveAPIView[User]):
    """One person and their memberships."""

    lookup_field = "username"

    @call(PersonSerializer, takes=ActiveSerializer)
    def put(self) -> Any:
        """Deactivate a person, or activate them again. For who administers."""
        found = self.get_object()
        if not is_admin(self.person):
            raise Http404
        active = self.given["is_active"]
        doors.set_active(by=self.person, person=found, active=active)
        return found


class LineSerializer(serializers.Serializer[Any]):
    group = serializers.CharField()
    what = serializers.CharField()
    where = serializers.CharField()
    source: Any = serializers.CharField(help_text="The membership that gives it, or who could.")


class AnswerSerializer(serializers.Serializer[Any]):
    yes = serializers.BooleanField()
    sentence = serializers.CharField()
    persona = serializers.CharField(help_text="Empty where no membership is what allows it.")
    team = serializers.CharField()


class MaySerializer(serializers.Serializer[Any]):
    may = LineSerializer(many=True)
    may_not = LineSerializer(many=True)
    answer = AnswerSerializer(allow_null=True, help_text="Null where nothing was asked.")


class PersonMay(PersonView):
    """What a person may do, and why: the check of every page, call and file."""

    serializer_class = MaySerializer

    @call(
        MaySerializer,
        parameters=[
            OpenApiParameter("capability", str, enum=CAPABILITIES),
            OpenApiParameter(
                "on", str, description="Path or name of a queue, or name of a workload."
            ),
        ],
    )
    def get(self, username: str) -> Any:
        about = get_object_or_404(visible_people(self.person), username=username)
        return {
            "may": may(self.person, about),
            "may_not": list(may_not(self.person, about)),
            "answer": self._answer(about),
        }

    def _answer(self, about: User) -> Answer | None:
        verb = self.request.query_params.get("capability", "")
        thing = self.request.query_params.get("on", "")
        if not verb and not thing:
            return None
        if verb not in MEANINGS:
            refuse("capability", f"Use one of {', '.join(CAPABILITIES)}.")
        found = answer_about(self.person, about, Capability(verb), thing)
        if found is None:
            refuse("on", "You see no queue and no workload of that name.")
        return found


class NewTeamSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63, validators=[one_line])
    cluster = serializers.CharField(max_length=63)
    queue = serializers.CharField(max_length=63)

    def place(self, person: User) -> Queue:
        given = self.validated_data
        seen = visible_queues(person).filter(cluster__name=given["cluster"], name=given["queue"])
        found = seen.select_related("cluster").first()
        if found is None:
            refuse("queue", f"There is no queue {given['queue']} in {given['cluster']}.")
        return found


class TeamWrites(PersonView):
    """What an admin does to teams; the readers of ``people`` sit on top."""

    write_scope = Scope.ALL

    def save(self, team: Team | None) -> Team:
        if not is_admin(self.person):
            raise Http404
        place = self.sent.place(self.person)
        return doors.save_team(by=self.person, name=self.given["name"], queue=place, team=team)


class PersonaWriteSerializer(serializers.Serializer[Any]):
    """``grants``: capability to reach. Classes that are not named: every one."""

    name = serializers.CharField(max_length=63, validators=[one_line])
    grants = serializers.DictField(child=serializers.ChoiceField(choices=REACHES), required=False)
    approves_gpus = GpusField(required=False, allow_null=True)
    priority_classes: Any = serializers.SlugRelatedField(
        slug_field="name", many=True, queryset=PriorityClass.objects.all(), required=False
    )
    gpu_classes = serializers.ListField(child=serializers.CharField(max_length=63), required=False)
    max_gpus_per_workload = GpusField(required=False, allow_null=True)
    max_gpus_at_once = GpusField(required=False, allow_null=True)
    max_run_time_s = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=2**31 - 1
    )
    preemptible_only = serializers.BooleanField(required=False)
    interactive = serializers.BooleanField(required=False)

    def validate_gpu_classes(self, names: list[str]) -> list[GpuClass]:
        found = list(GpuClass.objects.filter(name__in=names))
        missing = set(names) - {c.name for c in found}
        if missing:
            raise serializers.ValidationError(f"There is no GPU class {sorted(missing)[0]}.")
        return found

    def values(self) -> PersonaValues:
        return PersonaValues(**self.validated_data)


class PersonaWrites(PersonView):
    write_scope = Scope.ALL

    def save(self, persona: Persona | None) -> Persona:
        if not is_admin(self.person):
            raise Http404
        return save_persona(by=self.person, values=self.sent.values(), persona=persona)


class PersonaDetail(PersonaWrites):
    """One persona. For who administers."""

    serializer_class = PersonaSerializer
    queryset = Persona.objects.none()

    def _get(self, name: str) -> Persona:
        if not is_admin(self.person):
            raise Http404
        return get_object_or_404(Persona, name=name)

    @call(PersonaSerializer)
    def get(self, name: str) -> Any:
        return self._get(name)

    @call(PersonaSerializer, takes=PersonaWriteSerializer)
    def put(self, name: str) -> Any:
        """Change it: what is not sent is set to its default."""
        return self.save(self._get(name))

    @call()
    def delete(self, name: str) -> None:
        """Remove it, while nobody has it."""
        delete_persona(by=self.person, persona=self._get(name))


class GivenSerializer(serializers.Serializer[Any]):
    persona = serializers.CharField(max_length=63)
    until = serializers.DateTimeField(required=False, allow_null=True)


class TeamMember(PersonView):
    """The persona of one person in a team. For who gives personas there."""

    serializer_class = MemberSerializer
    queryset = Team.objects.none()
    write_scope = Scope.ALL

    def _team(self, name: str) -> Team:
        seen = visible_teams(self.person) & led_teams(self.person)
        return get_object_or_404(seen.select_related("queue__cluster"), name=name)

    @call(MemberSerializer)
    def get(self, name: str, username: str) -> Any:
        return self._membership(name, username)

    def _membership(self, name: str, username: str) -> Membership:
        return get_object_or_404(self._team(name).memberships, user__username=username)

    @call(MemberSerializer, takes=GivenSerializer)
    def put(self, name: str, username: str) -> Any:
        """Give the persona, in place of one they have there."""
        team = self._team(name)
        given = self.given
        person = User.objects.filter(username=username).first()
        persona = Persona.objects.filter(name=given["persona"]).first()
        if person is None:
            refuse("user", "Nobody has that user name. Add them first.")
        if persona is None:
            refuse("persona", f"There is no persona {given['persona']}.")
        return set_member(
            by=self.person, team=team, person=person, persona=persona, until=given.get("until")
        )

    @call()
    def delete(self, name: str, username: str) -> None:
        """Take the persona away."""
        remove_member(by=self.person, membership=self._membership(name, username))


class TeamListWrites(TeamWrites):
    @call(TeamSerializer, takes=NewTeamSerializer, code=201)
    def post(self) -> Any:
        """Bind a new team to a queue. For who administers."""
        return self.save(None)


class TeamDetailWrites(TeamWrites):
    @call(TeamSerializer, takes=NewTeamSerializer)
    def put(self, name: str) -> Any:
        """Rename the team, or bind it to another queue. For who administers."""
        return self.save(self._found(name))

    @call()
    def delete(self, name: str) -> None:
        """Remove a team without members. For who administers."""
        doors.delete_team(by=self.person, team=self._found(name))

    def _found(self, name: str) -> Team:
        if not is_admin(self.person):
            raise Http404
        return get_object_or_404(
            visible_teams(self.person).select_related("queue__cluster"), name=name
        )


class Teams(TeamListWrites, TeamList):
    """Your teams and those below them, with their members."""


class OneTeam(TeamDetailWrites, TeamDetail):
    """One team with its members."""


class Personas(PersonaWrites, PersonaList):
    """Personas of your teams; all of them for who hands some out, operates or administers."""

    @call(PersonaSerializer, takes=PersonaWriteSerializer, code=201)
    def post(self) -> Any:
        """Make a persona. For who administers."""
        return self.save(None)
