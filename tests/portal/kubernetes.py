"""An API server for the example organisation: what its portal writes to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scheduling.cluster.client import Client
from scheduling.cluster.embedded import EmbeddedServer
from scheduling.models import Cluster, PriorityClass


@contextmanager
def serving(cluster: Cluster) -> Iterator[Client]:
    """A server with the queues' namespaces and the priority classes, reached by ``cluster``."""
    with EmbeddedServer(port=0, controllers=False) as server:
        cluster.api_url = server.url
        cluster.save(update_fields=["api_url"])
        client = Client.connect(cluster)
        for name in cluster.queues.exclude(namespace="").values_list("namespace", flat=True):
            _create(client, "/api/v1/namespaces", "v1", "Namespace", name)
        for priority in PriorityClass.objects.all():
            path, version = "/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1"
            _create(client, path, version, "PriorityClass", priority.name, value=priority.value)
        yield client
        client.close()


def job(namespace: str, name: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"


def _create(client: Client, path: str, version: str, kind: str, name: str, **more: int) -> None:
    client.create(path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more})
