"""A receiver on loopback that keeps what it is sent and answers as told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Sink:
    port: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b"ok"
    hold: threading.Event | None = None
    """Answers once it is set."""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/hook?x=1"


@contextmanager
def listening() -> Iterator[Sink]:
    sink = Sink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sink.got.append((self.path, dict(self.headers), body))
            if sink.hold:
                sink.hold.wait(20)
            self.send_response(sink.status)
            for name, value in {"Content-Length": str(len(sink.answer)), **sink.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sink.answer)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sink.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        if sink.hold:
            sink.hold.set()
        server.shutdown()
        server.server_close()
