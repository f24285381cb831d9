"""What is written whenever somebody signs in or out, by whatever door."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.mfa import signals as factors
from allauth.mfa.models import Authenticator
from allauth.socialaccount.signals import social_account_added
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from portal.accounts import identity, tries
from portal.accounts.audit import record
from portal.accounts.doors import clear_expired_sessions
from portal.accounts.models import User
from portal.accounts.sessions import ADDRESS, BEGAN, BROWSER, HOW

BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl", "python-requests")
"""As they name themselves, those that also name another before it."""
SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "CrOS", "Linux")
SPOKEN = {"Edg": "Edge", "OPR": "Opera", "Mac OS X": "macOS", "CrOS": "ChromeOS"}


@receiver(user_logged_in)
def note_sign_in(request: HttpRequest, user: User, **kwargs: Any) -> None:
    """The session begins anew; sessions that have run out are cleared away."""
    now, address = timezone.now(), request.META.get("REMOTE_ADDR", "")
    request.session[BEGAN] = now.isoformat()
    request.session[ADDRESS] = address
    request.session[BROWSER] = browser_of(request.META.get("HTTP_USER_AGENT", ""))
    request.session[HOW] = how = ", ".join(proofs_of(request, user))
    tries.remember(user, address)
    clear_expired_sessions(now)
    record("sign_in.succeeded", request, user=user, how=how)


@receiver(user_logged_out)
def note_sign_out(request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    if user is not None:
        record("sign_out.done", request, user=user)


@receiver(factors.authenticator_added)
@receiver(factors.authenticator_removed)
@receiver(factors.authenticator_reset)
def note_change(
    signal: object, request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any
) -> None:
    """Added and removed are said as such; recovery codes that replace others are made anew."""
    verb = "removed" if signal is factors.authenticator_removed else "added"
    record(f"factor.{verb}", request, user=user, factor=PROOFS[authenticator.type])


@receiver(factors.authentication_failed)
def note_wrong_code(
    request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any
) -> None:
    factor = PROOFS[authenticator.type]
    record("factor.refused", request, user=user, refused=True, factor=factor)


@receiver(social_account_added)
def note_connection(request: HttpRequest, sociallogin: Any, **kwargs: Any) -> None:
    record(f"{identity.kind()}.connected", request, user=sociallogin.user)


PROOFS = {
    "password": "password",
    "socialaccount": "single sign-on",
    "totp": "app",
    "webauthn": "passkey",
    "recovery_codes": "recovery code",
}


def proofs_of(request: HttpRequest, user: User) -> Iterator[str]:
    """What the person showed at this sign-in, in words and in order."""
    for proof in get_authentication_records(request, user):
        kind = proof.get("type") or proof.get("method")
        if kind in PROOFS:
            yield PROOFS[kind]


def browser_of(agent: str) -> str:
    """Such as "Firefox on Linux"; only names from our own lists, whatever the header says."""
    found = [
        next((name for name in names if re.search(rf"\b{re.escape(name)}\b", agent)), "")
        for names in (BROWSERS, SYSTEMS)
    ]
    return " on ".join(SPOKEN.get(name, name) for name in found if name)
