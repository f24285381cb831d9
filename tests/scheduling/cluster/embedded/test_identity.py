"""Who asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from workshop.testbed.server import EmbeddedServer, User, kubeconfig_yaml

from ..contract.api import Api, config_map
from .conftest import Cluster


@pytest.fixture
def guarded() -> Iterator[EmbeddedServer]:
    """A server that wants a token."""
    with EmbeddedServer(tokens={"secret": User("weir", ("admins",))}) as server:
        yield server


@pytest.mark.parametrize("token", ["", "wrong"])
def test_unknown_token_is_unauthorized(guarded: EmbeddedServer, token: str) -> None:
    api = Api(guarded.url, token, namespace="default")
    assert api.call("GET", api.path("jobs")).expect(401)["reason"] == "Unauthorized"
    api.call("GET", "/_weir/audit").expect(401)


def test_writes_are_audited_with_the_one_behind_them(guarded: EmbeddedServer) -> None:
    api = Api(guarded.url, "secret", namespace="default")
    headers = {"Impersonate-User": "alice", "Impersonate-Group": "vision"}
    api.call("POST", api.path("configmaps"), config_map("a"), headers=headers).expect(201)
    line = api.call("GET", "/_weir/audit").expect(200)["items"][-1]
    assert (line["user"], line["groups"], line["impersonatedBy"]) == ("alice", ["vision"], "weir")
    assert (line["verb"], line["resource"], line["name"]) == ("create", "configmaps", "a")


def test_kubeconfig_leads_to_the_server(guarded: EmbeddedServer) -> None:
    config = guarded.kubeconfig()
    assert config["clusters"][0]["cluster"]["server"] == guarded.url
    assert config["users"][0]["user"]["token"] == "secret"
    assert yaml.safe_load(kubeconfig_yaml(guarded.url, "secret")) == config


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example:8001"}]
)
def test_browsers_are_kept_out(cluster: Cluster, headers: dict[str, str]) -> None:
    path = cluster.api.path("configmaps")
    cluster.api.call("POST", path, config_map("a"), headers=headers).expect(403)


def test_field_manager_defaults_to_the_program(cluster: Cluster) -> None:
    path = cluster.api.path("configmaps")
    headers = {"User-Agent": "weir-engine/1.0 (linux)"}
    made = cluster.api.call("POST", path, config_map("a"), headers=headers).expect(201)
    assert made["metadata"]["managedFields"][0]["manager"] == "weir-engine"
