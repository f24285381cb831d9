"""Garbage collection by owner references, and the end of old Events."""

from __future__ import annotations

from collections.abc import Iterable

from workshop.testbed.server.kinds.clock import parse_stamp
from workshop.testbed.server.kinds.resources import EVENTS, Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record

from ..verbs.delete import FOREGROUND, ORPHAN, DeleteOptions, mark_deleted
from ..verbs.update import write_metadata
from .runtime import After

_EVENT_LIFE_S = 3600.0


class GarbageCollector:
    """Deletes what has lost all its owners; frees owners that wait for their dependents."""

    def __init__(self, world: World) -> None:
        self._world = world

    def keys(self, event: Event) -> Iterable[Key]:
        """Return whom the change concerns: itself, its dependents, its owners."""
        record = event.record
        metadata = record.body["metadata"]
        found: list[Key] = []
        if event.type == "DELETED":
            found += [dependent.key for dependent in self._world.store.owned_by(record.uid)]
            found += self._waiting_owners(metadata)
        elif "deletionTimestamp" in metadata:
            found.append(record.key)
            found += self._waiting_owners(metadata)
        elif metadata.get("ownerReferences") and event.type == "ADDED":
            found.append(record.key)
        return found

    def _waiting_owners(self, metadata: Json) -> list[Key]:
        owners = (
            self._world.store.by_uid(reference.get("uid", ""))
            for reference in metadata.get("ownerReferences") or ()
        )
        return [o.key for o in owners if o and "deletionTimestamp" in o.body["metadata"]]

    def reconcile(self, key: Key, after: After) -> None:
        """Serve the finalizers of a deleted object; delete a dependent without owners."""
        record = self._world.store.find(key)
        if record is None:
            return
        finalizers = record.body["metadata"].get("finalizers") or []
        if "deletionTimestamp" in record.body["metadata"]:
            if ORPHAN in finalizers:
                self._orphan(record)
            elif FOREGROUND in finalizers:
                self._foreground(record)
        elif self._is_garbage(record):
            mark_deleted(self._world, record, DeleteOptions(policy="Background"))

    def _is_garbage(self, record: Record) -> bool:
        references = record.body["metadata"].get("ownerReferences") or ()
        return bool(references) and all(
            self._world.store.by_uid(reference.get("uid", "")) is None for reference in references
        )

    def _orphan(self, owner: Record) -> None:
        for dependent in self._world.store.owned_by(owner.uid):
            references = dependent.body["metadata"].get("ownerReferences") or ()
            left = [r for r in references if r.get("uid") != owner.uid]
            write_metadata(self._world, dependent, ownerReferences=left or None)
        self._drop_finalizer(owner, ORPHAN)

    def _foreground(self, owner: Record) -> None:
        for dependent in self._world.store.owned_by(owner.uid):
            if "deletionTimestamp" not in dependent.body["metadata"]:
                mark_deleted(self._world, dependent, DeleteOptions(policy="Foreground"))
        if not any(_blocks(d, owner.uid) for d in self._world.store.owned_by(owner.uid)):
            self._drop_finalizer(owner, FOREGROUND)

    def _drop_finalizer(self, record: Record, name: str) -> None:
        current = self._world.store.find(record.key)
        if current is not None:
            left = [f for f in current.body["metadata"].get("finalizers") or () if f != name]
            write_metadata(self._world, current, finalizers=left or None)


def _blocks(dependent: Record, uid: str) -> bool:
    references = dependent.body["metadata"].get("ownerReferences") or ()
    return any(r.get("uid") == uid and r.get("blockOwnerDeletion") for r in references)


class EventExpiry:
    """Removes Events an hour after they were last written, as a real server's lease on them does."""

    def __init__(self, world: World) -> None:
        self._world = world

    def keys(self, event: Event) -> Iterable[Key]:
        """Return the Event that was written."""
        return (event.record.key,) if event.record.resource is EVENTS else ()

    def reconcile(self, key: Key, after: After) -> None:
        """Remove an Event whose time has come."""
        record = self._world.store.find(key)
        if record is None:
            return
        stamp = record.body.get("lastTimestamp") or record.body["metadata"]["creationTimestamp"]
        end = parse_stamp(stamp) + _EVENT_LIFE_S
        if self._world.clock.seconds() < end:
            after(key, end)
        else:
            self._world.store.remove(record)
