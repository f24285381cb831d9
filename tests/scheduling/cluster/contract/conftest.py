"""The server under contract: the embedded one, a control plane of ours, or any by WEIR_CONTRACT_URL."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scheduling.control_plane import ON
from workshop.testbed.kubelets import Machine, node_manifest
from workshop.testbed.server import Clock, EmbeddedServer

from .api import Api, condition, eventually

_NODE = Machine("contract-node", "nvidia.com/gpu", gpus=8, cpus=64, memory_gib=256)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A connection to the server under contract, in no namespace."""
    url = os.environ.get("WEIR_CONTRACT_URL")
    if url:
        token = os.environ.get("WEIR_CONTRACT_TOKEN", "")
        yield Api(url, token, os.environ.get("WEIR_CONTRACT_CA", ""))
        return
    if ON:
        access = request.getfixturevalue("real_control_plane").access
        api = Api(access.url, access.token, access.ca_file)
        api.call("POST", api.path("nodes"), node_manifest(_NODE))
        eventually(lambda: _is_open(api.get("nodes", _NODE.name)))
        yield api
        return
    with EmbeddedServer(clock=Clock(speed=20)) as embedded:
        api = Api(embedded.url)
        api.create("nodes", node_manifest(_NODE))
        yield api


def _is_open(node: Any) -> bool:
    """New nodes are tainted until a controller has seen them ready."""
    return condition(node, "Ready") == "True" and not node["spec"].get("taints")


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
