"""Bearer tokens of the API."""

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.accounts.models import ApiToken, User


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
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword
