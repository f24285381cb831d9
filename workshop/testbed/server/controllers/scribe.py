"""How a kubelet writes: into the store it looks at, or over the wire to a server elsewhere."""

from __future__ import annotations

from typing import Protocol

from workshop.testbed.server.kinds.resources import Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Record

from ..verbs.delete import remove_if_free
from ..verbs.update import write, write_metadata


class Scribe(Protocol):
    """Writes of a kubelet. Each returns the object as it is after the write."""

    def status(self, record: Record, status: Json) -> Record:
        """Put ``status`` in place of the old one."""

    def annotate(self, record: Record, name: str, value: str) -> Record:
        """Set one annotation and leave the others alone."""

    def remove(self, pod: Record) -> None:
        """Nothing runs any more: end the grace, and with it the object unless finalizers hold it."""


class StoreScribe:
    """Writes as trusted controllers do, straight into the store."""

    def __init__(self, world: World) -> None:
        self._world = world

    def status(self, record: Record, status: Json) -> Record:
        return write(self._world, record, status=status)

    def annotate(self, record: Record, name: str, value: str) -> Record:
        annotations = record.body["metadata"].get("annotations") or {}
        return write_metadata(self._world, record, annotations={**annotations, name: value})

    def remove(self, pod: Record) -> None:
        current = self._world.store.find(pod.key)
        if current is None:
            return
        now = self._world.clock.stamp()
        marked = write_metadata(
            self._world,
            current,
            deletionGracePeriodSeconds=0,
            deletionTimestamp=current.body["metadata"].get("deletionTimestamp", now),
        )
        if self._world.store.find(pod.key) is not None:
            remove_if_free(self._world, marked)
