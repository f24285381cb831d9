"""A store that follows another server: versions and identities are the server's own."""

from __future__ import annotations

from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.reflector import Reflector, untrimmed, version_of
from workshop.testbed.server.kinds.resources import NODES, Json, Resource
from workshop.testbed.server.store.store import Event, Record, Store

from .machines import is_simulated


class Shadow(Store):
    """What kubelets look at; changed by feeds only."""

    def __init__(self) -> None:
        super().__init__(history=0)

    def take(self, kind: str, resource: Resource, body: Json) -> None:
        """Follow one change, ``kind`` as in a watch."""
        record = Record(resource, body, version_of(body))
        with self.lock:
            previous = self.get(resource, record.namespace, record.name)
            if kind == "DELETED":
                if previous is not None:
                    self._drop(previous, record)
                return
            if previous is not None:
                self._disown(previous)
            self._adopt(record)
            self._publish(Event("MODIFIED" if previous else "ADDED", record, previous))

    def _drop(self, previous: Record, last: Record) -> None:
        self._tables[last.resource].drop(previous)
        self._by_uid.pop(previous.uid, None)
        self._disown(previous)
        self._publish(Event("DELETED", last, previous))


class Feed(Reflector):
    """Carries one resource from the server into the shadow; of nodes only those to act for."""

    def __init__(self, client: Client, path: str, resource: Resource, shadow: Shadow) -> None:
        super().__init__(client, path, on_change=lambda: None, trim=untrimmed)
        self._resource = resource
        self._shadow = shadow

    def notify(self, kind: str, obj: Json) -> None:
        if self._resource is NODES and not is_simulated(obj):
            kind = "DELETED"
        self._shadow.take(kind, self._resource, obj)
