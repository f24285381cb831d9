"""An API server over HTTP: what these tests write is what stands there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduling.cluster.connection.client import Client, configuration_of
from scheduling.models import Cluster
from tests.scheduling.control_plane import ON
from tests.scheduling.real_server import RealServer, real_server
from workshop.testbed.server import EmbeddedServer


@pytest.fixture
def bare_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer | RealServer]:
    """The embedded server without controllers; on a real one none is interested in these objects."""
    if ON:
        with real_server(request.getfixturevalue("kubernetes")) as real:
            yield real
        return
    with EmbeddedServer(port=0, controllers=False) as server:
        yield server


@pytest.fixture
def client(bare_server: EmbeddedServer | RealServer) -> Iterator[Client]:
    client = Client(configuration_of(Cluster(name="test", api_url=bare_server.url)))
    yield client
    client.close()
