"""Kinds that definitions add: served, found by discovery, kept over a restart, gone with their definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduling.cluster.connection.client import Client, NotFoundError, configuration_of
from scheduling.models import Cluster
from tests.scheduling.manifests import job_set, mpi_job
from tests.scheduling.operators import DEFINITIONS, adapter_of, definitions
from workshop.testbed.server import EmbeddedServer

SETS = adapter_of("JobSet").path("default", "")


def connect(server: EmbeddedServer) -> Client:
    return Client(configuration_of(Cluster(name="test", api_url=server.url)))


def define(client: Client) -> None:
    for definition in definitions():
        client.create(DEFINITIONS, definition)


def test_kind_is_served_as_soon_as_it_is_defined(client: Client) -> None:
    with pytest.raises(NotFoundError):
        client.get(SETS)
    define(client)
    made = client.create(SETS, job_set("w"))

    assert (made["kind"], made["metadata"]["generation"]) == ("JobSet", 1)
    assert [o["metadata"]["name"] for o in client.get(SETS)["items"]] == ["w"]


def test_status_of_a_custom_kind_is_written_apart(client: Client) -> None:
    define(client)
    client.create(SETS, job_set("w"))
    client.patch(f"{SETS}/w/status", {"status": {"restarts": 1}})
    edited = client.patch(f"{SETS}/w", {"spec": {"suspend": False}, "status": {"restarts": 9}})

    assert (edited["status"], edited["metadata"]["generation"]) == ({"restarts": 1}, 2)


def test_versions_of_one_group_are_discovered_apart(client: Client) -> None:
    define(client)
    groups = {
        g["name"]: [v["version"] for v in g["versions"]] for g in client.get("/apis")["groups"]
    }
    kinds = {
        version: [r["kind"] for r in client.get(f"/apis/kubeflow.org/{version}")["resources"]]
        for version in groups["kubeflow.org"]
    }

    assert kinds == {
        "v1": ["PaddleJob", "PaddleJob", "PyTorchJob", "PyTorchJob"],
        "v2beta1": ["MPIJob", "MPIJob"],
    }


def test_kind_goes_with_its_definition(client: Client) -> None:
    define(client)
    client.delete(f"{DEFINITIONS}/jobsets.jobset.x-k8s.io")

    with pytest.raises(NotFoundError):
        client.get(SETS)


def test_custom_objects_outlive_the_process(tmp_path: Path) -> None:
    path = adapter_of("MPIJob").path("default", "")
    with EmbeddedServer(path=tmp_path / "store.sqlite3") as server:
        client = connect(server)
        define(client)
        client.create(path, mpi_job("w"))
        client.close()
    with EmbeddedServer(path=tmp_path / "store.sqlite3") as server:
        client = connect(server)
        assert client.get(f"{path}/w")["spec"]["slotsPerWorker"] == 1
        client.close()
