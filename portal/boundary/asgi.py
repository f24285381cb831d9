"""What must be looked at before Django makes a request of it, because it fails there or keeps it first.

A body of any size is kept in a file before a middleware sees the request, so it is bounded while it
arrives. An encoding that is none of text, and a query that is no UTF-8, end in an error that no
middleware sees, so they are answered here; no browser sends either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from portal.boundary.answers import OF_STATUS, OTHER_CHARSET, TOO_LARGE, Refusal
from portal.boundary.bounds import MOST_BYTES

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

PLAIN: Final = re.compile(rb"[^;]*(;\s*charset=\"?(utf-?8|(us-)?ascii)\"?\s*)?", re.IGNORECASE)
"""A type with no parameter, or with an encoding whose first 128 characters are UTF-8's."""


def bounded(app: App) -> App:
    """``app`` (ASGI), which sees no request that Django cannot represent, and no more than MOST_BYTES of a
    body."""

    async def serve(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if fault := head_fault(scope):
            await _refuse(send, fault)
            return
        taken, refused = 0, False

        async def count() -> Message:
            nonlocal taken, refused
            message = await receive()
            taken += len(message.get("body", b""))
            if taken <= MOST_BYTES:
                return message
            if not refused:
                refused = True
                await _refuse(send, TOO_LARGE)
            return {"type": "http.disconnect"}

        async def answer(message: Message) -> None:
            if not refused:
                await send(message)

        await app(scope, count, answer)

    return serve


def head_fault(scope: Any) -> Refusal | None:
    """What keeps Django from making a request of ``scope``."""
    try:
        scope.get("query_string", b"").decode("utf-8")
    except UnicodeDecodeError:
        return OF_STATUS[400]
    kinds = [value for name, value in scope.get("headers", ()) if name.lower() == b"content-type"]
    return next((OTHER_CHARSET for kind in kinds if not _is_plain(kind)), None)


def _is_plain(kind: bytes) -> bool:
    is_form = kind.lower().startswith(b"multipart/form-data;")
    return (
        b"charset" not in kind.lower() and b"*" not in kind
        if is_form
        else bool(PLAIN.fullmatch(kind))
    )


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = {"code": refusal.code, "sentence": refusal.sentence, "remedy": refusal.remedy}
    headers = [
        (b"content-type", b"application/json"),
        (b"connection", b"close"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
