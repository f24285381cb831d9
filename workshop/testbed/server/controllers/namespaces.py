"""The end of a namespace: first everything in it, then itself."""

from __future__ import annotations

from collections.abc import Iterable

from workshop.testbed.server.kinds.resources import NAMESPACES
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record

from ..verbs.delete import DeleteOptions, mark_deleted
from .runtime import After


class NamespaceController:
    """Empties deleted namespaces."""

    def __init__(self, world: World) -> None:
        self._world = world

    def keys(self, event: Event) -> Iterable[Key]:
        """Return the namespace, also when something in it is gone and it waits for that."""
        record = event.record
        if record.resource is NAMESPACES:
            return (record.key,)
        if event.type != "DELETED" or not record.namespace:
            return ()
        owner = self._world.store.get(NAMESPACES, "", record.namespace)
        if owner is None or "deletionTimestamp" not in owner.body["metadata"]:
            return ()
        return (owner.key,)

    def reconcile(self, key: Key, after: After) -> None:
        """Delete what is left in a deleted namespace; remove it once it is empty."""
        namespace = self._world.store.find(key)
        if namespace is None or "deletionTimestamp" not in namespace.body["metadata"]:
            return
        contents = self._contents(namespace.name)
        for record in contents:
            if "deletionTimestamp" not in record.body["metadata"]:
                mark_deleted(self._world, record, DeleteOptions(policy="Background"))
        if contents and self._contents(namespace.name):
            return
        current = self._world.store.find(key)
        if current is not None and not current.body["metadata"].get("finalizers"):
            self._world.store.remove(current)

    def _contents(self, name: str) -> list[Record]:
        store = self._world.store
        return [
            r
            for resource in store.resources()
            if resource.namespaced
            for r in store.listing(resource, name)
        ]
