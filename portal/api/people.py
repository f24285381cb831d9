"""The person, their tokens, teams and personas."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import generics, serializers

from portal.accounts import doors
from portal.accounts.capabilities import Reach
from portal.accounts.models import LONGEST_TOKEN_DAYS, ApiToken, Persona, Scope, User
from portal.api.calls import call
from portal.api.permissions import SESSION_ONLY
from portal.api.scope import PersonView, named
from portal.boundary.reading import one_line
from portal.selectors.fields import GpusField
from portal.teams.access import is_operator, team_queues
from portal.teams.models import Membership, Team
from portal.teams.people import visible_personas


class MembershipSerializer(serializers.ModelSerializer[Membership]):
    team: Any = named()
    queue = serializers.CharField(source="team.queue.name", read_only=True)
    cluster = serializers.CharField(source="team.queue.cluster.name", read_only=True)
    persona: Any = named()

    class Meta:
        model = Membership
        fields = ["team", "cluster", "queue", "persona"]
        read_only_fields = fields


class MeSerializer(serializers.ModelSerializer[User]):
    email = serializers.CharField(read_only=True, help_text="Empty where nobody gave one.")
    operator = serializers.SerializerMethodField(help_text="Sees and operates every cluster.")
    memberships = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "email", "operator", "memberships"]
        read_only_fields = fields

    def get_operator(self, user: User) -> bool:
        return is_operator(user)

    @extend_schema_field(MembershipSerializer(many=True))
    def get_memberships(self, user: User) -> Any:
        rows = user.memberships.select_related("team__queue__cluster", "persona")
        return MembershipSerializer(rows, many=True).data


class Me(PersonView, generics.RetrieveAPIView[User]):
    """Who you are, your teams and personas."""

    serializer_class = MeSerializer

    def get_object(self) -> User:
        return self.person


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
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
        read_only_fields = fields


class TokenRequestSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=63, validators=[one_line])
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices),
        max_length=len(Scope),
        required=False,
        help_text="What it may be used for; reading alone unless told.",
    )
    days = serializers.IntegerField(
        min_value=1,
        max_value=LONGEST_TOKEN_DAYS,
        allow_null=True,
        required=False,
        help_text="How long it lives; null: without end, where that is allowed.",
    )

    def terms(self) -> dict[str, Any]:
        """Of the token: no end where nothing was said of one, and none ever where ``days`` is null."""
        given = self.validated_data
        days = given.get("days")
        return {
            "name": given["name"],
            "scopes": [Scope(scope) for scope in given.get("scopes", [])],
            "expires_at": None if days is None else timezone.now() + timedelta(days=days),
            "endless": days is None and "days" in given,
        }


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(read_only=True, help_text="Shown once; keep it safe.")

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


class TokenList(PersonView, generics.ListCreateAPIView[ApiToken]):
    """Your API tokens. Only their digests are kept."""

    serializer_class = TokenSerializer
    write_scope = SESSION_ONLY
    queryset = ApiToken.objects.none()

    def rows(self) -> QuerySet[ApiToken]:
        return self.person.api_tokens.all()

    @call(NewTokenSerializer, takes=TokenRequestSerializer, code=201)
    def post(self) -> Any:
        """Make a token, in a session: one made with a stolen token would outlive it. Its text is shown this
        once."""
        token, plain = doors.issue_token(self.request, self.person, **self.sent.terms())
        token.token = plain  # type: ignore[attr-defined]
        return token


class TokenDetail(PersonView, generics.DestroyAPIView[ApiToken]):
    """Revoke a token; it stops working at once."""

    serializer_class = TokenSerializer
    write_scope = Scope.ALL
    queryset = ApiToken.objects.none()

    def rows(self) -> QuerySet[ApiToken]:
        return self.person.api_tokens.all()

    def perform_destroy(self, instance: ApiToken) -> None:
        doors.revoke_token(self.request, instance)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    user: Any = named("username")
    persona: Any = named()

    class Meta:
        model = Membership
        fields = ["user", "persona"]
        read_only_fields = fields


class TeamSerializer(serializers.ModelSerializer[Team]):
    cluster = serializers.CharField(source="queue.cluster.name", read_only=True)
    queue: Any = named()
    members = MemberSerializer(source="memberships", many=True, read_only=True)

    class Meta:
        model = Team
        fields = ["name", "cluster", "queue", "members"]
        read_only_fields = fields


class TeamView(PersonView):
    serializer_class = TeamSerializer
    queryset = Team.objects.none()

    def rows(self) -> QuerySet[Team]:
        return (
            Team.objects.filter(queue__in=team_queues(self.person))
            .select_related("queue__cluster")
            .prefetch_related("memberships__user", "memberships__persona")
        )


class TeamList(TeamView, generics.ListAPIView[Team]):
    """Your teams and those below them, with their members."""


class TeamDetail(TeamView, generics.RetrieveAPIView[Team]):
    """One team with its members."""

    lookup_field = "name"


class PersonaSerializer(serializers.ModelSerializer[Persona]):
    """Empty ``gpu_classes`` or ``priority_classes``: every class."""

    priority_classes: Any = named(many=True)
    gpu_classes: Any = named(many=True)
    grants: Any = serializers.DictField(
        child=serializers.ChoiceField(choices=[reach.value for reach in Reach]),
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
        read_only_fields = fields


class PersonaList(PersonView, generics.ListAPIView[Persona]):
    """Personas of your teams; all of them for who hands some out, operates or administers."""

    serializer_class = PersonaSerializer
    queryset = Persona.objects.none()

    def rows(self) -> QuerySet[Persona]:
        rows = visible_personas(self.person)
        return rows.prefetch_related("priority_classes", "gpu_classes")
