"""Teams, and who has which persona in them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from portal.accounts.models import Scope, User
from portal.api.bodies import body_of, name_field
from portal.api.calls import call
from portal.api.errors import refuse
from portal.api.nouns import Noun
from portal.api.scope import PersonView, RowSerializer, named
from portal.teams import people
from portal.teams.access import team_queues, visible_queues
from portal.teams.forms import MemberForm, TeamForm
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


class Teams(Noun):
    """Your teams and those below them, with their members."""

    at, key, names = "teams", "<str:name>", ("teams", "team")
    one = "One team with its members."
    serializer_class = TeamSerializer
    takes = body_of(TeamForm, "NewTeam", cluster=name_field(), queue=name_field())
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
        name, queue = self.given["name"], self._place(**self.given)
        return people.save_team(by=self.person, name=name, queue=queue, team=team)

    def _place(self, *, cluster: str, queue: str, **_: Any) -> Queue:
        seen = visible_queues(self.person).filter(cluster__name=cluster, name=queue)
        found = seen.select_related("cluster").first()
        if found is None:
            refuse("queue", f"There is no queue {queue} in {cluster}.")
        return found


GIVEN = body_of(MemberForm, "Given", user=None)


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

    @call(MemberSerializer, takes=GIVEN)
    def put(self, name: str, username: str) -> Any:
        """Give the persona, in place of one they have there."""
        team, given = self._team(name), self.given
        person = User.objects.filter(username=username).first()
        if person is None:
            refuse("user", "Nobody has that user name. Add them first.")
        persona, until = given["persona"], given["until"]
        return set_member(by=self.person, team=team, person=person, persona=persona, until=until)

    @call()
    def delete(self, name: str, username: str) -> None:
        """Take the persona away."""
        remove_member(by=self.person, membership=self._membership(name, username))
