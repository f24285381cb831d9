"""The life of a web server: it says that it lives from when it listens until it ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.db import connection
from django.urls import get_resolver

from scheduling.models import Role
from scheduling.services.worker import hearts

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


COLLECT_AFTER = 20_000
"""Objects made and not dropped until garbage is looked for. A page makes thousands and drops them itself; by
Python's default (700) the search takes an eighth of its time."""


def living(app: App) -> App:
    """``app`` (ASGI) in a server that tells it when it begins and ends; Django knows requests alone."""

    async def serve(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await app(scope, receive, send)

    return serve


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            _settle()
            hearts.begin(Role.WEB)
            await send({"type": "lifespan.startup.complete"})
        else:
            await asyncio.to_thread(_leave)
            await send({"type": "lifespan.shutdown.complete"})
            return


def _settle() -> None:
    """What is loaded stays as long as the process: to look through its 290,000 objects for garbage takes a
    tenth of a second and more, of whichever page was being made."""
    assert get_resolver().url_patterns  # noqa: S101 - imports the views, else the first page does
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])


def _leave() -> None:
    hearts.leave(Role.WEB)
    connection.close()
