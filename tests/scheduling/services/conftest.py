"""The embedded cluster for services that talk to one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduling.cluster.client import Client
from scheduling.cluster.embedded import Clock, EmbeddedServer
from scheduling.services import workers
from tests.scheduling.kube import World, node, policy


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(port=0, clock=Clock(speed=1), startup_s=0.01) as server:
        yield server


@pytest.fixture
def world(db: None, server: EmbeddedServer) -> Iterator[World]:
    """Two nodes of 8 GPUs; queues ``research`` and ``products``, 8 nominal GPUs each; enforced."""
    cluster = policy("enforce", server.url, "research", "products", nominal_gpus=8)
    kube = Client.connect(cluster)
    for name in ("n1", "n2"):
        kube.create("/api/v1/nodes", node(name))
    yield World(cluster, server, kube)
    workers.close_all()
    kube.close()
