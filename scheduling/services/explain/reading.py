"""A cluster as it was read once, for those who ask what the engine would say of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

from scheduling.cluster.adapters import Sighting
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
"""One question is planned at a time; whoever would wait longer for others is told to ask again."""


class Reading:
    """A cluster as it was read once. Used by one thread at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self.read_at = time.monotonic()
        self.revision = cluster.revision
        self._live: Live
        self.fault: ServiceError | None = None
        self.goes_on: Callable[[], None] = lambda: None
        """Of the question that has the turn."""
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

    def serves(self, cluster: Cluster, asked_at: float) -> bool:
        """Whether a question of then may be answered by it: of all who wait in line while it is read, or as
        long as nothing of the cluster has changed since."""
        is_fresh = time.monotonic() - self.read_at < FRESH_S
        return is_fresh and (self.read_at >= asked_at or self.revision >= cluster.revision)

    def shows(self, name: str) -> bool:
        """Whether it has the workload ``name``; nothing asked for is always there."""
        return not name or self.fault is not None or name in self.queue_of

    def with_draft(self, draft: Sighting, name: str) -> m.Snapshot:
        """With ``draft``, which nobody has submitted, as its last workload, arrived after everybody."""
        at = with_draft(self.snapshot, self._live.picture, draft)
        made = snapshots.newcomer(draft, self.rows, at.now)
        work = replace(made, name=name, submitted=self.after_all)
        return replace(at, workloads=(*at.workloads, work))

    def plan(self, snapshot: m.Snapshot) -> Outline:
        """What the engine would do with ``snapshot``, this one with something changed. Raises ReplacedError
        where nobody wants to know any more."""
        self.goes_on()
        return planned(self._planner.plan, snapshot)


class ReplacedError(ServiceError):
    """The same person has asked something else since."""

    def __init__(self) -> None:
        super().__init__("replaced", "Something else was asked since.", "Look at the newer answer.")


class QuestionTurn:
    """One question at a time, who came first; of one ``asker`` the newest alone waits or is planned."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[object] = []
        self._newest: dict[str, object] = {}
        self._planned: tuple[str, object] | None = None

    def take(self, asker: str) -> object:
        """The turn, once nobody has it. Raises ReplacedError, and TimeoutError where others have it too long:
        one's own question before gives way by itself, so it is waited for."""
        question = object()
        with self._changed:
            if asker:
                self._newest[asker] = question
            self._line.append(question)
            try:
                self._wait(asker, question)
                self._planned = (asker, question)
            finally:
                self._line.remove(question)
                self._changed.notify_all()
        return question

    def _wait(self, asker: str, question: object) -> None:
        self._changed.notify_all()
        waited_s, at = 0.0, time.monotonic()
        while self._planned is not None or self._line[0] is not question:
            is_own = bool(asker) and self._planned is not None and self._planned[0] == asker
            if waited_s >= BUSY_S and not is_own:
                self._forget(asker, question)
                raise TimeoutError
            self._changed.wait(BUSY_S if is_own else BUSY_S - waited_s)
            self.check(asker, question)
            now = time.monotonic()
            waited_s, at = waited_s + (0.0 if is_own else now - at), now

    def check(self, asker: str, question: object) -> None:
        """Raises ReplacedError once ``asker`` has asked something newer."""
        if asker and self._newest.get(asker) is not question:
            raise ReplacedError

    def leave(self, asker: str, question: object) -> None:
        with self._changed:
            self._planned = None
            self._forget(asker, question)
            self._changed.notify_all()

    def _forget(self, asker: str, question: object) -> None:
        if self._newest.get(asker) is question:
            del self._newest[asker]


class _Readings:
    """The last reading of each cluster, and whose turn it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[Address, Reading] = {}
        self._turns: dict[Address, QuestionTurn] = {}

    def turn_of(self, address: Address) -> QuestionTurn:
        with self._lock:
            return self._turns.setdefault(address, QuestionTurn())

    def get(self, cluster: Cluster, showing: str, asked_at: float) -> Reading:
        """Called by whoever has the turn; read anew where it does not show the workload ``showing`` yet."""
        address = address_of(cluster)
        reading = self._readings.get(address)
        if not (reading and reading.serves(cluster, asked_at) and reading.shows(showing)):
            reading = self._readings[address] = Reading(cluster)
        if reading.fault is not None:
            raise reading.fault
        return reading


_readings = _Readings()


@contextmanager
def reading_of(cluster: Cluster, *, showing: str = "", asker: str = "") -> Iterator[Reading]:
    """The cluster's reading, for one thread at a time. ``asker``: whose next question replaces this one;
    empty for one that stands by itself. Raises ServiceError when the cluster does not answer, too many ask
    at once, or the question is replaced."""
    turn, asked_at = _readings.turn_of(address_of(cluster)), time.monotonic()
    try:
        question = turn.take(asker)
    except TimeoutError:
        raise ServiceError(
            "busy", f"Too many ask {cluster.name} at once.", "Check again in a moment."
        ) from None
    try:
        reading = _readings.get(cluster, showing, asked_at)
        reading.goes_on = partial(turn.check, asker, question)
        yield reading
    finally:
        turn.leave(asker, question)


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
