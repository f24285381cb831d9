"""A cluster as it was read once, for those who ask what the engine would say of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from scheduling.cluster.adapters import Observed
from scheduling.engine import Outline, Planner
from scheduling.engine import model as m
from scheduling.models import Cluster
from scheduling.services.clusters.connection import Address, address_of
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot import build as snapshots
from scheduling.services.snapshot.around import with_draft
from scheduling.services.snapshot.build import Live
from scheduling.services.snapshot.live import told_when_unreachable

T = TypeVar("T")
FRESH_S = 5.0
"""A reading of the cluster answers questions for so long: people type faster than plans change."""
BUSY_S = 5.0
"""One question is planned at a time; whoever would wait longer is told to ask again."""


class Reading:
    """A cluster as it was read once. Used by one thread at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self.read_at = time.monotonic()
        self.revision = cluster.revision
        self._live: Live
        self.fault: ServiceError | None = None
        self._planner = Planner()
        try:
            with told_when_unreachable(cluster, "Check again in a moment."):
                self._live = snapshots.live_under(cluster)
        except ServiceError as unreachable:
            self.fault = unreachable
            return
        self.rows, self.snapshot = self._live.rows, self._live.snapshot
        self.queue_of = {w.name: w.queue for w in self.snapshot.workloads}
        latest = max([self.snapshot.now, *(w.submitted for w in self.snapshot.workloads)])
        self.after_all = latest + timedelta(seconds=1)
        """Later than everything arrived, whatever the API server's clock says of it."""

    def serves(self, cluster: Cluster) -> bool:
        fresh = time.monotonic() - self.read_at < FRESH_S
        return fresh and self.revision == cluster.revision

    def shows(self, name: str) -> bool:
        """Whether it has the workload ``name``; nothing asked for is always there."""
        return not name or self.fault is not None or name in self.queue_of

    def with_draft(self, draft: Observed, name: str) -> m.Snapshot:
        """With ``draft``, which nobody has submitted, as its last workload, arrived after everybody."""
        at = with_draft(self.snapshot, self._live.picture, draft)
        made = snapshots.newcomer(draft, self.rows, at.now)
        work = replace(made, name=name, submitted=self.after_all)
        return replace(at, workloads=(*at.workloads, work))

    def plan(self, snapshot: m.Snapshot) -> Outline:
        """What the engine would do with ``snapshot``, this one with something changed."""
        return planned(self._planner.plan, snapshot)


class _Readings:
    """The last reading of each cluster, and whose turn it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[Address, Reading] = {}
        self._turns: dict[Address, threading.Lock] = {}

    def turn_of(self, address: Address) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(address, threading.Lock())

    def get(self, cluster: Cluster, showing: str) -> Reading:
        """Called by whoever has the turn; read anew where it does not show the workload ``showing`` yet."""
        address = address_of(cluster)
        reading = self._readings.get(address)
        if reading is None or not reading.serves(cluster) or not reading.shows(showing):
            reading = self._readings[address] = Reading(cluster)
        if reading.fault is not None:
            raise reading.fault
        return reading


_readings = _Readings()


@contextmanager
def reading_of(cluster: Cluster, *, showing: str = "") -> Iterator[Reading]:
    """The cluster's reading, for one thread at a time. Raises ServiceError when the cluster does not answer,
    or too many ask at once."""
    turn = _readings.turn_of(address_of(cluster))
    if not turn.acquire(timeout=BUSY_S):
        raise ServiceError(
            "busy", f"Too many ask {cluster.name} at once.", "Check again in a moment."
        )
    try:
        yield _readings.get(cluster, showing)
    finally:
        turn.release()


def planned(plan: Callable[[m.Snapshot], T], snapshot: m.Snapshot) -> T:
    """What ``plan`` makes of ``snapshot``. Raises ServiceError where it cannot be planned."""
    try:
        return plan(snapshot)
    except m.SnapshotError as error:
        raise ServiceError(
            "cannot_plan",
            "The cluster cannot be planned as it is.",
            "Ask an admin to look at the engine's page.",
        ) from error
