"""A request is one thread's, from the first middleware to the last, also where it ends in an error page."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import django
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

AT_ONCE = 16
"""Requests that a process answers at a time: each has a connection to the database, of which there are 20.
The others wait as long as their clients do, and take neither thread nor connection."""
SWITCH_S = 0.0005
"""Of each request that is answered. A thread back from the database waits so long for the one that computes,
at each of its queries: ten times as long by Python's default, half a second a page beside a report of the
whole cluster. In a crowd, threads that take turns as often cost a third more CPU."""
MOST_SWITCH_S = 0.005
"""Python's default."""


class OneThreadHandler(ASGIHandler):
    """Only bodies and streams are the event loop's: no view and no middleware here is a coroutine.

    Django's own handler makes error pages in other threads than the request's. Such a page then waits for a
    second connection while the request holds its first; under load all wait for each other, and the
    connections of those threads are never given back.
    """

    def __init__(self) -> None:
        super().__init__()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._answered = 0

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        async with self._places:
            with self._counted():
                return await sync_to_async(self.get_response, thread_sensitive=True)(request)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Only the event loop counts, so nothing is lost between threads."""
        self._share(1)
        try:
            yield
        finally:
            self._share(-1)

    def _share(self, more: int) -> None:
        self._answered += more
        sys.setswitchinterval(min(MOST_SWITCH_S, SWITCH_S * max(1, self._answered)))


def application_of_django() -> OneThreadHandler:
    django.setup(set_prefix=False)
    return OneThreadHandler()
