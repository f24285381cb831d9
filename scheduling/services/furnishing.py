"""What a cluster that only plays one gets before anybody submits: nodes, namespaces, priorities."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol

from scheduling.cluster import labels
from scheduling.cluster.client import Client, ConflictError
from scheduling.cluster.embedded import Clock
from scheduling.cluster.kubelets import Machine, node_manifest
from scheduling.models import Cluster

__all__ = ["Machine", "Played", "furnish"]

Json = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
_EVERYBODY = "system:authenticated"


class Played(Protocol):
    """A running cluster whose nodes are simulated."""

    cluster: Cluster
    clock: Clock
    """The time in which arrivals are stated."""

    @property
    def kubectl(self) -> str:
        """Arguments with which kubectl reaches it."""

    def stop(self) -> None:
        """End it; a later start goes on with its objects."""

    def save_clock(self) -> None:
        """Note the time, so that a start after a crash goes on from here."""

    def backdate(self, made: Json, created: datetime) -> None:
        """Give the object just made an earlier creation time, where that can be done."""


def furnish(
    cluster: Cluster,
    *,
    machines: Iterable[Machine],
    namespaces: Iterable[str],
    priority_classes: Iterable[tuple[str, int]],
) -> None:
    """Create what a cluster has before anybody submits; what exists already stays."""
    client = Client.connect(cluster)
    for machine in machines:
        _ensure(client, "/api/v1/nodes", node_manifest(machine))
    for name in namespaces:
        _ensure(client, "/api/v1/namespaces", _named("v1", "Namespace", name))
        bindings = f"/apis/{_RBAC}/v1/namespaces/{name}/rolebindings"
        _ensure(client, bindings, _everybody_edits())
    for name, value in priority_classes:
        body = _named("scheduling.k8s.io/v1", "PriorityClass", name)
        # Pods may come before the first pass over the guardrails, which keeps what is marked.
        body["metadata"]["labels"] = {labels.MANAGED: "true"}
        body |= {"value": value, "preemptionPolicy": "Never"}
        _ensure(client, "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    client.close()


def _everybody_edits() -> Json:
    """People submit in their own names; the portal says who may, so the namespace lets them."""
    body = _named(f"{_RBAC}/v1", "RoleBinding", "everybody-edits")
    body["roleRef"] = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "edit"}
    body["subjects"] = [{"apiGroup": _RBAC, "kind": "Group", "name": _EVERYBODY}]
    return body


def _named(api_version: str, kind: str, name: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _ensure(client: Client, path: str, body: Json) -> None:
    try:
        client.create(path, body)
    except ConflictError:
        return
