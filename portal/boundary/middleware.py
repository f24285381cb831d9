"""What stands in every request and no view reads itself: address, cookies, length, encoding, form.

A view then reads texts without control characters, from a body that fits in memory. Below /api/ no
answer of 400 and above leaves as anything but JSON, whoever made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from portal.boundary.answers import (
    OF_STATUS,
    OTHER_CHARSET,
    TOO_LARGE,
    Refusal,
    answer,
    in_json,
    is_api,
)
from portal.boundary.bounds import LONGEST_PATH, LONGEST_QUERY, MOST_BYTES
from portal.boundary.reading import DIGITS, printable

ENCODINGS = frozenset({"", "utf-8", "utf8", "us-ascii", "ascii"})
JSON = ("application/json", "application/scim+json")


class BoundaryMiddleware(MiddlewareMixin):
    """Stands outside of everything that reads the session or the form."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        refusal = head_fault(request)
        return answer(request, refusal) if refusal else None

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        """Raises what Django raises for a form it cannot read; that becomes a 400 or a 413."""
        if request.method != "POST":
            return None
        refusal = text_fault("The form", _texts(request.POST.lists()))
        return answer(request, refusal) if refusal else None

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "")
        if response.status_code < 400 or not is_api(request) or kind in JSON:
            return response
        return in_json(response)


def head_fault(request: HttpRequest) -> Refusal | None:
    """What is wrong with all of a request but its body."""
    query = request.META.get("QUERY_STRING", "")
    if len(request.path) > LONGEST_PATH or len(query) > LONGEST_QUERY:
        return Refusal(
            414,
            "address_too_long",
            f"The address is longer than {LONGEST_PATH} characters, or its query than {LONGEST_QUERY}.",
            "Ask for less at once.",
        )
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    if not length.isdecimal():
        return OF_STATUS[400]
    if len(length) > DIGITS or int(length) > MOST_BYTES:
        return TOO_LARGE
    if (request.content_params or {}).get("charset", "").lower() not in ENCODINGS:
        return OTHER_CHARSET
    return (
        text_fault("The address", [request.path])
        or text_fault("The query", _texts(request.GET.lists()))
        or text_fault("A cookie", _texts((key, [v]) for key, v in request.COOKIES.items()))
    )


def text_fault(where: str, texts: Iterable[str]) -> Refusal | None:
    for text in texts:
        try:
            printable(text)
        except ValidationError:
            return Refusal(
                400,
                "unreadable_text",
                f"{where} holds a control character.",
                "Take it out and send it again.",
            )
    return None


def _texts(lists: Iterable[tuple[str, list[Any]]]) -> Iterable[str]:
    for key, values in lists:
        yield key
        yield from (value for value in values if isinstance(value, str))
