"""A request is one thread's, from the first middleware to the last, also where it ends in an error page."""

from __future__ import annotations

import django
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class OneThreadHandler(ASGIHandler):
    """Only bodies and streams are the event loop's: no view and no middleware here is a coroutine.

    Django's own handler makes error pages in other threads than the request's. Such a page then waits for a
    second connection while the request holds its first; under load all wait for each other, and the
    connections of those threads are never given back.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)


def application_of_django() -> OneThreadHandler:
    django.setup(set_prefix=False)
    return OneThreadHandler()
