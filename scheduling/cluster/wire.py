"""HTTP/1.1 on kept connections, for short JSON: a fifth of the CPU that urllib3 takes a request.

Connections are still made by urllib3, from the pool that the official client set up: proxies,
certificates and names are its matter. What is said on them is said here.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast
from urllib.parse import quote

import urllib3
from urllib3.util.proxy import connection_requires_http_tunnel

Header = tuple[str, str]

CONNECT_S = 10.0
BUFFER = 1 << 16
BODILESS = (204, 304)
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

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = cast(BinaryIO, sock.makefile("rb", BUFFER))
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def close(self) -> None:
        self._file.close()
        self._sock.close()

    def sever(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)

    @property
    def is_usable(self) -> bool:
        """Whether nothing came while nothing was asked: what comes then is the end."""
        return not self._poll.poll(0)

    def send(self, request: bytes, timeout_s: float) -> None:
        self._sock.settimeout(timeout_s)
        self._sock.sendall(request)

    def read_head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the answer. Raises OSError."""
        version, _, rest = self._line().partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise BrokenError("no HTTP answer")
        status = int(rest[:3])
        headers = {} if version == b"HTTP/1.1" else {"connection": "close"}
        while line := self._line():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    def read_body(self, status: int, headers: dict[str, str]) -> bytes:
        if status in BODILESS:
            return b""
        if "content-length" in headers:
            return self._exactly(int(headers["content-length"]))
        return b"".join(self.parts(headers))

    def lines(self, headers: dict[str, str]) -> Iterator[bytes]:
        """The lines of a body without end, each as soon as it is there. Raises OSError."""
        rest = b""
        for part in self.parts(headers):
            *lines, rest = (rest + part).split(b"\n")
            yield from filter(None, lines)

    def parts(self, headers: dict[str, str]) -> Iterator[bytes]:
        """A body whose length is not said: its chunks, or what comes until the end."""
        if "chunked" not in headers.get("transfer-encoding", ""):
            yield from self._file
            return
        while True:
            try:
                length = int(self._line().partition(b";")[0], 16)
            except ValueError as error:
                raise BrokenError("no chunk") from error
            if length:
                yield self._exactly(length)
            self._line()
            if not length:
                return

    def _line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise BrokenError("the connection ended")
        return line.rstrip(b"\r\n")

    def _exactly(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise BrokenError("the connection ended")
        return data


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is read as it comes, on a connection of its own."""

    connection: Connection
    status: int
    headers: dict[str, str]

    def lines(self) -> Iterator[bytes]:
        """Each line as soon as it is there, the empty ones left out. Raises OSError."""
        return self.connection.lines(self.headers)

    def read(self) -> bytes:
        return self.connection.read_body(self.status, self.headers)

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
            connection.send(self._request(method, target, headers, body), timeout_s)
            status, answered = connection.read_head()
            answer = Answer(status, answered, connection.read_body(status, answered))
        except BaseException:
            connection.close()
            raise
        if answered.get("connection", "").lower() == "close" or len(self._idle) >= self._keep:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    def open(self, target: str, headers: Iterable[Header], timeout_s: float) -> Stream:
        """A GET whose body is still to be read. Raises OSError or urllib3's HTTPError."""
        connection = self._connect()
        try:
            connection.send(self._request("GET", target, headers, None), timeout_s)
            return Stream(connection, *connection.read_head())
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
        made = cast(urllib3.connection.HTTPConnection, self._pool._new_conn())
        made.timeout = CONNECT_S
        if self._tunnels:
            self._pool._prepare_proxy(made)
        else:
            made.connect()
        sock = made.sock
        if sock is None:
            raise BrokenError("no connection")
        return Connection(sock)

    def _request(
        self, method: str, target: str, headers: Iterable[Header], body: bytes | None
    ) -> bytes:
        lines = [
            f"{method} {quote(self._prefix + target, SAFE)} HTTP/1.1",
            f"Host: {self._host}",
            "Accept-Encoding: identity",
            *(f"{name}: {value}" for name, value in headers),
        ]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header may not hold a line break")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")
