"""Who proved in the last minutes that it is them.

A browser that was left open and a stolen cookie are sessions too. So people, service accounts, tokens and
webhooks, which go on when a session has ended, are made by one whose person showed a password or a factor a
moment ago: at sign-in, or once more on the page that confirms it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthentication import suspend_request
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

View = Callable[..., HttpResponseBase]
CODE = "proof_needed"
SENTENCE = "This session has to prove first that it is you."


def minutes() -> int:
    """For how long a proof holds."""
    return int(settings.ACCOUNT_REAUTHENTICATION_TIMEOUT) // 60


def is_proved(request: HttpRequest) -> bool:
    """Whether this session's person showed who they are in the last minutes."""
    shown = get_authentication_records(request, request.user)
    since = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
    return any(float(proof["at"]) > since for proof in shown)


def where(request: HttpRequest) -> str:
    """The address at which the person proves it; that of sign-in where they have nothing else to show."""
    ways = get_adapter().get_reauthentication_methods(request.user)
    return str(ways[0]["url"]) if ways else reverse("accounts:sign_in")


def remedy(request: HttpRequest) -> str:
    """What a program that holds a session is told."""
    way = where(request)
    if way == reverse("accounts:sign_in"):
        return f"Sign out, sign in again, and send this within {minutes()} minutes."
    return f"Confirm that it is you at {way}, and send this again within {minutes()} minutes."


def proving(view: View) -> View:
    """``view``, whose POST waits until the session proved itself. What was typed is kept and sent on then."""

    @wraps(view)
    def asked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method != "POST" or not request.user.is_authenticated or is_proved(request):
            return view(request, *args, **kwargs)
        way = where(request)
        if way == reverse("accounts:sign_in"):
            messages.warning(request, f"{SENTENCE} {remedy(request)}")
            return _lead(request, redirect("accounts:account"))
        return _lead(request, suspend_request(request, way))

    return asked


def _lead(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """A fragment's own redirect would put the page into the fragment."""
    if not request.headers.get("HX-Request"):
        return answer
    led = HttpResponse(status=204)
    led["HX-Redirect"] = answer.headers["Location"]
    return led
