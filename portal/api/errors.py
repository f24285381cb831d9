"""One place where errors become answers: a code, a sentence and a remedy.

Every answer of 400 and above has the same shape::

    {"code": "invalid", "sentence": "…", "remedy": "…", "fields": {"name": ["…"]}}

``fields`` is there only when the fault stands at named fields; nested ones are joined by dots. What a
person may not see is 404, never 403: absent and forbidden look alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler

from portal.api.throttles import throttle_unknown
from portal.boundary.answers import TOO_LARGE
from scheduling.services.errors import ServiceError

REMEDIES: Mapping[str, tuple[str, str]] = {
    "invalid": ("The request has faults.", "Correct the named fields and send it again."),
    "parse_error": ("The body can't be read.", "Send valid JSON."),
    "not_authenticated": (
        "Nobody is signed in.",
        "Send 'Authorization: Bearer TOKEN'; make a token on your page.",
    ),
    "authentication_failed": (
        "This token is unknown or expired.",
        "Make a new token on your page.",
    ),
    "permission_denied": (
        "You may not do this.",
        "Ask the lead of the team, or somebody who operates the cluster.",
    ),
    "not_found": (
        "There is no such thing, or you may not see it.",
        "Check the address in the reference at /api/v1/docs, and that you are a member of its team.",
    ),
    "method_not_allowed": (
        "This address does not take this method.",
        "See the Allow header, or the reference at /api/v1/docs.",
    ),
    "not_acceptable": ("This format is not served.", "Accept application/json."),
    "unsupported_media_type": ("This kind of body is not read.", "Send application/json."),
    TOO_LARGE.code: (TOO_LARGE.sentence, TOO_LARGE.remedy),
    "throttled": ("Too many requests.", "Wait for the time in the Retry-After header."),
}
"""code -> (sentence, remedy) for what the framework itself raises."""

STATUS_OF_CODE: Mapping[str, int] = {
    **dict.fromkeys(
        (
            "stale",
            "name_taken",
            "finished",
            "not_waiting",
            "ended",
            "changed_since",
            "too_many_tokens",
            "too_many",
            "in_use",
            "has_members",
            "last_admin",
            "one_open",
            "not_enforcing",
            "taken",
            "moved_on",
            "renewed",
            "under_way",
            "outcome_unknown",
        ),
        status.HTTP_409_CONFLICT,
    ),
    "key_reused": status.HTTP_422_UNPROCESSABLE_ENTITY,
    "gone": status.HTTP_404_NOT_FOUND,
    **dict.fromkeys(("forbidden", "four_eyes", "beyond_bound"), status.HTTP_403_FORBIDDEN),
    **dict.fromkeys(("no_connection", "no_answer"), status.HTTP_503_SERVICE_UNAVAILABLE),
    "no_space": status.HTTP_507_INSUFFICIENT_STORAGE,
}
"""Service errors that are not the caller's input."""


class MissingRight(exceptions.PermissionDenied):
    """The person sees the thing, so saying what they lack tells nothing new."""

    default_code = "not_allowed"

    def __init__(self, sentence: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(sentence)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to ``error`` in the common shape; None (a 500) for what nobody foresaw."""
    if isinstance(error, ServiceError):
        return _of_service(error)
    if isinstance(error, (exceptions.NotAuthenticated, exceptions.AuthenticationFailed)):
        error = _of_unknown(error, context["request"])
    response = exception_handler(_as_rest(error), context)
    if response is not None:
        response.data = _body(_as_rest(error))
    return response


def refuse(field: str, sentence: str) -> NoReturn:
    """Raises the 400 that stands at one field."""
    raise exceptions.ValidationError({field: [sentence]})


def _of_unknown(error: exceptions.APIException, request: Request) -> exceptions.APIException:
    """The refusal of a request that nobody known made, or that of its address's too many."""
    try:
        throttle_unknown(request, bad_token=isinstance(error, exceptions.AuthenticationFailed))
    except exceptions.Throttled as throttled:
        return throttled
    return error


def _of_service(error: ServiceError) -> Response:
    body: dict[str, Any] = {"code": error.code, "sentence": error.sentence, "remedy": error.remedy}
    if error.field:
        body["fields"] = {error.field: [error.sentence]}
    return Response(body, status=STATUS_OF_CODE.get(error.code, status.HTTP_400_BAD_REQUEST))


def _as_rest(error: Exception) -> Exception:
    if isinstance(error, Http404):
        return exceptions.NotFound()
    if isinstance(error, DjangoPermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(error, DjangoValidationError):
        detail = error.message_dict if hasattr(error, "error_dict") else error.messages
        return exceptions.ValidationError(detail)
    return error


def _body(error: Exception) -> dict[str, Any]:
    assert isinstance(error, exceptions.APIException)  # noqa: S101 - narrowed by exception_handler
    if isinstance(error, exceptions.ValidationError):
        sentence, remedy = REMEDIES["invalid"]
        fields = _fields(error.detail)
        if set(fields) == {""}:
            return {"code": "invalid", "sentence": " ".join(fields[""]), "remedy": remedy}
        return {"code": "invalid", "sentence": sentence, "remedy": remedy, "fields": fields}
    code = _code(error)
    sentence, remedy = REMEDIES.get(code, REMEDIES["permission_denied"])
    own = str(error.detail) if code in SPEAKING else sentence
    body = {"code": code, "sentence": own, "remedy": getattr(error, "remedy", remedy)}
    return {**body, "fields": named} if (named := getattr(error, "fields", None)) else body


SPEAKING = frozenset(
    {
        "not_allowed",
        "out_of_scope",
        "proof_needed",
        "parse_error",
        "authentication_failed",
        "permission_denied",
        "changed_since_read",
    }
)
"""Codes whose exception says more than the table does."""


def _code(error: exceptions.APIException) -> str:
    codes = error.get_codes()
    code = codes if isinstance(codes, str) else error.default_code
    return "parse_error" if isinstance(error, exceptions.ParseError) else code


def _fields(detail: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, sentence in _walk(detail, ()):
        found.setdefault(".".join(path), []).append(sentence)
    return found


def _walk(detail: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            below = path if key in ("non_field_errors", "__all__") else (*path, str(key))
            yield from _walk(value, below)
    elif isinstance(detail, (list, tuple)):
        for i, value in enumerate(detail):
            nested = isinstance(value, (Mapping, list, tuple))
            yield from _walk(value, (*path, str(i)) if nested else path)
    else:
        yield path, str(detail)
