"""Whence a request comes and as what its person may do it, told to every event it leads to."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from portal.accounts.models import ApiToken, User
from portal.audit.kinds import kind_of
from portal.audit.models import Via
from portal.boundary.answers import is_api
from portal.teams.rights import rights_of
from scheduling.models import Cluster
from scheduling.services import events

SAFE = ("GET", "HEAD", "OPTIONS")
TURNED_DOWN = (403, 404)
"""Answers to whoever may not: absent and forbidden look alike."""


class RequestOrigin(events.Origin):
    """Asked while the event is written, so what it tells is what held at that moment."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(via=Via.API if is_api(request) else Via.PAGE)
        self.request, self.id = request, uuid.uuid4().hex

    def event(self, kind: str, cluster: Cluster | None, queue: str) -> dict[str, str]:
        token = getattr(self.request, "auth", None)
        address = self.request.META.get("REMOTE_ADDR", "")
        return {
            "via": self.via,
            "address": f"{address}, token {token.name}" if isinstance(token, ApiToken) else address,
            "request_id": self.id,
            "allowed_as": capacity(getattr(self.request, "user", None), kind, cluster, queue),
        }


def capacity(person: object, kind: str, cluster: Cluster | None, queue: str) -> str:
    """ "persona, team" of the membership that allows it; empty where none is needed, or none does."""
    capability = kind_of(kind).capability
    if not isinstance(person, User) or capability is None:
        return ""
    rights = rights_of(person)
    grant = rights.granting(capability, cluster.pk if cluster else 0, queue)
    grant = grant or next(rights.holding(capability), None)
    if grant is not None:
        return f"{grant.persona}, {grant.team}"
    return "superuser" if person.is_superuser else ""


class OriginMiddleware:
    """Every event of a request comes from it; a write that is turned down is an event too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with events.coming_from(RequestOrigin(request)) as origin:
            response = self.get_response(request)
            if _is_turned_down(request, response) and not origin.refused:
                events.note_refusal(
                    "request.refused",
                    actor=request.user,
                    subject=f"{request.method} {request.path}",
                    reason=f"answered {response.status_code}",
                )
            return response


def _is_turned_down(request: HttpRequest, response: HttpResponseBase) -> bool:
    if request.method in SAFE or response.status_code not in TURNED_DOWN:
        return False
    return bool(request.user.is_authenticated)
