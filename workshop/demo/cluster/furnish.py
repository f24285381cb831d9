"""What a cluster that only plays one gets before anybody submits: nodes, guardrails, rights."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol

import yaml
from django.conf import settings
from django.utils import timezone

from scheduling.cluster import guardrails as rails
from scheduling.cluster.connection.client import Client, ConflictError
from scheduling.cluster.guardrails.manifests import MEMBER_ROLE
from scheduling.models import Cluster
from scheduling.services.clusters.guardrails import look, record
from workshop.testbed.kubelets import Machine, node_manifest
from workshop.testbed.server import Clock

__all__ = ["Machine", "SimulatedCluster", "furnish"]

Json = dict[str, Any]


class SimulatedCluster(Protocol):
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


def furnish(cluster: Cluster, *, machines: Iterable[Machine]) -> None:
    """Create what a cluster has before anybody submits; what exists already stays.

    People act in their own names from the start, so their teams' rights and namespaces are there first.
    """
    client = Client.connect(cluster)
    for machine in machines:
        _ensure(client, "/api/v1/nodes", node_manifest(machine))
    _ensure(client, "/apis/rbac.authorization.k8s.io/v1/clusterroles", _member_role())
    _guard(cluster, client)
    client.close()


def _guard(cluster: Cluster, client: Client) -> None:
    """Make all guardrails of a cluster that no worker serves yet."""
    repairs = rails.prudent(client, look(cluster, client), check=lambda: None)
    record(cluster, rails.repair(client, repairs, check=lambda: None), at=timezone.now())


def _member_role() -> Json:
    """The role that the manifests for a real cluster install."""
    text = (settings.BASE_DIR / "docker" / "kubernetes" / "enforce.yaml").read_text()
    return next(d for d in yaml.safe_load_all(text) if d["metadata"]["name"] == MEMBER_ROLE)


def _ensure(client: Client, path: str, body: Json) -> None:
    try:
        client.create(path, body)
    except ConflictError:
        return
