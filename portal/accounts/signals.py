"""What is written whenever somebody signs in or out, by whatever door."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from portal.accounts import tries
from portal.accounts.audit import record
from portal.accounts.doors import clear_expired_sessions
from portal.accounts.models import User
from portal.accounts.sessions import ADDRESS, BEGAN, BROWSER

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
    tries.remember(user, address)
    clear_expired_sessions(now)
    record("sign_in.succeeded", request, user=user)


@receiver(user_logged_out)
def note_sign_out(request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    if user is not None:
        record("sign_out.done", request, user=user)


def browser_of(agent: str) -> str:
    """Such as "Firefox on Linux"; only names from our own lists, whatever the header says."""
    found = [
        next((name for name in names if re.search(rf"\b{re.escape(name)}\b", agent)), "")
        for names in (BROWSERS, SYSTEMS)
    ]
    return " on ".join(SPOKEN.get(name, name) for name in found if name)
