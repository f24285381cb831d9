"""The embedded cluster as a service: an API server in this process that a Cluster row points at.

For the demo and for trying things out. Its clock is the cluster's clock: while it runs, the row's
clock columns follow it, so that ``Cluster.now()`` is the same time in every process.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scheduling.models import Cluster
from workshop.testbed.server import Clock, EmbeddedServer

Json = dict[str, Any]

HISTORY = 1024
"""Changes of each kind that a watch can be taken up from: some minutes. Each holds two versions of an object
and their bytes: the server's own 8,192 of pods, of Jobs and of events are hundreds of megabytes."""


class EmbeddedCluster:
    """An API server for ``cluster``, kept in ``path``; its clock runs ``speed`` times the wall's.

    It starts at the time the row's clock was saved last, else at ``start``.
    """

    def __init__(self, cluster: Cluster, *, path: Path, speed: float, start: datetime) -> None:
        self.cluster = cluster
        self.clock = Clock(speed=speed, start=cluster.clock_start or start)
        self.server = EmbeddedServer(port=0, clock=self.clock, path=path, history=HISTORY)

    def start(self) -> None:
        """Serve, and point the row at the address."""
        self.server.start()
        found = {"api_url": self.server.url, "metrics_url": f"{self.server.url}/prometheus"}
        Cluster.objects.filter(pk=self.cluster.pk).update(**found)
        for name, value in found.items():
            setattr(self.cluster, name, value)
        self.save_clock()

    @property
    def kubectl(self) -> str:
        return f"--server {self.server.url}"

    def stop(self) -> None:
        self.save_clock()
        self.server.stop()

    def save_clock(self) -> None:
        """Write the clock into the row; a start after a crash goes on from the last one written."""
        columns = {
            "clock_start": self.clock.now(),
            "clock_real": datetime.now(UTC),
            "clock_speed": self.clock.speed,
        }
        Cluster.objects.filter(pk=self.cluster.pk).update(**columns)
        for name, value in columns.items():
            setattr(self.cluster, name, value)

    def backdate(self, made: Json, created: datetime) -> None:
        """Give the object that the server just made an earlier creation time, as a restore would."""
        meta = made["metadata"]
        store = self.server.store
        with store.lock:
            record = store.by_uid(meta["uid"])
            if record is not None:
                metadata = {**record.body["metadata"], "creationTimestamp": f"{created:%FT%TZ}"}
                store.replace(record, {**record.body, "metadata": metadata})
