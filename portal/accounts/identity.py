"""Sign-in through the organisation's own provider (OpenID Connect or SAML), by settings alone."""

from __future__ import annotations

import re
from typing import Any

import environ
from cryptography import x509
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from portal.accounts.ldap import PROVIDER_ID as DIRECTORY_ID

OIDC, SAML = "oidc", "saml"
"""They stand in the addresses that a provider knows, so they are the same for everybody."""
NEEDED_OIDC = ("WEIR_OIDC_ISSUER", "WEIR_OIDC_CLIENT_ID", "WEIR_OIDC_CLIENT_SECRET")
NEEDED_SAML = ("WEIR_SAML_ENTITY_ID", "WEIR_SAML_ADDRESS", "WEIR_SAML_CERTIFICATE")
LONGEST_KEY = 200
NAMES_OF = {
    "email": (
        "email", "mail", "urn:oid:0.9.2342.19200300.100.1.3",
        "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
    ),
    "first_name": (
        "givenName", "firstName", "urn:oid:2.5.4.42",
        "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/givenname",
    ),
    "last_name": (
        "sn", "lastName", "surname", "urn:oid:2.5.4.4",
        "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/surname",
    ),
}  # fmt: skip
"""Attributes by which providers (SAML) usually say it; the first that is there counts."""


def providers(env: environ.Env) -> dict[str, dict[str, Any]]:
    """What allauth asks for; empty where no provider is set. Raises ImproperlyConfigured for half of one,
    and for two."""
    oidc, saml = _oidc(env), _saml(env)
    if oidc and saml:
        raise ImproperlyConfigured("WEIR_OIDC_… and WEIR_SAML_… name a provider each: keep one.")
    return {**oidc, **saml}


def _oidc(env: environ.Env) -> dict[str, dict[str, Any]]:
    given = _all_or_none(env, NEEDED_OIDC)
    if not given:
        return {}
    issuer, client_id, secret = given
    app = {
        "provider_id": OIDC,
        "name": env.str("WEIR_OIDC_NAME", default="single sign-on"),
        "client_id": client_id,
        "secret": secret,
        "settings": {"server_url": issuer},
    }
    scope = env.str("WEIR_OIDC_SCOPE", default="openid profile email").split()
    return {"openid_connect": {"APPS": [app], "SCOPE": scope, "OAUTH_PKCE_ENABLED": True}}


def _saml(env: environ.Env) -> dict[str, dict[str, Any]]:
    """Accounts are connected by the provider's own name of itself: another one's people are others."""
    given = _all_or_none(env, NEEDED_SAML)
    if not given:
        return {}
    entity, address, certificate = given
    if len(entity) > LONGEST_KEY:
        raise ImproperlyConfigured(f"WEIR_SAML_ENTITY_ID has more than {LONGEST_KEY} characters.")
    app = {
        "provider_id": entity,
        "name": env.str("WEIR_SAML_NAME", default="single sign-on"),
        "client_id": SAML,
        "settings": {
            "idp": {"entity_id": entity, "sso_url": address, "x509cert": _certificate(certificate)},
            "attribute_mapping": {name: list(said) for name, said in NAMES_OF.items()},
            "advanced": {"allow_single_label_domains": True, "want_name_id": True},
        },
    }
    return {"saml": {"APPS": [app]}}


def _certificate(given: str) -> str:
    """As PEM, given so or as what stands between its first and last line, as metadata has it."""
    if "-----BEGIN" not in given:
        given = f"-----BEGIN CERTIFICATE-----\n{given}\n-----END CERTIFICATE-----\n"
    body = re.sub(r"\\n", "\n", given).strip()
    try:
        x509.load_pem_x509_certificate(body.encode())
    except ValueError as error:
        raise ImproperlyConfigured(
            "WEIR_SAML_CERTIFICATE is no certificate: paste the signing certificate of the"
            " provider's metadata."
        ) from error
    return body


def _all_or_none(env: environ.Env, needed: tuple[str, ...]) -> list[str]:
    given = {name: env.str(name, default="") for name in needed}
    if not any(given.values()):
        return []
    if missing := [name for name, value in given.items() if not value]:
        verb = "is" if len(missing) == 1 else "are"
        raise ImproperlyConfigured(f"{' and '.join(missing)} {verb} missing: see the provider.")
    return list(given.values())


def kind() -> str:
    """What the provider speaks; empty where none is set."""
    spoken = settings.SOCIALACCOUNT_PROVIDERS
    return SAML if "saml" in spoken else OIDC if "openid_connect" in spoken else ""


def provider_name() -> str:
    """What the button says; empty where no provider is set."""
    for way in settings.SOCIALACCOUNT_PROVIDERS.values():
        for app in way.get("APPS", []):
            return str(app["name"])
    return ""


def is_connected(request: HttpRequest) -> bool:
    """Whether the provider signs this person in."""
    # Settings read this module before there are models.
    from allauth.socialaccount.models import SocialAccount

    connected = SocialAccount.objects.filter(user_id=request.user.pk)
    return connected.exclude(provider=DIRECTORY_ID).exists()
