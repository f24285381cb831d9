"""The Kubernetes that the first run is made on: embedded, or a real control plane in `make test-cluster`."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from scheduling.cluster.connection.client import Client, ConflictError, NotFoundError
from scheduling.cluster.connection.kubeconfig import configuration_from
from scheduling.cluster.guardrails.manifests import MEMBER_ROLE
from scheduling.models import Cluster
from tests.portal.setup.test_first_run import LABEL, kubeconfig
from tests.scheduling.kube import add_node, node
from workshop.testbed.control_plane.access import Access
from workshop.testbed.control_plane.plane import ControlPlane
from workshop.testbed.server import EmbeddedServer

NODE = "l4-1"
DEPLOYED = Path(__file__).parents[2] / "docker" / "kubernetes"
PRODUCT = {LABEL: "NVIDIA-L4"}


@dataclass(frozen=True, slots=True)
class Venue:
    """What an admin pastes, and the namespace that their team has there."""

    kubeconfig: str
    namespace: str


@contextmanager
def embedded() -> Iterator[Venue]:
    with EmbeddedServer(port=0) as running:
        client = Client.connect(Cluster(name="x", api_url=running.url))
        _furnish(client, "vision")
        client.close()
        yield Venue(kubeconfig(running.url), "vision")


@contextmanager
def real(plane: ControlPlane) -> Iterator[Venue]:
    """With TLS and a token, as any other cluster. A namespace takes seconds to go: each run has another."""
    client = Client(configuration_from(plane.access.kubeconfig))
    namespace = f"vision-{secrets.token_hex(4)}"
    try:
        _let_members_work(client)
        _furnish(client, namespace)
        yield Venue(flattened(plane.access), namespace)
    finally:
        for path in (f"/api/v1/namespaces/{namespace}", f"/api/v1/nodes/{NODE}"):
            with suppress(NotFoundError):
                client.delete(path)
        client.close()


def _let_members_work(client: Client) -> None:
    """The role that teams get, as an admin applies it with the file."""
    objects = yaml.safe_load_all((DEPLOYED / "enforce.yaml").read_text())
    role = next(o for o in objects if o["metadata"]["name"] == MEMBER_ROLE)
    with suppress(ConflictError):
        client.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)


def flattened(access: Access) -> str:
    """As `kubectl config view --flatten` writes it: with the authority's certificate in it."""
    config = yaml.safe_load(Path(access.kubeconfig).read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = Path(cluster.pop("certificate-authority")).read_bytes()
    cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return yaml.safe_dump(config)


def _furnish(client: Client, namespace: str) -> None:
    add_node(client, node(NODE, **PRODUCT))
    meta = {"name": namespace}
    client.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
