"""The web server of one process, as `demo` and `serve` start it."""

from __future__ import annotations

import socket

import uvicorn

from portal.config.asgi import application

GRACE_S = 2
"""Live pages never end by themselves; they are cut after this at Ctrl-C."""
IDLE_S = 75
"""As deployed: longer than proxies keep a connection, so that none sends a request on one that just ends."""
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
            f"Port {port} cannot be had ({error.strerror}). Choose another: PORT=8001"
        ) from error
    return listener


def server_config() -> uvicorn.Config:
    """A server that says nothing of itself and leaves to the portal whom to believe about addresses."""
    return uvicorn.Config(
        application,
        log_level="warning",
        lifespan="on",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
