"""An API server over HTTP, without controllers: what these tests write is what stands there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduling.cluster.client import Client, configuration_of
from scheduling.cluster.embedded import EmbeddedServer
from scheduling.models import Cluster


@pytest.fixture
def bare_server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(port=0, controllers=False) as server:
        yield server


@pytest.fixture
def client(bare_server: EmbeddedServer) -> Iterator[Client]:
    client = Client(configuration_of(Cluster(name="test", api_url=bare_server.url)))
    yield client
    client.close()
