"""Sessions, groups of the directory, and service accounts of teams."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from portal.accounts import doors
from portal.accounts.forms import token_terms
from portal.accounts.models import ApiToken, Scope, Session
from portal.api.bodies import body_of
from portal.api.nouns import Noun
from portal.api.people import TOKEN, NewTokenSerializer, TokenSerializer
from portal.api.permissions import SESSION_ONLY
from portal.api.scope import RowSerializer, named
from portal.teams import directory
from portal.teams import service_accounts as service
from portal.teams.forms import GroupRuleForm, ServiceAccountForm
from portal.teams.giving import led_teams
from portal.teams.models import GroupRule, ServiceAccount, Team
from portal.teams.sight import person_for


class SessionSerializer(RowSerializer[Session]):
    key = serializers.CharField(source="pk", help_text="Names it here; it signs nobody in.")
    how = serializers.CharField(
        help_text="The factor that the person showed; empty where nobody noted it."
    )

    class Meta:
        model = Session
        fields = ["key", "browser", "address", "how", "began_at", "seen_at"]


class Sessions(Noun):
    """Where you are signed in, the last used first."""

    at, key, names = "sessions", "<str:key>", ("sessions", "session")
    serializer_class = SessionSerializer
    write_scope = Scope.ALL
    lookup_url_kwarg = "key"

    def rows(self) -> QuerySet[Session]:
        return self.person.sessions.filter(expire_date__gt=timezone.now())

    def remove(self, row: Session) -> None:
        """End a session: its browser is signed out at once."""
        doors.end_session(self.request, row)


class GroupRuleSerializer(RowSerializer[GroupRule]):
    team: Any = named()
    persona: Any = named()

    class Meta:
        model = GroupRule
        fields = ["id", "group", "team", "persona", "order"]


class GroupRules(Noun):
    """Which groups of the directory give which persona in which team."""

    at, key, names = "group-rules", "<int:pk>", ("group_rules", "group_rule")
    serializer_class, takes = GroupRuleSerializer, body_of(GroupRuleForm, "GroupRule")
    write_scope = Scope.ALL
    one = "One rule. DELETE takes with it the memberships that it gave."

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Absent for whoever may not rule."""
        super().initial(request, *args, **kwargs)
        if not directory.may_rule(self.person):
            raise NotFound

    def rows(self) -> QuerySet[GroupRule]:
        return GroupRule.objects.select_related("team", "persona")

    def make(self) -> Any:
        return directory.add_rule(self.person, request=self.request, **self.given)

    def remove(self, row: GroupRule) -> None:
        directory.delete_rule(self.person, row, request=self.request)


class ServiceAccountSerializer(RowSerializer[ServiceAccount]):
    name = serializers.CharField(source="user.username")
    persona = serializers.SerializerMethodField()
    made_by: Any = named("username", allow_null=True)
    tokens = TokenSerializer(source="user.api_tokens", many=True)

    class Meta:
        model = ServiceAccount
        fields = ["name", "persona", "purpose", "made_by", "made_at", "tokens"]

    def get_persona(self, account: ServiceAccount) -> str:
        return ", ".join(str(m.persona) for m in account.user.memberships.all())


class TeamAccounts(Noun):
    """Below a team whose service accounts the person looks after; absent for everybody else."""

    write_scope = Scope.ALL
    make_scope: Scope | None = SESSION_ONLY

    @property
    def team(self) -> Team:
        return get_object_or_404(led_teams(self.person), name=self.kwargs["team"])

    def accounts(self) -> QuerySet[ServiceAccount]:
        rows = ServiceAccount.objects.filter(team=self.team).select_related("user")
        return rows.prefetch_related(
            "user__api_tokens", "user__memberships__persona", person_for(self.person, "made_by")
        )


class ServiceAccounts(TeamAccounts):
    """The programs that act for a team, with their tokens."""

    at, key = "teams/<str:team>/service-accounts", "<str:account>"
    names = ("service_accounts", "service_account")
    serializer_class = ServiceAccountSerializer
    takes = body_of(ServiceAccountForm, "NewServiceAccount")
    one = "One service account. DELETE takes its tokens with it; what it submitted goes on."
    lookup_field, lookup_url_kwarg = "user__username", "account"

    def rows(self) -> QuerySet[ServiceAccount]:
        return self.accounts()

    def make(self) -> Any:
        """Make a service account. It has no token yet, and no way to sign in."""
        return service.make(self.person, self.team, request=self.request, **self.given)

    def remove(self, row: ServiceAccount) -> None:
        service.delete(self.person, row, request=self.request)


class ServiceTokens(TeamAccounts):
    at, key = f"{ServiceAccounts.at}/{ServiceAccounts.key}/tokens", "<int:pk>"
    names = ("service_tokens", "service_token")
    serializer_class, takes, shows_new = TokenSerializer, TOKEN, NewTokenSerializer
    is_listed, shown_once = False, "token"

    @property
    def account(self) -> ServiceAccount:
        return get_object_or_404(self.accounts(), user__username=self.kwargs["account"])

    def rows(self) -> QuerySet[ApiToken]:
        return self.account.user.api_tokens.all()

    def make(self) -> Any:
        """Make a token for it. The answer is the only place its text is ever shown."""
        account, terms = self.account, token_terms(self.given)
        return service.issue_token(self.person, account, **terms, request=self.request)

    def remove(self, row: ApiToken) -> None:
        """Revoke a token of a service account; it stops working at once."""
        service.revoke_token(self.person, self.account, row, request=self.request)
