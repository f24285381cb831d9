"""An API server for the example organisation: what its portal writes to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, Node, PriorityClass
from workshop.testbed.server import EmbeddedServer


@contextmanager
def serving(cluster: Cluster, *, nodes: bool = True) -> Iterator[Client]:
    """A server with the queues' namespaces, the priority classes and, unless told otherwise, the nodes of
    the rows, reached by ``cluster``."""
    with EmbeddedServer(port=0, controllers=False) as server:
        cluster.api_url = server.url
        cluster.save(update_fields=["api_url"])
        client = Client.connect(cluster)
        for name in cluster.queues.exclude(namespace="").values_list("namespace", flat=True):
            _create(client, "/api/v1/namespaces", "v1", "Namespace", name)
        for priority in PriorityClass.objects.all():
            path, version = "/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1"
            _create(client, path, version, "PriorityClass", priority.name, value=priority.value)
        for node in cluster.nodes.select_related("gpu_class") if nodes else ():
            stand_up(client, node)
        yield client
        client.close()


def stand_up(client: Client, node: Node) -> None:
    """The machine of a row, as its cluster shows it."""
    amounts = {
        node.gpu_class.resource_name: str(node.gpus // 1000),
        "cpu": "128",
        "memory": "1024Gi",
    }
    client.create(
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": node.name,
                "labels": {"kubernetes.io/hostname": node.name, **node.gpu_class.node_labels},
            },
            "status": {
                "allocatable": amounts,
                "capacity": amounts,
                "conditions": [{"type": "Ready", "status": "True" if node.ready else "False"}],
            },
        },
    )


def job(namespace: str, name: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"


def _create(client: Client, path: str, version: str, kind: str, name: str, **more: int) -> None:
    client.create(path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more})
