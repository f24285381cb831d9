"""Teams, and who has which persona in them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from portal.accounts.models import Persona, Scope, User
from portal.api.calls import call
from portal.api.errors import refuse
from portal.api.nouns import Noun
from portal.api.scope import PersonView, RowSerializer, named
from portal.boundary.reading import one_line
from portal.teams import people
from portal.teams.access import team_queues, visible_queues
from portal.teams.memberships import remove_member, set_member
from portal.teams.models import Membership, Team
from portal.teams.people import led_teams, visible_teams
from scheduling.models import Queue


class MemberSerializer(RowSerializer[Membership]):
    user: Any = named("username")
    persona: Any = named()

    class Meta:
        model = Membership
        fields = ["user", "persona"]


class TeamSerializer(RowSerializer[Team]):
    cluster = serializers.CharField(source="queue.cluster.name", read_only=True)
    queue: Any = named()
    members = MemberSerializer(source="memberships", many=True, read_only=True)

    class Meta:
        model = Team
        fields = ["name", "cluster", "queue", "members"]


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


class Teams(Noun):
    """Your teams and those below them, with their members."""

    at, key, names = "teams", "<str:name>", ("teams", "team")
    one = "One team with its members."
    serializer_class, takes = TeamSerializer, NewTeamSerializer
    write_scope = Scope.ALL
    lookup_field = "name"
    is_for_admins = True

    def rows(self) -> QuerySet[Team]:
        return (
            Team.objects.filter(queue__in=team_queues(self.person))
            .select_related("queue__cluster")
            .prefetch_related("memberships__user", "memberships__persona")
        )

    def make(self) -> Any:
        """Bind a new team to a queue. For who administers."""
        return self._save(None)

    def change(self, row: Team) -> Any:
        """Rename the team, or bind it to another queue. For who administers."""
        return self._save(row)

    def remove(self, row: Team) -> None:
        """Remove a team without members. For who administers."""
        people.delete_team(by=self.person, team=row)

    def _save(self, team: Team | None) -> Team:
        place = self.sent.place(self.person)
        return people.save_team(by=self.person, name=self.given["name"], queue=place, team=team)


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
