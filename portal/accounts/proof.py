"""Whether a person proved in the last minutes that it is them.

A browser that was left open and a stolen cookie are sessions too. So people, service accounts, tokens and
webhooks, which go on when a session has ended, are made by one whose person showed a password or a factor a
moment ago: at sign-in, or once more on the page that confirms it.

What was typed before the proof may be somebody else's: it is kept with the session, shown once the person has
proved who they are, and sent by nobody but them. A proof gives the session a new key, so whoever copied the
cookie does not share in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthentication import STATE_SESSION_KEY
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from portal.accounts import typed_forms
from portal.accounts.identity import is_connected

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
    if ways:
        return str(ways[0]["url"])
    return reverse("accounts:confirm_provider" if is_connected(request) else "accounts:sign_in")


def remedy(request: HttpRequest) -> str:
    """What a program that holds a session is told."""
    way = where(request)
    if way == reverse("accounts:sign_in"):
        return f"Sign out, sign in again, and send this within {minutes()} minutes."
    return f"Confirm that it is you at {way}, and send this again within {minutes()} minutes."


def proving(view: View, *, reading: bool = False) -> View:
    """``view``, whose POST (with ``reading`` every request) waits until the session proved itself."""

    @wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        waits = (reading or request.method == "POST") and request.user.is_authenticated
        if not waits:
            return view(request, *args, **kwargs)
        if is_proved(request):
            typed_forms.drop(request)
            return view(request, *args, **kwargs)
        return _lead(request, to_proof(request))

    return wrapper


def to_proof(request: HttpRequest) -> HttpResponse:
    """Lead to where the person proves it, and keep what they typed."""
    way, after = where(request), request.get_full_path()
    if way == reverse("accounts:sign_in"):
        messages.warning(request, f"{SENTENCE} {remedy(request)}")
        return redirect("accounts:account")
    if request.method == "POST":
        typed_forms.keep(request)
        after = reverse("accounts:go_on")
    return redirect(f"{way}?{urlencode({'next': after})}")


def renewing(view: View) -> View:
    """``view``, by which people prove who they are: a session that did gets a new key, and nothing that was
    left in it to be done after a proof is done by it."""

    @wraps(view)
    def renewed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        request.session.pop(STATE_SESSION_KEY, None)
        before = list(get_authentication_records(request, request.user))
        answer = view(request, *args, **kwargs)
        if list(get_authentication_records(request, request.user)) != before:
            request.session.cycle_key()
        return answer

    return renewed


def _lead(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """A fragment's own redirect would put the page into the fragment."""
    if not request.headers.get("HX-Request"):
        return answer
    led = HttpResponse(status=204)
    led["HX-Redirect"] = answer.headers["Location"]
    return led
