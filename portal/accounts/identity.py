"""Sign-in through the organisation's own provider (OpenID Connect), by settings alone."""

from __future__ import annotations

from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from portal.accounts.ldap import PROVIDER_ID as DIRECTORY_ID

PROVIDER_ID = "oidc"
"""Stands in the callback's address, so it is the same for everybody."""
NEEDED = ("WEIR_OIDC_ISSUER", "WEIR_OIDC_CLIENT_ID", "WEIR_OIDC_CLIENT_SECRET")


def providers(env: environ.Env) -> dict[str, dict[str, Any]]:
    """What allauth asks for; empty where no provider is set. Raises ImproperlyConfigured for half of one."""
    given = {name: env.str(name, default="") for name in NEEDED}
    if not any(given.values()):
        return {}
    if missing := [name for name, value in given.items() if not value]:
        verb = "is" if len(missing) == 1 else "are"
        raise ImproperlyConfigured(f"{' and '.join(missing)} {verb} missing: see the provider.")
    issuer, client_id, secret = given.values()
    app = {
        "provider_id": PROVIDER_ID,
        "name": env.str("WEIR_OIDC_NAME", default="single sign-on"),
        "client_id": client_id,
        "secret": secret,
        "settings": {"server_url": issuer},
    }
    scope = env.str("WEIR_OIDC_SCOPE", default="openid profile email").split()
    return {"openid_connect": {"APPS": [app], "SCOPE": scope, "OAUTH_PKCE_ENABLED": True}}


def is_connected(request: HttpRequest) -> bool:
    """Whether the provider signs this person in."""
    # Settings read this module before there are models.
    from allauth.socialaccount.models import SocialAccount

    connected = SocialAccount.objects.filter(user_id=request.user.pk)
    return connected.exclude(provider=DIRECTORY_ID).exists()
