"""Bearer tokens of the API."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.accounts.audit import record
from portal.accounts.confirming import is_unconfirmed
from portal.accounts.models import ApiToken, User

USE_EVERY = timedelta(minutes=1)
"""A use is written no more often than this, unless it comes from elsewhere."""


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer weir_…``; an unknown or expired token is refused, none is passed on."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).decode("latin-1").split()
        if len(parts) != 2 or parts[0] != self.keyword:
            return None
        now = timezone.now()
        token = (
            ApiToken.objects.select_related("user")
            .filter(Q(expires_at=None) | Q(expires_at__gt=now), digest=ApiToken.digest_of(parts[1]))
            .filter(user__is_active=True)
            .first()
        )
        if token is None:
            raise AuthenticationFailed("This token is unknown or expired. Make one on your page.")
        if is_unconfirmed(token.user):
            raise AuthenticationFailed(
                "Your provider has not signed you in for long. Sign in once."
            )
        note_use(token, request, now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


def note_use(token: ApiToken, request: Request, now: datetime) -> None:
    """Keep when and from where the token was last used, and log a use from elsewhere."""
    address = request.META.get("REMOTE_ADDR", "")
    elsewhere = token.last_used_at is None or token.last_address != address
    if not elsewhere and token.last_used_at and now - token.last_used_at < USE_EVERY:
        return
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=now, last_address=address)
    if elsewhere:
        record(
            "token.used_elsewhere",
            request,
            user=token.user,
            token=token.pk,
            before=token.last_address,
        )
