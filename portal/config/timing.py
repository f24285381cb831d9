"""What an answer cost, in its ``Server-Timing`` header: queries, their milliseconds, CPU milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponseBase


class ServerTimingMiddleware:
    """Only where the settings ask for it: it tells more of the server than a stranger need know."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        spent = _QueryTimer()
        cpu = time.thread_time()
        with connection.execute_wrapper(spent):
            response = self.get_response(request)
        cpu_ms = 1000 * (time.thread_time() - cpu)
        response["Server-Timing"] = (
            f'db;dur={1000 * spent.seconds:.1f};desc="{spent.queries}", cpu;dur={cpu_ms:.1f}'
        )
        return response


class _QueryTimer:
    def __init__(self) -> None:
        self.queries, self.seconds = 0, 0.0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.queries += 1
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            self.seconds += time.perf_counter() - began
