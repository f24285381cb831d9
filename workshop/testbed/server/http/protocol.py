"""HTTP/1.1 with keep-alive on one connection: bytes in, requests out, answers back in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, cast
from urllib.parse import parse_qsl, unquote

from workshop.testbed.server.kinds.errors import bad_request

from .messages import Reply, Request, refusal

_HEAD_LIMIT = 64 * 1024
_BODY_LIMIT = 4 * 1024 * 1024


class Stream(Protocol):
    """An answer without an end: a watch."""

    delay_s: float

    def start(
        self, send: Callable[[bytes], None], finish: Callable[[], None], abort: Callable[[], None]
    ) -> None:
        """Begin; `send` takes chunks, `finish` ends regularly, `abort` cuts the connection."""

    def stop(self) -> None:
        """Let go of everything; the client is gone."""


Handler = Callable[[Request], "Reply | Stream"]


class TooLargeError(Exception):
    """The client sends more than any object may hold."""


class Connection(asyncio.Protocol):
    """One client. Requests are served one after another."""

    def __init__(self, handler: Handler, connections: set[Connection]) -> None:
        self._handler = handler
        self._connections = connections
        self._buffer = bytearray()
        self._busy = False
        self._stream: Stream | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the way back."""
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the watch, if there is one."""
        self._connections.discard(self)
        self._transport = None
        if self._stream is not None:
            self._stream.stop()
            self._stream = None

    def data_received(self, data: bytes) -> None:
        """Serve what has arrived completely."""
        self._buffer += data
        self._pump()

    def abort(self) -> None:
        """Cut the connection, in the middle of an answer if need be."""
        if self._transport is not None:
            self._transport.abort()

    def _pump(self) -> None:
        try:
            while not self._busy and (request := self._take()) is not None:
                self._serve(request)
        except (ValueError, TooLargeError) as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        too_large = isinstance(error, TooLargeError)
        answer = refusal(bad_request(f"malformed HTTP request: {error}"))
        answer.code = 413 if too_large else 400
        if self._transport is not None:
            self._transport.write(answer.encode(close=True))
            self._transport.close()

    def _take(self) -> Request | None:
        """Cut one whole request off the buffer."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise TooLargeError("the head is larger than 64 KiB")
            return None
        request = parse_head(bytes(self._buffer[:end]))
        taken = _take_body(self._buffer, end + 4, request.headers)
        if taken is None:
            if request.headers.get("expect", "").lower() == "100-continue":
                self._continue(end)
            return None
        request.body, size = taken
        del self._buffer[:size]
        return request

    def _continue(self, end: int) -> None:
        """Invite the body once: the buffer still ends with the head."""
        if len(self._buffer) == end + 4 and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _serve(self, request: Request) -> None:
        answer = self._handler(request)
        close = request.headers.get("connection", "").lower() == "close"
        if answer.delay_s > 0:
            self._busy = True
            loop = asyncio.get_running_loop()
            loop.call_later(answer.delay_s, self._answer_late, answer, close)
        else:
            self._answer(answer, close)

    def _answer_late(self, answer: Reply | Stream, close: bool) -> None:
        self._busy = False
        self._answer(answer, close)
        self._pump()

    def _answer(self, answer: Reply | Stream, close: bool) -> None:
        if self._transport is None:
            return
        if not isinstance(answer, Reply):
            self._busy = True
            self._stream = answer
            self._transport.write(_STREAM_HEAD)
            answer.start(self._send, self._finish, self.abort)
            return
        self._transport.write(answer.encode(close=close))
        if close:
            self._transport.close()

    def _send(self, data: bytes) -> None:
        if self._transport is None:
            return
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > 64 * 1024 * 1024:
            self._transport.abort()

    def _finish(self) -> None:
        self._stream = None
        self._busy = False
        self._send(b"0\r\n\r\n")
        self._pump()


_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def parse_head(head: bytes) -> Request:
    """Return the request that `head` announces, without its body.

    Raises ValueError if it is no HTTP request.
    """
    first, *lines = head.decode("utf-8", "replace").split("\r\n")
    method, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    pairs = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
    return Request(method, unquote(path) if "%" in path else path, pairs, headers)


def _take_body(
    buffer: bytearray, start: int, headers: Mapping[str, str]
) -> tuple[bytes, int] | None:
    """Return (body, bytes of the whole request), or None while it is incomplete."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _take_chunks(buffer, start)
    length = int(headers.get("content-length", 0))
    if length > _BODY_LIMIT:
        raise TooLargeError("the body is larger than 4 MiB")
    if len(buffer) < start + length:
        return None
    return bytes(buffer[start : start + length]), start + length


def _take_chunks(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    parts: list[bytes] = []
    while (end := buffer.find(b"\r\n", start)) >= 0:
        size = int(bytes(buffer[start:end]).partition(b";")[0], 16)
        if size > _BODY_LIMIT:
            raise TooLargeError("the body is larger than 4 MiB")
        if len(buffer) < end + 2 + size + 2:
            return None
        if size == 0:
            return b"".join(parts), end + 4
        parts.append(bytes(buffer[end + 2 : end + 2 + size]))
        start = end + 2 + size + 2
    return None
