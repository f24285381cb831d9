"""Sessions, groups of the directory, and service accounts of teams."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import generics, serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from portal.accounts import doors
from portal.accounts.models import ApiToken, Persona, Scope, Session
from portal.api.calls import call
from portal.api.people import NewTokenSerializer, TokenRequestSerializer, TokenSerializer
from portal.api.permissions import SESSION_ONLY
from portal.api.scope import PersonView, named
from portal.boundary.reading import one_line
from portal.teams import directory
from portal.teams import service_accounts as service
from portal.teams.directory_models import LONGEST_GROUP
from portal.teams.giving import led_teams
from portal.teams.models import GroupRule, ServiceAccount, Team
from portal.teams.sight import person_for


class SessionSerializer(serializers.ModelSerializer[Session]):
    key = serializers.CharField(source="pk", help_text="Names it here; it signs nobody in.")
    how = serializers.CharField(help_text="What the person showed; empty where nobody noted it.")

    class Meta:
        model = Session
        fields = ["key", "browser", "address", "how", "began_at", "seen_at"]
        read_only_fields = fields


class SessionView(PersonView):
    serializer_class = SessionSerializer
    queryset = Session.objects.none()

    def rows(self) -> QuerySet[Session]:
        return self.person.sessions.filter(expire_date__gt=timezone.now())


class SessionList(SessionView, generics.ListAPIView[Session]):
    """Where you are signed in, the last used first."""


class SessionDetail(SessionView, generics.DestroyAPIView[Session]):
    """End a session: its browser is signed out at once."""

    write_scope = Scope.ALL
    lookup_url_kwarg = "key"

    def perform_destroy(self, instance: Session) -> None:
        doors.end_session(self.request, instance)


class GroupRuleSerializer(serializers.ModelSerializer[GroupRule]):
    group = serializers.CharField(max_length=LONGEST_GROUP, validators=[one_line])
    team: Any = serializers.SlugRelatedField(slug_field="name", queryset=Team.objects.all())
    persona: Any = serializers.SlugRelatedField(slug_field="name", queryset=Persona.objects.all())
    order = serializers.IntegerField(min_value=0, max_value=9999, default=100)

    class Meta:
        model = GroupRule
        fields = ["id", "group", "team", "persona", "order"]
        read_only_fields = ["id"]
        # The door refuses a second rule, with what to do about the first.
        validators: list[Any] = []


class GroupRuleView(PersonView):
    """Absent for whoever may not rule."""

    serializer_class = GroupRuleSerializer
    write_scope = Scope.ALL
    queryset = GroupRule.objects.none()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not directory.may_rule(self.person):
            raise NotFound

    def rows(self) -> QuerySet[GroupRule]:
        return GroupRule.objects.select_related("team", "persona")


class GroupRuleList(GroupRuleView, generics.ListCreateAPIView[GroupRule]):
    """Which groups of the directory give which persona in which team."""

    def perform_create(self, serializer: serializers.BaseSerializer[GroupRule]) -> None:
        given = serializer.validated_data
        serializer.instance = directory.add_rule(self.person, request=self.request, **given)


class GroupRuleDetail(GroupRuleView, generics.RetrieveDestroyAPIView[GroupRule]):
    """One rule. DELETE takes with it the memberships that it gave."""

    def perform_destroy(self, instance: GroupRule) -> None:
        directory.delete_rule(self.person, instance, request=self.request)


class ServiceAccountSerializer(serializers.ModelSerializer[ServiceAccount]):
    name = serializers.CharField(source="user.username")
    persona = serializers.SerializerMethodField()
    made_by: Any = named("username", allow_null=True)
    tokens = TokenSerializer(source="user.api_tokens", many=True)

    class Meta:
        model = ServiceAccount
        fields = ["name", "persona", "purpose", "made_by", "made_at", "tokens"]
        read_only_fields = fields

    def get_persona(self, account: ServiceAccount) -> str:
        return ", ".join(str(m.persona) for m in account.user.memberships.all())


class NewServiceAccountSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100, help_text="It becomes svc-NAME.")
    persona: Any = serializers.SlugRelatedField(
        slug_field="name", queryset=Persona.objects.all(), help_text="One that you may give."
    )
    purpose = serializers.CharField(
        max_length=200, required=False, allow_blank=True, validators=[one_line]
    )


class TeamAccountsView(PersonView):
    """Below a team whose service accounts the person looks after; absent for everybody else."""

    serializer_class: type[serializers.BaseSerializer[Any]] = ServiceAccountSerializer
    write_scope: Scope | None = Scope.ALL
    queryset = ServiceAccount.objects.none()

    @property
    def team(self) -> Team:
        return get_object_or_404(led_teams(self.person), name=self.kwargs["team"])

    @property
    def account(self) -> ServiceAccount:
        return get_object_or_404(self.get_queryset(), user__username=self.kwargs["account"])

    def rows(self) -> QuerySet[ServiceAccount]:
        rows = ServiceAccount.objects.filter(team=self.team).select_related("user")
        return rows.prefetch_related(
            "user__api_tokens",
            "user__memberships__persona",
            person_for(self.person, "made_by"),
        )


class ServiceAccountList(TeamAccountsView, generics.ListAPIView[ServiceAccount]):
    """The programs that act for a team, with their tokens."""

    write_scope = SESSION_ONLY

    @call(ServiceAccountSerializer, takes=NewServiceAccountSerializer, code=201)
    def post(self) -> Any:
        """Make one. It has no token yet, and no way to sign in."""
        team = self.team
        given = {"purpose": "", **self.given}
        return service.make(self.person, team, request=self.request, **given)


class ServiceAccountDetail(TeamAccountsView, generics.RetrieveDestroyAPIView[ServiceAccount]):
    """One service account. DELETE takes its tokens with it; what it submitted goes on."""

    def get_object(self) -> ServiceAccount:
        return self.account

    def perform_destroy(self, instance: ServiceAccount) -> None:
        service.delete(self.person, instance, request=self.request)


class ServiceTokenList(TeamAccountsView):
    """Tokens of a service account."""

    serializer_class = NewTokenSerializer
    write_scope = SESSION_ONLY

    @call(NewTokenSerializer, takes=TokenRequestSerializer, code=201)
    def post(self) -> Any:
        """Make a token for it. The answer is the only place its text is ever shown."""
        account = self.account
        token, plain = service.issue_token(
            self.person, account, **self.sent.terms(), request=self.request
        )
        token.token = plain  # type: ignore[attr-defined]
        return token


class ServiceTokenDetail(TeamAccountsView, generics.DestroyAPIView[Any]):
    """Revoke a token of a service account; it stops working at once."""

    serializer_class = TokenSerializer

    def get_object(self) -> ApiToken:
        return get_object_or_404(self.account.user.api_tokens, pk=self.kwargs["pk"])

    def perform_destroy(self, instance: ApiToken) -> None:
        service.revoke_token(self.person, self.account, instance, request=self.request)
