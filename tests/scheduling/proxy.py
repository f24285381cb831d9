"""A proxy before a real API server that fails on purpose, by the rules of the embedded one."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from contextlib import suppress
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from workshop.testbed.control_plane.access import Access
from workshop.testbed.server.kinds.errors import ApiError
from workshop.testbed.server.kinds.faults import Faults

_PASSED_ON = ("Content-Type", "Accept", "User-Agent", "Impersonate-User", "Impersonate-Group")
_PASSED_BACK = ("Content-Type", "Retry-After")


class FaultProxy:
    """Plain HTTP on loopback in front of ``access``; usable as a context manager."""

    def __init__(self, access: Access) -> None:
        self.faults = Faults()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.faults = self.faults
        self._server.access = access
        self._server.context = ssl.create_default_context(cafile=access.ca_file)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.drop_connections()
        self._server.server_close()

    def drop_connections(self) -> None:
        """Cut every connection, watches included."""
        for each in list(self._server.connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    faults: Faults
    access: Access
    context: ssl.SSLContext

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.connections: set[socket.socket] = set()

    def handle_error(self, *_: object) -> None:
        """Clients that hang up are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    """One client connection, relayed over one connection to the API server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)
        parts = urlsplit(self.server.access.url)
        self._upstream = HTTPSConnection(
            parts.hostname or "", parts.port, context=self.server.context, timeout=120
        )

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        self._upstream.close()
        super().finish()

    def _relay(self) -> None:
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        try:
            delay_s = self.server.faults.strike(self.command, path)
        except ApiError as error:
            self._refuse(error)
            return
        try:
            answer = self._ask(body)
        except (OSError, HTTPException):
            # A server that is down gives no answer, not a polite one.
            self.close_connection = True
            return
        if answer.status == 200 and "watch=true" in self.path:
            self._stream(answer, self.server.faults.watch_lifetime(path))
            return
        data = answer.read()
        time.sleep(delay_s)
        self._reply(answer.status, data, {n: answer.headers[n] for n in _PASSED_BACK})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _relay  # noqa: N815 - names of the base class

    def _ask(self, body: bytes | None) -> HTTPResponse:
        headers = {n: self.headers[n] for n in _PASSED_ON if self.headers[n]}
        headers["Authorization"] = f"Bearer {self.server.access.token}"
        try:
            self._upstream.request(self.command, self.path, body, headers)
            return self._upstream.getresponse()
        except (OSError, HTTPException):
            self._upstream.close()
            raise

    def _refuse(self, error: ApiError) -> None:
        retry_after = None if error.retry_after is None else str(error.retry_after)
        headers = {"Content-Type": "application/json", "Retry-After": retry_after}
        self._reply(error.code, json.dumps(error.status()).encode(), headers)

    def _reply(self, code: int, data: bytes, headers: dict[str, str | None]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, answer: HTTPResponse, lifetime_s: float | None) -> None:
        """Pass on lines as they come, until the server ends the watch or its lifetime is over."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        cut = threading.Timer(lifetime_s or 0.0, self._cut)
        if lifetime_s is not None:
            cut.start()
        try:
            while line := answer.readline():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            cut.cancel()
            self._upstream.close()

    def _cut(self) -> None:
        with suppress(OSError):  # the client has gone already
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Faults are many and meant."""
