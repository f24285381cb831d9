"""What every answer of every address is held to. Each takes an answer and says its fault, or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import requests
import schemathesis
from django.urls import Resolver404, resolve
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.transport import Response

from tests.portal.test_permission_matrix import NO_ADDRESS, TEAM
from tests.security.sealed import SEALED_FROM
from tests.security.test_numbers import DOCUMENT
from tests.walk.asking import Answer, own_words

IN, OUT, NO_METHOD, SIGN_IN = "let in", "kept out", "takes no such method", "asked to sign in"
REFUSED_INPUT = frozenset({400, 409, 422, 503})
READ_FIRST = frozenset(
    {
        "api:loan_offers",
        "api:loans",
        "api:quota_preview",
        "api:quotas",
        "api:report_views",
        "api:requests",
    }
)
"""Addresses that read what is sent before they fetch what it is about: what is sent names it. Elsewhere a
refusal of empty input would hide a door without a lock."""


def status(answer: Answer) -> str:
    """As the row of the address has it."""
    code, expected = answer.status, answer.expected
    right = {
        "": True,
        IN: code < 400 or code in REFUSED_INPUT,
        # Absent; 403 only where it is seen; or refused for its input as what does not exist is.
        OUT: code == 404
        or (code == 403 and answer.who in TEAM)
        or (answer.name in READ_FIRST and code == answer.twin == 400),
        NO_METHOD: code in (404, 405),
        SIGN_IN: _asks_to_sign_in(answer),
    }[expected]
    return "" if right else f"{code}, but is {expected}"


def _asks_to_sign_in(answer: Answer) -> bool:
    if answer.name == "accounts:sign_out":
        return answer.status in (302, 405)
    if answer.name.startswith("scim:"):
        return answer.status == 401
    if answer.name in NO_ADDRESS or (answer.name.startswith("api:") and answer.name != "api:docs"):
        return answer.status == 401
    return answer.status == 302 and answer.headers["Location"].startswith("/sign-in/")


def sealed(answer: Answer) -> str:
    """Body, status line and headers name nothing that is sealed from the person, but what they typed."""
    lines = [f"{name}: {value}" for name, value in answer.headers.items()]
    text = own_words("\n".join(lines).encode() + b"\n" + answer.body, answer.typed)
    for mark in SEALED_FROM[answer.who]:
        if found := re.search(mark, text):
            return f"names {text[max(0, found.start() - 60) : found.end() + 60]!r}"
    return ""


def server_error(answer: Answer) -> str:
    return f"{answer.status}" if answer.status >= 500 and answer.status != 503 else ""


def json_shape(answer: Answer) -> str:
    """Below /api/ every refusal is JSON of the one shape."""
    if not answer.url.startswith("/api/") or answer.status < 300:
        return ""
    if answer.url.startswith("/api/v1/docs") and answer.status == 302:
        return ""
    if answer.headers.get("Content-Type") != "application/json":
        return f"{answer.status} as {answer.headers.get('Content-Type')}"
    told = json.loads(answer.body)
    missing = {"code", "sentence", "remedy"} - {key for key, value in told.items() if value}
    return f"without {missing}" if missing else ""


def schema(answer: Answer) -> str:
    """Status and body are documented."""
    operation = _operation(answer.method, answer.url)
    if operation is None or answer.status == 405:
        return ""
    documented = operation.definition.raw["responses"]
    if str(answer.status) not in documented and "default" not in documented:
        return f"{answer.status} is not documented"
    headers = {name.lower(): [value] for name, value in answer.headers.items()}
    response = Response(
        status_code=answer.status, headers=headers, content=answer.body, request=_request(),
        elapsed=0.0, verify=False,
    )  # fmt: skip
    try:
        operation.validate_response(response)
    except (Failure, FailureGroup) as fault:
        told = fault.exceptions[0] if isinstance(fault, FailureGroup) else fault
        return f"{told.title}: {told.message}"[:400]
    return ""


@cache
def _document() -> Any:
    return schemathesis.openapi.from_dict(DOCUMENT)


@cache
def _request() -> requests.PreparedRequest:
    return requests.Request("GET", "http://testserver/").prepare()


@cache
def _operations() -> Mapping[tuple[str, str], Any]:
    found = (one.ok() for one in _document().get_all_operations())
    return {(one.method.upper(), one.path): one for one in found}


def _operation(method: str, url: str) -> Any:
    path = url.partition("?")[0]
    if not path.startswith("/api/"):
        return None
    try:
        route = resolve(path).route
    except Resolver404:
        return None
    return _operations().get((method, "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)))


def kept_by_no_cache(answer: Answer) -> str:
    """What a person is told stays out of caches, and is told apart by who asks."""
    if answer.who == "anonymous" or answer.method != "GET" or not answer.expected:
        return ""
    parts = {
        header: {part.strip() for part in answer.headers.get(header, "").split(",")}
        for header in ("Cache-Control", "Vary")
    }
    if parts["Cache-Control"] != {"no-store"}:
        return f"Cache-Control: {answer.headers.get('Cache-Control')}"
    apart = {"Cookie", "Authorization"} <= parts["Vary"]
    return "" if apart else f"Vary: {answer.headers.get('Vary')}"


PLANS = {
    "api:request_preview": "A program has nothing to show meanwhile; a kept plan comes first.",
    "api:workload_sooner": "The same.",
    "web:cycle_candidates": "A fragment about what is past, planned once for all who open its cycle.",
}
"""Address -> why it may plan."""


def waits_for_no_plan(answer: Answer) -> str:
    """A plan is asked of a worker, or kept: nothing that reads has the engine plan before it answers."""
    if answer.method != "GET" or answer.name in PLANS or not answer.planned:
        return ""
    return f"planned first: {answer.planned}"


MADE_OF = re.compile(r"\b(?:celery(?! -A)|kombu|numba|queryset|traceback)\b", re.I)
TO_COPY = re.compile(r"<(script|style|code|pre)\b.*?</\1>|<[^>]+>", re.S)


def private_words(answer: Answer) -> str:
    """A page does not speak of what Weir is made of, but in a line to be copied."""
    if "html" not in answer.headers.get("Content-Type", ""):
        return ""
    text = TO_COPY.sub(" ", answer.body.decode(errors="replace"))
    found = MADE_OF.search(text)
    return f"says {text[max(0, found.start() - 60) : found.end() + 60]!r}" if found else ""


CHECKERS: Mapping[str, Callable[[Answer], str]] = {
    "status": status,
    "sealed names": sealed,
    "server error": server_error,
    "JSON of a refusal": json_shape,
    "schema": schema,
    "caches": kept_by_no_cache,
    "plans": waits_for_no_plan,
    "private words": private_words,
}


def faults(answer: Answer) -> list[str]:
    """One line for each checker that it fails."""
    return [
        f"{answer}\n    {name}: {told}"
        for name, check in CHECKERS.items()
        if (told := check(answer))
    ]
