"""Requests on kept connections, for short JSON.

HTTP/1.1 as far as an API server speaks it, on connections that urllib3 makes from the pool that the official
client set up: proxies, certificates and names are its matter. A request leaves in one piece, where the
standard library sends head and body apart, which server and client pay for; and what it and urllib3 wrap
around a request and its answer takes twice the CPU of both.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from io import BufferedReader
from typing import cast
from urllib.parse import quote

import urllib3
from urllib3.util.proxy import connection_requires_http_tunnel

Header = tuple[str, str]

CONNECT_S = 10.0
BUFFER = 1 << 16
LINE = 1 << 16
"""Bytes of the longest line of a head."""
SAFE = "/?&=%:@!$'()*+,;-._~"
"""What a target is made of; anything else is escaped."""
WITHOUT_BODY = (204, 304)


class BrokenError(OSError):
    """The connection ended, or something came that is not HTTP, before the answer was whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; the names of ``headers`` are in lower case."""

    status: int
    headers: dict[str, str]
    data: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """The head of an answer, whose body is still to be read from ``source``."""

    status: int
    headers: dict[str, str]
    source: BufferedReader
    version: bytes

    @property
    def is_last(self) -> bool:
        """Whether the server closes the connection after it."""
        return self.version == b"HTTP/1.0" or self.headers.get("connection", "").lower() == "close"

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes, to its end. Raises OSError."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunks()
        elif self.status not in WITHOUT_BODY:
            yield self._exactly(self._length())

    def _length(self) -> int:
        try:
            return int(self.headers["content-length"])
        except (KeyError, ValueError):
            # Every answer of an API server says where it ends; without that, a cut one would pass for it.
            raise BrokenError("no whole answer: its length is not said") from None

    def _chunks(self) -> Iterator[bytes]:
        while size := self._size():
            yield self._exactly(size)
            _line(self.source)
        while _line(self.source):
            pass  # trailers, of which there are none here

    def _size(self) -> int:
        line = _line(self.source)
        try:
            return int(line.partition(b";")[0], 16)
        except ValueError:
            raise BrokenError(f"no whole answer: {line[:40]!r} is no size of a chunk") from None

    def _exactly(self, size: int) -> bytes:
        data = self.source.read(size)
        if len(data) < size:
            raise BrokenError("no whole answer: the connection ended")
        return data


def _line(source: BufferedReader) -> bytes:
    line = source.readline(LINE)
    if not line.endswith(b"\n"):
        raise BrokenError("no whole answer: a line without an end")
    return line.rstrip(b"\r\n")


def _head(source: BufferedReader) -> Response:
    version, _, rest = _line(source).partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or not code.isdigit():
        raise BrokenError("no whole answer: not HTTP")
    headers: dict[str, str] = {}
    while line := _line(source):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    return Response(int(code), headers, source, version)


class Connection:
    """One connection to the server: a request, then its answer, then perhaps the next request."""

    def __init__(self, sock: socket.socket, host: str) -> None:
        """``sock`` is connected to ``host``, as a request names it."""
        self._sock = sock
        self._host = host
        self._source = cast(BufferedReader, sock.makefile("rb", BUFFER))
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def close(self) -> None:
        self._source.close()
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
        self._sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        while (response := _head(self._source)).status < 200:
            pass  # more of the answer is to come
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

    def read(self) -> bytes:
        return b"".join(self.response.pieces())

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
            answer = Answer(response.status, response.headers, b"".join(response.pieces()))
        except BaseException:
            connection.close()
            raise
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
        return Connection(cast(HTTPConnection, made).sock, self._host)

    def _full(self, target: str) -> str:
        return quote(self._prefix + target, SAFE)
