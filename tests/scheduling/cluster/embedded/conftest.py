"""An embedded server whose time stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from workshop.testbed.server import EmbeddedServer, ManualClock

from ..contract.api import Api


class Cluster:
    """A server on a manual clock and a connection to its default namespace."""

    def __init__(self, server: EmbeddedServer, clock: ManualClock) -> None:
        self.server, self.clock = server, clock
        self.api = Api(server.url, namespace="default")

    def step(self, seconds: float = 0) -> None:
        """Advance the clock; controllers have done everything that was due on the way."""
        self.clock.step(seconds)

    def node(self, name: str, gpus: int = 0, **spec: Any) -> None:
        """Add a ready node, labelled with its name."""
        capacity = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(gpus)}
        ready = [{"type": "Ready", "status": "True"}]
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": spec,
            "status": {"capacity": capacity, "conditions": ready},
        }
        self.api.create("nodes", body)

    def job(self, name: str, gpus: int = 0, **fields: Any) -> Any:
        """Create a Job; `annotations` and `pod` go to its template, the rest to its spec."""
        annotations = fields.pop("annotations", {})
        pod = fields.pop("pod", {})
        limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
        container = {"name": "main", "image": "busybox", "resources": limits}
        spec = {"restartPolicy": "Never", "containers": [container], **pod}
        template = {"metadata": {"annotations": annotations}, "spec": spec}
        return self.api.create(
            "jobs", {"metadata": {"name": name}, "spec": {"template": template, **fields}}
        )

    def pods(self, phase: str = "") -> list[Any]:
        """Return the pods, in a phase or all."""
        query = {"fieldSelector": f"status.phase={phase}"} if phase else {}
        found: list[Any] = self.api.get("pods", **query)["items"]
        return found

    def status(self, name: str) -> Any:
        """Return a Job's status."""
        return self.api.get("jobs", name)["status"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A fresh cluster without nodes."""
    clock = ManualClock()
    with EmbeddedServer(clock=clock, seed=1) as server:
        yield Cluster(server, clock)
