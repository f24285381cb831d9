"""The process of the portal, with the cluster and the stream of its work; workers run beside it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import uvicorn

from portal.config.serving import PortTakenError, listen, server_config
from workshop.demo.cluster.furnish import SimulatedCluster
from workshop.demo.work.arrivals import Arrival
from workshop.demo.work.feed import Stream

__all__ = ["PortTakenError", "listen", "serve"]


def serve(
    listener: socket.socket,
    played: SimulatedCluster,
    arrivals: Iterator[Arrival],
    position: Path,
    announce: Callable[[], None],
) -> None:
    """Run until Ctrl-C or SIGTERM; stops in the reverse order of the start. ``announce``: it serves now."""
    with ExitStack() as stack:
        stream = Stream(played, arrivals, position)
        stream.start()
        stack.callback(stream.stop)
        server = uvicorn.Server(server_config())
        announce()
        with suppress(KeyboardInterrupt):  # the server raises it again when it has stopped
            server.run(sockets=[listener])
