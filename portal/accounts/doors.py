"""What a person changes about how they get in; each leaves a line in the log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from portal.accounts.audit import record
from portal.accounts.models import ApiToken, Scope, Session, User
from portal.accounts.sessions import digest_of
from scheduling.services.errors import ServiceError


def issue_token(
    request: HttpRequest | Request,
    user: User,
    name: str,
    *,
    scopes: Iterable[Scope],
    expires_at: datetime | None,
    endless: bool,
    by: User | None = None,
) -> tuple[ApiToken, str]:
    """A token and its plain text, shown this once; ``by`` whom, where it is not the person's own.

    Raises as ``ApiToken.issue`` does, and ServiceError ``not_for_people`` for a token of the directory.
    """
    wanted = list(scopes)
    if Scope.DIRECTORY in wanted and by is None:
        raise ServiceError(
            "not_for_people",
            "Tokens of the directory are those of service accounts.",
            "Make a service account for it, and its token there.",
            field="scopes",
        )
    token, plain = ApiToken.issue(user, name, scopes=wanted, expires_at=expires_at, endless=endless)
    facts = {"token": token.pk, "scopes": token.scopes, "expires_at": token.expires_at}
    facts |= {"by": by.get_username()} if by else {}
    record("token.issued", request, user=user, **facts)
    return token, plain


def revoke_token(
    request: HttpRequest | Request | None, token: ApiToken, *, by: User | None = None
) -> None:
    facts: dict[str, Any] = {"by": by.get_username()} if by else {}
    record("token.revoked", request, user=token.user, token=token.pk, **facts)
    token.delete()


def living_sessions(user: User, now: datetime) -> list[Session]:
    """Where the person is signed in, the last used first."""
    return list(user.sessions.filter(expire_date__gt=now))


def clear_expired_sessions(now: datetime) -> None:
    expired = Session.objects.filter(expire_date__lte=now)
    for session in expired.exclude(user=None).select_related("user"):
        began, seen = session.began_at, session.seen_at
        record("session.expired", None, user=session.user, began_at=began, seen_at=seen)
    expired.delete()


def end_session(request: HttpRequest | Request, session: Session) -> None:
    session.delete()
    began, seen = session.began_at, session.seen_at
    record("session.ended", request, user=session.user, began_at=began, seen_at=seen)


def end_other_sessions(request: HttpRequest, user: User) -> int:
    """Signs the person out everywhere but here; how many sessions that ended."""
    here = digest_of(request.session.session_key or "")
    _, ended = user.sessions.exclude(pk=here).delete()
    count = ended.get(Session._meta.label, 0)
    record("session.others_ended", request, user=user, sessions=count)
    return count
