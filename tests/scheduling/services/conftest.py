"""The cluster of services that talk to one: embedded, or a real control plane behind a proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import World, add_node, node, policy
from tests.scheduling.real_server import RealServer, real_server
from workshop.testbed.server import Clock, EmbeddedServer


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer | RealServer]:
    if ON:
        with real_server(request.getfixturevalue("kubernetes")) as real:
            yield real
        return
    with EmbeddedServer(port=0, clock=Clock(speed=1), startup_s=0.01) as server:
        yield server


@pytest.fixture
def world(db: None, server: EmbeddedServer | RealServer) -> Iterator[World]:
    """Two nodes of 8 GPUs; queues ``research`` and ``products``, 8 nominal GPUs each; enforced."""
    cluster = policy("enforce", server.url, "research", "products", nominal_gpus=8)
    kube = Client.connect(cluster)
    if not ON:
        for name in ("n1", "n2"):
            add_node(kube, node(name))
    yield World(cluster, server, kube)
    workers.close_all()
    kube.close()
