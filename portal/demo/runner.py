"""One process that serves everything on loopback: cluster, worker, stream, portal."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import uvicorn

from portal.config.asgi import application
from portal.config.celery import app
from portal.demo.cluster.furnish import Played
from portal.demo.work.arrivals import Arrival
from portal.demo.work.feed import Stream
from scheduling.services.worker.embedded import start_embedded_worker

GRACE_S = 2
"""Live pages never end by themselves; they are cut after this at Ctrl-C."""
HOST = "127.0.0.1"


class PortTakenError(Exception):
    """Another program listens on the port."""


def listen(port: int) -> socket.socket:
    """A bound socket, before anything is seeded. Raises PortTakenError."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise PortTakenError(
            f"Port {port} cannot be had ({error.strerror}). Choose another: make demo PORT=8001"
        ) from error
    return listener


def server_config() -> uvicorn.Config:
    """A server that says nothing of itself and leaves to the portal whom to believe about addresses."""
    return uvicorn.Config(
        application,
        log_level="warning",
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
    )


def serve(
    listener: socket.socket,
    played: Played,
    arrivals: Iterator[Arrival],
    position: Path,
    announce: Callable[[], None],
) -> None:
    """Run until Ctrl-C or SIGTERM; stops in the reverse order of the start."""
    with ExitStack() as stack:
        worker = start_embedded_worker(app)
        stack.callback(worker.stop)
        stream = Stream(played, arrivals, position)
        stream.start()
        stack.callback(stream.stop)
        server = uvicorn.Server(server_config())
        announce()
        with suppress(KeyboardInterrupt):  # the server raises it again when it has stopped
            server.run(sockets=[listener])
