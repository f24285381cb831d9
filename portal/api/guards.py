"""What every call that writes is asked beside its body: which version it changes, and whether it is new.

GET of what can be edited tells an ETag; PUT, PATCH and DELETE with If-Match change that version or nothing.
POST with an Idempotency-Key is carried out once. The tables say which operations have what; the OpenAPI
document is drawn from them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from django.db import connection, transaction
from django.http import Http404
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api import versions
from portal.idempotency import answers

Handler = Callable[..., Response]
IF_MATCH, KEY = "If-Match", "Idempotency-Key"
SAFE_READS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class VersionRule:
    """``methods`` take If-Match. ``apart`` are fields that change without an edit."""

    apart: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset({"PUT", "PATCH", "DELETE"})


ALERT = frozenset({"state", "now", "since", "acknowledged_by", "escalated_at", "workload", "fired"})
ADAPTS = frozenset(
    {
        "value", "changed_at", "changed_from", "changed_to", "state", "asked_at", "begun_at", "ended_at",
        "evidence", "figures",
    }
)  # fmt: skip
REQUEST = VersionRule(apart=frozenset({"may"}))
DECIDED = VersionRule(apart=REQUEST.apart, methods=frozenset({"POST"}))
"""A verb on a request or a loan takes the version of that."""
VERSIONED: Mapping[str, VersionRule] = {
    "AdaptationView": VersionRule(apart=frozenset({"due_at", "why", "parameters"})),
    "AdaptingParameterView": VersionRule(apart=ADAPTS),
    "Alerts": VersionRule(apart=ALERT),
    "Budgets": VersionRule(),
    "Consolidations": VersionRule(),
    "GroupRules": VersionRule(),
    "LoanAct": DECIDED,
    "Loans": REQUEST,
    "NoticePreferences": VersionRule(),
    "Offers": VersionRule(),
    "GpuClasses": VersionRule(),
    "PriorityClasses": VersionRule(),
    "Queues": VersionRule(apart=frozenset({"shares"})),
    "Teams": VersionRule(),
    "People": VersionRule(),
    "Personas": VersionRule(),
    "PolicyView": VersionRule(),
    "QuotaList": VersionRule(methods=frozenset({"POST"})),
    "Requests": REQUEST,
    "RequestRules": VersionRule(),
    "SavedViews": VersionRule(),
    "ServiceAccounts": VersionRule(apart=frozenset({"tokens"})),
    "Studies": VersionRule(apart=frozenset({"progress", "cpu_s", "answer"})),
    "TeamMember": VersionRule(),
    "Tree": VersionRule(),
}
"""View -> how its version is told."""
ONLY_READ = frozenset({"QuotaPreview"})
"""Views whose POST changes nothing, so that it may be sent as often as one likes."""


def takes_version(view: object, method: str) -> bool:
    """``decides`` of a noun: verbs that take the version of its row."""
    rule = VERSIONED.get(type(view).__name__)
    decides = getattr(view, "action", None) in getattr(view, "decides", ())
    return rule is not None and (decides or method in rule.methods)


def tells_version(view: object, method: str) -> bool:
    is_one = getattr(view, "action", "retrieve") == "retrieve"
    return is_one and method in SAFE_READS and type(view).__name__ in VERSIONED


def takes_key(view: object, method: str) -> bool:
    return method == "POST" and type(view).__name__ not in ONLY_READ


def guarded(view: Any, method: str, handler: Handler) -> Handler:
    """``handler`` of ``view`` behind what its headers ask for."""
    if tells_version(view, method):
        return _with_etag(view, handler)
    if method in SAFE_METHODS:
        return handler
    if takes_version(view, method):
        handler = _conditional(view, handler)
    return _once(view, handler) if takes_key(view, method) else handler


def _with_etag(view: Any, handler: Handler) -> Handler:
    def act(request: Request, *args: Any, **kwargs: Any) -> Response:
        answer = handler(request, *args, **kwargs)
        answer.headers["ETag"] = versions.etag(_fields(view, lambda: answer.data))
        return answer

    return act


def _conditional(view: Any, handler: Handler) -> Handler:
    def act(request: Request, *args: Any, **kwargs: Any) -> Response:
        def fields() -> dict[str, str]:
            # What the view found before it had its turn may be what another has changed since.
            vars(view).pop("cluster", None)
            return _fields(view, lambda: _read(view)(request, *args, **kwargs).data)

        wanted = request.headers.get(IF_MATCH)
        if wanted is None:
            answer = handler(request, *args, **kwargs)
        else:
            with transaction.atomic():
                _take_turns(getattr(view, "edited", request.path))
                versions.check(wanted, fields())
                answer = handler(request, *args, **kwargs)
        return _with_version(answer, fields)

    return act


def _read(view: Any) -> Handler:
    """What answers GET, of a view or of a noun."""
    found: Handler = getattr(view, "get", None) or view.retrieve
    return found


def _with_version(answer: Response, fields: Callable[[], dict[str, str]]) -> Response:
    """``answer`` with the version that the edit made, unless it is now elsewhere or gone."""
    if answer.data is not None:
        try:
            answer.headers["ETag"] = versions.etag(fields())
        except Http404:
            return answer
    return answer


def _fields(view: Any, data: Callable[[], Any]) -> dict[str, str]:
    own = getattr(view, "version", None)
    rule = VERSIONED[type(view).__name__]
    return versions.fields_of(own() if own else data(), rule.apart)


def _take_turns(path: str) -> None:
    """One at a time compares the version of what is at ``path``. SQLite lets one write at a time anyway."""
    if connection.vendor == "postgresql":
        number = int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def _once(view: Any, handler: Handler) -> Handler:
    def act(request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get(KEY)
        if key is None:
            return handler(request, *args, **kwargs)
        claim = answers.claim(view.person, key, _as_text(request))
        if claim.answer is not None:
            return _again(claim.answer)
        try:
            answer = handler(request, *args, **kwargs)
        except Exception as error:
            answer = view.handle_exception(error)
        _settle(claim, answer)
        return answer

    return act


def _as_text(request: Request) -> str:
    """All of a call that matters, as text."""
    body = json.dumps(request.data, sort_keys=True, default=str)
    return f"{request.method} {request.get_full_path()}\n{request.headers.get(IF_MATCH)}\n{body}"


def _settle(claim: answers.Claim, answer: Response) -> None:
    """A refusal changed nothing, so it is not kept: the same call may go well later."""
    if answer.status_code >= 300:
        answers.release(claim)
        return
    data = None if answer.data is None else json.loads(JSONRenderer().render(answer.data))
    headers = {n: answer.headers[n] for n in ("Location", "ETag") if n in answer.headers}
    answers.settle(claim, answers.KeptReply(answer.status_code, data, headers))


def _again(answer: answers.KeptReply) -> Response:
    headers = {**answer.headers, "Idempotency-Replayed": "true"}
    return Response(answer.data, status=answer.status, headers=headers)
