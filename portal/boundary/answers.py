"""Refusals that no view makes: JSON below /api/, a page of Weir's own elsewhere.

Both carry a code, a sentence and a remedy. The page reads nothing but its template, so that it stands
when the database does not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.exceptions import DisallowedHost, RequestDataTooBig, TooManyFieldsSent
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.csrf import requires_csrf_token
from django.views.defaults import page_not_found

from portal.boundary.bounds import MOST_BYTES, MOST_FIELDS


@dataclass(frozen=True, slots=True)
class Refusal:
    """``headers`` are kept from the answer that this one replaces."""

    status: int
    code: str
    sentence: str
    remedy: str
    headers: Mapping[str, str] = field(default_factory=dict)


TOO_LARGE: Final = Refusal(
    413, "too_large", f"The body is larger than {MOST_BYTES // 1024} KiB.", "Send less at once."
)
TOO_MANY_FIELDS: Final = Refusal(
    400, "too_many_fields", f"The form has more than {MOST_FIELDS:,} fields.", "Send fewer at once."
)
OTHER_CHARSET: Final = Refusal(
    415, "unsupported_charset", "Only UTF-8 is read.", "Encode it in UTF-8 and say so."
)
UNKNOWN_HOST: Final = Refusal(
    400,
    "unknown_host",
    "This host name is not served.",
    "Use the address you were given, or ask an operator to add the name to WEIR_ALLOWED_HOSTS.",
)
CROSS_SITE: Final = Refusal(
    403,
    "cross_site",
    "The request does not prove that it comes from a page of Weir.",
    "Reload the page and send it again; cookies must be allowed.",
)
NO_SPACE: Final = Refusal(
    507,
    "no_space",
    "Weir's database takes nothing more: its disk is full. Nothing was changed.",
    "Tell an operator; try again when there is room.",
)
NO_DATABASE: Final = Refusal(
    503,
    "no_database",
    "Weir's database does not answer, or is busy. Nothing of what you sent was saved.",
    "Try again in a minute; if it stays, tell an operator.",
    {"Retry-After": "5"},
)
OF_STATUS: Final[Mapping[int, Refusal]] = {
    refusal.status: refusal
    for refusal in (
        Refusal(400, "bad_request", "The request can't be read.", "Correct it and send it again."),
        Refusal(403, "forbidden", "You may not do this.", "Ask somebody who operates the cluster."),
        Refusal(
            404,
            "not_found",
            "There is no such thing, or you may not see it.",
            "Check the address, and that you are a member of the team it belongs to.",
        ),
        Refusal(
            405,
            "method_not_allowed",
            "This address does not take this method.",
            "See the Allow header, or the reference at /api/v1/docs.",
        ),
        Refusal(
            500,
            "failure",
            "Weir failed at this, and it is not your fault.",
            "Try again; if it stays, tell an operator when it happened.",
        ),
    )
}


def is_api(request: HttpRequest) -> bool:
    """SCIM's among them: what speaks there is a program as well."""
    return request.path_info == "/api" or request.path_info.startswith(("/api/", "/scim/"))


def answer(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """``refusal`` in the form that the address speaks."""
    body = {"code": refusal.code, "sentence": refusal.sentence, "remedy": refusal.remedy}
    if is_api(request):
        return JsonResponse(body, status=refusal.status, headers=dict(refusal.headers))
    page = render_to_string("refused.html", body)
    return HttpResponse(page, status=refusal.status, headers=dict(refusal.headers))


def in_json(response: HttpResponseBase) -> HttpResponse:
    """What another part answered by something else than JSON, for a program."""
    known = (
        OF_STATUS.get(response.status_code) or OF_STATUS[400 if response.status_code < 500 else 500]
    )
    headers = {name: response[name] for name in ("Allow", "Retry-After") if name in response}
    body = {"code": known.code, "sentence": known.sentence, "remedy": known.remedy}
    return JsonResponse(body, status=response.status_code, headers=headers)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler400."""
    if isinstance(exception, RequestDataTooBig):
        return answer(request, TOO_LARGE)
    if isinstance(exception, TooManyFieldsSent):
        return answer(request, TOO_MANY_FIELDS)
    if isinstance(exception, DisallowedHost):
        return answer(request, UNKNOWN_HOST)
    return answer(request, OF_STATUS[400])


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler403."""
    return answer(request, OF_STATUS[403])


@requires_csrf_token
def cross_site(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer to a POST without the token of a page; ``reason`` is for the log, where Django puts it."""
    return answer(request, CROSS_SITE)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    if is_api(request):
        return answer(request, OF_STATUS[404])
    return page_not_found(request, exception)


def failure(request: HttpRequest, *args: Any) -> HttpResponse:
    """Django's handler500, called while the error that nobody caught is the present one."""
    error = sys.exc_info()[1]
    return answer(
        request, of_database(error) if isinstance(error, OperationalError) else OF_STATUS[500]
    )


def of_database(error: OperationalError) -> Refusal:
    """SQLite and PostgreSQL name a full disk in words; all other trouble passes, or ends with a restart."""
    text = str(error).lower()
    is_full = "disk is full" in text or "no space left" in text
    return NO_SPACE if is_full else NO_DATABASE
