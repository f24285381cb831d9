"""Where a demo plays: in a cluster embedded in its process, on a Kubernetes of its own, or on yours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from scheduling.models import Cluster
from workshop.demo.cluster.embedded_cluster import EmbeddedCluster
from workshop.demo.cluster.furnish import SimulatedCluster
from workshop.demo.cluster.paths import DemoFolder
from workshop.demo.cluster.real import RealCluster

EMBEDDED, REAL, CONTEXT = "embedded", "real", "context:"
SPEED, TRACE_SPEED, REAL_SPEED = 60.0, 600.0, 10.0
"""The embedded cluster's clock runs faster; Kubernetes keeps the wall's time, and only its pods hurry."""


@dataclass(frozen=True, slots=True)
class Venue:
    """``name`` as on the command line: embedded, real, or context: and a name of the kubeconfig."""

    name: str

    @classmethod
    def parse(cls, text: str) -> Venue:
        """Raises ValueError saying what can be said."""
        if text in (EMBEDDED, REAL) or (text.startswith(CONTEXT) and text != CONTEXT):
            return cls(text)
        raise ValueError(f"--cluster: {text!r} is neither embedded, real nor context:NAME")

    @property
    def is_embedded(self) -> bool:
        return self.name == EMBEDDED

    def speed(self, *, trace: bool) -> float:
        """How fast it plays unless told otherwise."""
        if not self.is_embedded:
            return REAL_SPEED
        return TRACE_SPEED if trace else SPEED

    def open(
        self,
        cluster: Cluster,
        folder: DemoFolder,
        *,
        speed: float,
        start: datetime,
        say: Callable[[str], None],
    ) -> SimulatedCluster:
        """Start the cluster for the row ``cluster``. Raises ServiceError when it cannot be had."""
        if self.is_embedded:
            embedded = EmbeddedCluster(cluster, path=folder.objects, speed=speed, start=start)
            embedded.start()
            return embedded
        context = self.name.removeprefix(CONTEXT) if self.name != REAL else ""
        real = RealCluster(
            cluster, folder=folder.control_plane, pace=speed, start=start, context=context
        )
        real.start(say)
        return real
