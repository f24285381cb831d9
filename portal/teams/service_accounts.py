"""Programs that act for a team: accounts without a way to sign in, whose tokens are the team's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from rest_framework.request import Request

from portal.accounts import doors
from portal.accounts.audit import record
from portal.accounts.models import ApiToken, Persona, Scope, User
from portal.accounts.provider import PROGRAMS
from portal.teams.access import is_admin
from portal.teams.giving import check_end, check_may_give, check_within, last_end
from portal.teams.models import Membership, ServiceAccount, Team
from portal.teams.names import check_program
from scheduling.services.errors import ServiceError, name_refused

MOST = 50
"""Service accounts of one team: more are forgotten ones."""


@transaction.atomic
def make(
    by: User,
    team: Team,
    *,
    name: str,
    persona: Persona,
    purpose: str,
    request: HttpRequest | Request,
) -> ServiceAccount:
    """An account ``svc-NAME`` in ``team`` with ``persona``, for as long as ``by`` may give that. It has no
    token yet.

    Raises ServiceError: ``not_yours`` where ``by`` may not give the persona, ``bad_name``, ``name_taken``,
    ``too_many``.
    """
    check_within(by, persona, team, "give")
    if team.service_accounts.count() >= MOST:
        sentence = f"{team} has {MOST} service accounts."
        raise ServiceError("too_many", sentence, "Delete one that nothing uses first.")
    user = _account(name)
    until = last_end(by, persona, team)
    Membership.objects.create(user=user, team=team, persona=persona, until=until)
    account = ServiceAccount.objects.create(user=user, team=team, made_by=by, purpose=purpose)
    facts: dict[str, Any] = {"account": user.username, "team": team.name, "persona": persona.name}
    record("service_account.made", request, user=by, **facts)
    return account


def _account(name: str) -> User:
    user = User(username=PROGRAMS + name)
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["password"], validate_unique=False)
    except ValidationError:
        raise ServiceError(
            "bad_name",
            "That name cannot be used.",
            "Use letters, digits and . - _ alone, 100 at most.",
            field="name",
        ) from None
    check_program(user.username)
    try:
        # Two at once: the second finds out here, inside a savepoint of its own.
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise name_refused() from None
    return user


def delete(by: User, account: ServiceAccount, *, request: HttpRequest | Request) -> None:
    """It and its tokens are gone; what it submitted goes on, and shows its name.

    Raises ServiceError ``forbidden`` for whoever gives no personas in its team, ``not_yours`` where a
    persona of the account is more than theirs.
    """
    _check_within(by, account, "delete an account with")
    facts: dict[str, Any] = {"account": account.user.username, "team": account.team.name}
    record("service_account.deleted", request, user=by, **facts)
    account.user.delete()


def issue_token(
    by: User,
    account: ServiceAccount,
    name: str,
    *,
    scopes: Iterable[Scope],
    expires_at: datetime | None,
    endless: bool,
    request: HttpRequest | Request,
) -> tuple[ApiToken, str]:
    """As for a person; the log says who asked.

    A holder of the token acts as the account: raises ServiceError ``not_yours`` where ``by`` may not give
    its persona, ``only_admins`` for a token of the directory, ``past_your_own_end`` for a token that
    outlives their own right to, else as ``doors.issue_token`` does.
    """
    _check_within(by, account, "issue tokens of an account with")
    wanted = list(scopes)
    if Scope.DIRECTORY in wanted and not is_admin(by):
        raise ServiceError(
            "only_admins",
            "Only who administers the installation lets a directory in.",
            "Leave that scope out, or ask an admin.",
            field="scopes",
        )
    for membership in account.user.memberships.select_related("persona", "team__queue"):
        ends = [end for end in (ApiToken.end_of(expires_at, endless), membership.until) if end]
        check_end(
            by, membership.persona, membership.team, min(ends, default=None), field="expires_at"
        )
    return doors.issue_token(
        request, account.user, name, scopes=wanted, expires_at=expires_at, endless=endless, by=by
    )


def may_issue(by: User, account: ServiceAccount) -> bool:
    """Whether ``by`` may issue tokens of it, with which they act as the account."""
    try:
        _check_within(by, account, "issue tokens of an account with")
    except ServiceError:
        return False
    return True


def revoke_token(
    by: User, account: ServiceAccount, token: ApiToken, *, request: HttpRequest | Request
) -> None:
    """Raises ServiceError as ``delete`` does: whoever stops what is above them decides over it."""
    _check_within(by, account, "revoke tokens of an account with")
    doors.revoke_token(request, token, by=by)


def _check_within(by: User, account: ServiceAccount, act: str) -> None:
    check_may_give(by, account.team)
    for membership in account.user.memberships.select_related("persona", "team__queue"):
        check_within(by, membership.persona, membership.team, act)
