"""The server under contract: the embedded one, or any by WEIR_CONTRACT_URL."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from scheduling.cluster.embedded import Clock, EmbeddedServer

from .api import Api

_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "contract-node"},
    "status": {
        "capacity": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


@pytest.fixture(scope="session")
def server() -> Iterator[Api]:
    """A connection to the server under contract, in no namespace."""
    url = os.environ.get("WEIR_CONTRACT_URL")
    if url:
        token = os.environ.get("WEIR_CONTRACT_TOKEN", "")
        yield Api(url, token, os.environ.get("WEIR_CONTRACT_CA", ""))
        return
    with EmbeddedServer(clock=Clock(speed=20)) as embedded:
        api = Api(embedded.url)
        api.create("nodes", _NODE)
        yield api


@pytest.fixture
def api(server: Api) -> Iterator[Api]:
    """A connection whose namespace belongs to this test alone."""
    name = f"contract-{uuid.uuid4().hex[:10]}"
    api = Api(server.url, server.token, server.ca, name)
    api.create("namespaces", {"metadata": {"name": name}})
    # Where pods need an account, its controller may be slower than the test: 409 is as good.
    api.call("POST", api.path("serviceaccounts"), {"metadata": {"name": "default"}})
    yield api
    api.delete("namespaces", name)
