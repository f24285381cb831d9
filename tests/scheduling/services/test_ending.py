"""A process that is to end is not kept by a cluster that does not answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from scheduling.cluster.connection.client import UnreachableError
from scheduling.models import Cluster
from scheduling.services.clusters.connection import ClusterLink

TERM_S = 10.0
"""What people who stop a process are promised."""


@pytest.fixture
def silent_url() -> Iterator[str]:
    """A server that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.listen(50)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_link_to_a_silent_server_closes_within_what_is_promised(silent_url: str) -> None:
    link = ClusterLink.open(Cluster(api_url=silent_url), on_change=lambda: None)
    link.lease._held_until = time.monotonic() + 60  # it would be given back
    began = time.monotonic()
    link.close()
    assert time.monotonic() - began < TERM_S


def test_request_under_way_ends_with_the_process(silent_url: str) -> None:
    link = ClusterLink.open(Cluster(api_url=silent_url), on_change=lambda: None)
    told: list[Exception] = []

    def ask() -> None:
        try:
            link.client.get("/version")
        except UnreachableError as error:
            told.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    link.close()
    asking.join(TERM_S)
    assert not asking.is_alive()
    assert told
