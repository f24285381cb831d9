"""Requests on kept connections, for short JSON.

HTTP/1.1 on connections that urllib3 makes from the pool that the official client set up: proxies,
certificates and names are its matter. A request leaves in one piece, where the standard library sends
head and body apart, which server and client pay for, and httptools parses the answer: what the standard
library and urllib3 wrap around both takes twice the CPU.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import cast
from urllib.parse import quote

import urllib3
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from urllib3.util.proxy import connection_requires_http_tunnel

Header = tuple[str, str]

CONNECT_S = 10.0
BUFFER = 1 << 16
SAFE = "/?&=%:@!$'()*+,;-._~"
"""What a target is made of; anything else is escaped."""


class BrokenError(OSError):
    """The connection ended, or something came that is not HTTP, before the answer was whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; the names of ``headers`` are in lower case."""

    status: int
    headers: dict[str, str]
    data: bytes


class Response:
    """An answer on ``sock`` as it comes: what has been read of it so far. The names of ``headers`` are in
    lower case.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._sock = sock
        self._parser = HttpResponseParser(self)
        self._body: list[bytes] = []
        self._has_head = self._is_whole = False
        self.is_last = True
        """Whether the server closes the connection after it, or said more than was asked."""

    def read_head(self) -> None:
        """Raises OSError."""
        while not self._has_head:
            self._read_on()

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes, to its end. Raises OSError."""
        while self._body or not self._is_whole:
            if not self._body:
                self._read_on()
            come, self._body = self._body, []
            yield from come

    def _read_on(self) -> None:
        # Every answer of an API server says where it ends; one that ends with its connection may be cut.
        if not (data := self._sock.recv(BUFFER)):
            raise BrokenError("no whole answer: the connection ended")
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            raise BrokenError(f"no whole answer: {error!r}") from error

    # What follows is called by the parser.

    def on_message_begin(self) -> None:
        self.is_last = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200  # before that, more of the answer is to come

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        self.is_last = self._is_whole or not self._parser.should_keep_alive()
        self._is_whole = self._has_head


class Connection:
    """One connection to the server: a request, then its answer, then perhaps the next request."""

    def __init__(self, sock: socket.socket, host: str) -> None:
        """``sock`` is connected to ``host``, as a request names it."""
        self._sock = sock
        self._host = host
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def close(self) -> None:
        self._sock.close()

    def sever(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)

    @property
    def is_usable(self) -> bool:
        """Whether nothing came while nothing was asked: what comes then is the end."""
        return not self._poll.poll(0)

    def ask(
        self,
        method: str,
        target: str,
        headers: Iterable[Header],
        body: bytes | None,
        timeout_s: float,
    ) -> Response:
        """The answer, whose body is still to be read. Raises OSError."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._host}", "Accept-Encoding: identity"]
        lines += [f"{name}: {_value(value)}" for name, value in headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self._sock.settimeout(timeout_s)
        # Names of people are in no narrower alphabet; the API server takes headers as UTF-8.
        self._sock.sendall("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        response = Response(self._sock)
        response.read_head()
        return response


def _value(value: str) -> str:
    """``value`` of a header. Raises ValueError when it would begin another line."""
    if "\r" in value or "\n" in value:
        raise ValueError(f"Invalid header value: {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is read as it comes, on a connection of its own."""

    connection: Connection
    response: Response

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def headers(self) -> dict[str, str]:
        return self.response.headers

    def lines(self) -> Iterator[bytes]:
        """Each line as soon as it is there, the empty ones left out. Raises OSError."""
        rest = b""
        for piece in self.response.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            yield from filter(None, lines)

    def pieces(self) -> Iterator[bytes]:
        return self.response.pieces()

    def read(self) -> bytes:
        return b"".join(self.pieces())

    def sever(self) -> None:
        """End a read that blocks in another thread. Raises OSError when it is closed already."""
        self.connection.sever()

    def close(self) -> None:
        self.connection.close()


class Wire:
    """Connections to the host of one URL; safe to use from many threads."""

    def __init__(self, manager: urllib3.PoolManager, url: str, keep: int) -> None:
        self._pool = manager.connection_from_url(url)
        proxy, config = self._pool.proxy, self._pool.proxy_config
        tunnels = connection_requires_http_tunnel(proxy, config, self._pool.scheme)
        self._tunnels = proxy is not None and tunnels
        parts = urllib3.util.parse_url(url)
        self._prefix = url if proxy is not None and not tunnels else parts.path or ""
        self._host = parts.netloc or ""
        self._idle: deque[Connection] = deque()
        self._asking: set[Connection] = set()
        """Those that wait for an answer. Adding and discarding are atomic."""
        self._closed = False
        self._keep = keep

    def close(self) -> None:
        """Close what nobody uses at the moment, and end what is still asked."""
        self._keep, self._closed = 0, True
        self.sever()
        while connection := self._last():
            connection.close()

    def sever(self) -> None:
        """End the requests of other threads that still wait for an answer: each raises OSError there."""
        for connection in tuple(self._asking):
            with contextlib.suppress(OSError):
                connection.sever()

    def ask(
        self,
        method: str,
        target: str,
        headers: Iterable[Header],
        body: bytes | None,
        timeout_s: float,
    ) -> Answer:
        """One request. Raises OSError or urllib3's HTTPError."""
        connection = self._usable() or self._connect(min(CONNECT_S, timeout_s))
        self._asking.add(connection)
        if self._closed:  # It may have been too late to be among those that closing ended.
            connection.close()
        try:
            response = connection.ask(method, self._full(target), headers, body, timeout_s)
            answer = Answer(response.status, response.headers, b"".join(response.pieces()))
        except BaseException:
            connection.close()
            raise
        finally:
            self._asking.discard(connection)
        if response.is_last or len(self._idle) >= self._keep:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    def open(self, target: str, headers: Iterable[Header], timeout_s: float) -> Stream:
        """A GET whose body is still to be read. Raises OSError or urllib3's HTTPError."""
        connection = self._connect()
        try:
            return Stream(
                connection, connection.ask("GET", self._full(target), headers, None, timeout_s)
            )
        except BaseException:
            connection.close()
            raise

    def _usable(self) -> Connection | None:
        """The connection used last, of those the server did not close meanwhile."""
        while connection := self._last():
            if connection.is_usable:
                return connection
            connection.close()
        return None

    def _last(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self, timeout_s: float = CONNECT_S) -> Connection:
        made = self._pool._new_conn()
        made.timeout = timeout_s
        if self._tunnels:
            self._pool._prepare_proxy(made)
        else:
            made.connect()
        return Connection(cast(HTTPConnection, made).sock, self._host)

    def _full(self, target: str) -> str:
        return quote(self._prefix + target, SAFE)
