"""Tells what people do from what their pages do without them."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from portal.accounts.sessions import SessionStore

UNATTENDED = ("X-Weir-Live", "X-Weir-Unattended")
"""Headers of requests that a page sends by itself."""


def is_unattended(request: HttpRequest) -> bool:
    """A stream or a refresh: an open tab must not keep the session of somebody who left."""
    match = request.resolver_match
    is_stream = match is not None and match.view_name == "web:live"
    return is_stream or any(name in request.headers for name in UNATTENDED)


class SessionUseMiddleware:
    """Notes when a session was last used, where the request has read it anyway."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = request.session
        if isinstance(session, SessionStore) and session.accessed and not is_unattended(request):
            session.touch()
        return response
