"""Reports read the ledger from a replica of the database, where the settings name one.

Only the ledger and what the scheduler keeps: people, sessions and what a person has just saved are read where
they were written. Nothing is ever written there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponseBase

ALIAS = "replica"
LEDGER = "scheduling"
_reads: ContextVar[bool] = ContextVar("reads_replica", default=False)


class ReplicaRouter:
    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return ALIAS if _reads.get() and model._meta.app_label == LEDGER else None

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return "default"

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        """Both hold the same rows."""
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db != ALIAS


class ReplicaMiddleware:
    """Lets the pages of reports, and reports of the API, read from the replica."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        token = _reads.set(False)
        try:
            return self.get_response(request)
        finally:
            _reads.reset(token)

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponseBase],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        match = request.resolver_match
        is_report = match is not None and "/reports/" in str(match.route)
        _reads.set(is_report and request.method in ("GET", "HEAD"))
