"""Requests on kept connections, for short JSON.

The standard library speaks HTTP on connections that urllib3 makes, from the pool that the official
client set up: proxies, certificates and names are its matter. What urllib3 wraps around a request
(redirects, retries, decoding) takes half as much CPU again.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import cast
from urllib.parse import quote

import urllib3
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


class Connection:
    """One connection to the server: a request, then its answer, then perhaps the next request."""

    def __init__(self, http: HTTPConnection) -> None:
        """``http`` is connected."""
        http.auto_open = 0  # What was sent before it broke may have been done.
        self._http = http
        self._sock: socket.socket = http.sock
        self._poll = select.poll()
        self._poll.register(self._sock, select.POLLIN)

    def close(self) -> None:
        self._http.close()
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
    ) -> HTTPResponse:
        """The answer, whose body is still to be read. Raises OSError."""
        self._sock.settimeout(timeout_s)
        try:
            self._http.putrequest(method, target)
            for name, value in headers:
                self._http.putheader(name, value)
            if body is not None:
                self._http.putheader("Content-Length", str(len(body)))
            self._http.endheaders(body)
            # urllib3's own method of this name wraps what it returns.
            response = HTTPConnection.getresponse(self._http)
        except HTTPException as error:
            raise BrokenError(f"no whole answer: {error!r}") from error
        if response.length is None and not response.chunked:
            # Every answer of an API server says where it ends; without that, a cut one would pass for it.
            raise BrokenError("no whole answer: its length is not said")
        return response


def _headers(response: HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is read as it comes, on a connection of its own."""

    connection: Connection
    response: HTTPResponse

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def headers(self) -> dict[str, str]:
        return _headers(self.response)

    def lines(self) -> Iterator[bytes]:
        """Each line as soon as it is there, the empty ones left out. Raises OSError."""
        rest = b""
        try:
            while part := self.response.read1(BUFFER):
                *lines, rest = (rest + part).split(b"\n")
                yield from filter(None, lines)
        except HTTPException as error:
            raise BrokenError("the connection ended") from error

    def read(self) -> bytes:
        return _body(self.response)

    def sever(self) -> None:
        """End a read that blocks in another thread. Raises OSError when it is closed already."""
        self.connection.sever()

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def _body(response: HTTPResponse) -> bytes:
    try:
        return response.read()
    except HTTPException as error:
        raise BrokenError("the connection ended") from error


class Wire:
    """Connections to the host of one URL; safe to use from many threads."""

    def __init__(self, manager: urllib3.PoolManager, url: str, keep: int) -> None:
        self._pool = manager.connection_from_url(url)
        proxy, config = self._pool.proxy, self._pool.proxy_config
        tunnels = connection_requires_http_tunnel(proxy, config, self._pool.scheme)
        self._tunnels = proxy is not None and tunnels
        parts = urllib3.util.parse_url(url)
        self._prefix = url if proxy is not None and not tunnels else parts.path or ""
        self._idle: deque[Connection] = deque()
        self._keep = keep

    def close(self) -> None:
        """Close what nobody uses at the moment."""
        self._keep = 0
        while connection := self._last():
            connection.close()

    def ask(
        self,
        method: str,
        target: str,
        headers: Iterable[Header],
        body: bytes | None,
        timeout_s: float,
    ) -> Answer:
        """One request. Raises OSError or urllib3's HTTPError."""
        connection = self._kept() or self._connect()
        try:
            response = connection.ask(method, self._full(target), headers, body, timeout_s)
            answer = Answer(response.status, _headers(response), _body(response))
        except BaseException:
            connection.close()
            raise
        if response.will_close or len(self._idle) >= self._keep:
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

    def _kept(self) -> Connection | None:
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

    def _connect(self) -> Connection:
        made = self._pool._new_conn()
        made.timeout = CONNECT_S
        if self._tunnels:
            self._pool._prepare_proxy(made)
        else:
            made.connect()
        return Connection(cast(HTTPConnection, made))

    def _full(self, target: str) -> str:
        return quote(self._prefix + target, SAFE)
