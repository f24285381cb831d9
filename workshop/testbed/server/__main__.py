"""Run the server by hand: `python -m workshop.testbed.server --port 8001 --speed 60`."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from scheduling.files.arguments import LAST_PORT, REFUSED, whole
from workshop.arguments import OneLineParser, factor
from workshop.testbed.server.kinds.clock import Clock

from .server import EmbeddedServer


def main() -> None:
    """Serve until interrupted."""
    parser = OneLineParser(prog="python -m workshop.testbed.server")
    parser.add_argument("--port", type=whole(0, LAST_PORT), default=8001, help="0 takes a free one")
    parser.add_argument("--speed", type=factor, default=1.0, help="cluster seconds per second")
    parser.add_argument("--path", type=Path, help="SQLite file that keeps the objects")
    arguments = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = EmbeddedServer(arguments.port, Clock(arguments.speed), arguments.path)
    try:
        server.start()
    except OSError as error:
        parser.exit(
            REFUSED, f"--port {arguments.port} cannot be had: {error.strerror}; choose another\n"
        )
    sys.stdout.write(f"Kubernetes API at {server.url}\n")
    sys.stdout.flush()
    stop.wait()
    server.stop()


if __name__ == "__main__":
    main()
