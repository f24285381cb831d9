"""The person, their tokens, other people, and what each may do and why."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import generics, serializers

from portal.accounts import doors
from portal.accounts.capabilities import MEANINGS, Capability
from portal.accounts.forms import TokenForm, token_terms
from portal.accounts.models import ApiToken, Scope, User
from portal.api.bodies import body_of
from portal.api.errors import refuse
from portal.api.nouns import Noun, verb
from portal.api.permissions import SESSION_ONLY
from portal.api.scope import PersonView, RowSerializer, named
from portal.teams import people
from portal.teams.access import is_admin, is_operator
from portal.teams.forms import PersonForm
from portal.teams.may import MayAnswer, answer_about, may, may_not
from portal.teams.models import Membership
from portal.teams.people import may_add_people, visible_people
from portal.teams.sight import memberships_for

CAPABILITIES = [capability.value for capability in Capability]


class MembershipSerializer(RowSerializer[Membership]):
    team: Any = named()
    queue = serializers.CharField(source="team.queue.name", read_only=True)
    cluster = serializers.CharField(source="team.queue.cluster.name", read_only=True)
    persona: Any = named()

    class Meta:
        model = Membership
        fields = ["team", "cluster", "queue", "persona"]


class MeSerializer(RowSerializer[User]):
    email = serializers.CharField(read_only=True, help_text="Empty where nobody gave one.")
    operator = serializers.SerializerMethodField(help_text="Sees and operates every cluster.")
    memberships = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "email", "operator", "memberships"]

    def get_operator(self, user: User) -> bool:
        return is_operator(user)

    @extend_schema_field(MembershipSerializer(many=True))
    def get_memberships(self, user: User) -> Any:
        rows = user.memberships.select_related("team__queue__cluster", "persona")
        return MembershipSerializer(rows, many=True).data


class Me(PersonView, generics.RetrieveAPIView[User]):
    """The caller, with teams and personas."""

    serializer_class = MeSerializer

    def get_object(self) -> User:
        return self.person


class TokenSerializer(RowSerializer[ApiToken]):
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.choices))
    last_address = serializers.CharField(help_text="Of its last use; empty before the first.")

    class Meta:
        model = ApiToken
        fields = [
            "id",
            "name",
            "scopes",
            "created_at",
            "last_used_at",
            "last_address",
            "expires_at",
        ]


TOKEN = body_of(TokenForm, "TokenRequest", needs=("name",))


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(read_only=True, help_text="Shown once; keep it safe.")

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


class Tokens(Noun):
    """Your API tokens. Only their digests are kept."""

    at, key, names = "tokens", "<int:pk>", ("tokens", "token")
    serializer_class, takes, shows_new = TokenSerializer, TOKEN, NewTokenSerializer
    write_scope = Scope.ALL
    shown_once = "token"
    make_scope = SESSION_ONLY
    queryset = ApiToken.objects.none()

    def rows(self) -> QuerySet[ApiToken]:
        return self.person.api_tokens.all()

    def make(self) -> Any:
        """Make a token, in a session: one made with a stolen token would outlive it. Its text is shown this
        once."""
        return doors.issue_token(self.request, self.person, **token_terms(self.given))

    def remove(self, row: ApiToken) -> None:
        """Revoke a token; it stops working at once."""
        doors.revoke_token(self.request, row)


class PersonSerializer(RowSerializer[User]):
    memberships = MembershipSerializer(many=True, read_only=True)

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "is_active", "memberships"]


class AddedPersonSerializer(PersonSerializer):
    password = serializers.CharField(read_only=True, help_text="Shown once.")

    class Meta(PersonSerializer.Meta):
        fields = [*PersonSerializer.Meta.fields, "password"]


class ActiveSerializer(serializers.Serializer[Any]):
    is_active = serializers.BooleanField()


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


class People(Noun):
    """Yourself, and the members of your teams and of those below, with their memberships there."""

    at, key, names = "people", "<str:username>", ("people", "person")
    one = "One person and their memberships."
    serializer_class, takes = PersonSerializer, ActiveSerializer
    write_scope = Scope.ALL
    takes_new = body_of(PersonForm, "NewPerson")
    shows_new, shown_once = AddedPersonSerializer, "password"
    make_scope = SESSION_ONLY
    lookup_field = "username"

    def rows(self) -> QuerySet[User]:
        rows = visible_people(self.person).order_by("username")
        return rows.prefetch_related(memberships_for(self.person))

    def make(self) -> Any:
        """Add a person. For who gives personas. The answer holds their first password."""
        if not may_add_people(self.person):
            raise Http404
        return people.add_person(by=self.person, **self.given)

    def change(self, row: User) -> Any:
        """Deactivate a person, or activate them again. For who administers."""
        if not is_admin(self.person):
            raise Http404
        people.set_active(by=self.person, person=row, active=self.given["is_active"])
        return row

    @verb(
        "may",
        MaySerializer,
        by="get",
        parameters=[
            OpenApiParameter("capability", str, enum=CAPABILITIES),
            OpenApiParameter(
                "on", str, description="Path or name of a queue, or name of a workload."
            ),
        ],
    )
    def may(self, username: str) -> Any:
        """What a person may do, and why: the check of every page, call and file."""
        about = get_object_or_404(visible_people(self.person), username=username)
        return {
            "may": may(self.person, about),
            "may_not": list(may_not(self.person, about)),
            "answer": self._answer(about),
        }

    def _answer(self, about: User) -> MayAnswer | None:
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
