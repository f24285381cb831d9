"""The versioned store: objects, one counter of versions, a bounded history, indexes.

Bodies are frozen by convention: a write builds a new body (sharing what it does not touch) and
nobody changes one that is stored. That is why bodies may be handed out without copying, why
their bytes can be kept, and why one encoded event serves every watcher.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from workshop.testbed.server.kinds.resources import RESOURCES, Json, Resource

Key = tuple[Resource, str, str]
"""Resource, namespace ("" if it has none), name."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(value: object) -> bytes:
    """Return `value` as compact JSON in UTF-8."""
    return _encode(value).encode()


class Record:
    """One version of one object."""

    __slots__ = ("_raw", "body", "name", "namespace", "resource", "version")

    def __init__(self, resource: Resource, body: Json, version: int) -> None:
        metadata = body["metadata"]
        self.resource = resource
        self.namespace: str = metadata.get("namespace", "")
        self.name: str = metadata["name"]
        self.version = version
        self.body = body
        self._raw: bytes | None = None

    @property
    def key(self) -> Key:
        """Return where it is kept."""
        return (self.resource, self.namespace, self.name)

    @property
    def uid(self) -> str:
        """Return the identity that survives every write."""
        uid: str = self.body["metadata"]["uid"]
        return uid

    @property
    def raw(self) -> bytes:
        """Return the encoded body, made once."""
        if self._raw is None:
            self._raw = encode(self.body)
        return self._raw


class Event:
    """One change: what was written, and what stood there before."""

    __slots__ = ("_chunk", "previous", "record", "type", "version")

    def __init__(self, type_: str, record: Record, previous: Record | None) -> None:
        self.type = type_
        self.version = record.version
        self.record = record
        self.previous = previous
        self._chunk: bytes | None = None

    @property
    def chunk(self) -> bytes:
        """Return the event as one HTTP chunk, encoded once for all watchers."""
        if self._chunk is None:
            self._chunk = watch_chunk(self.type, self.record.raw)
        return self._chunk


def watch_chunk(type_: str, raw: bytes) -> bytes:
    """Return one line of a watch, framed as an HTTP chunk."""
    line = b'{"type":"' + type_.encode() + b'","object":' + raw + b"}\n"
    return b"%x\r\n%b\r\n" % (len(line), line)


class _Table:
    """Everything kept for one resource."""

    def __init__(self, history: int) -> None:
        self.records: dict[tuple[str, str], Record] = {}
        self.namespaces: dict[str, dict[str, Record]] = {}
        self.history: deque[Event] = deque()
        self.capacity = history
        self.floor = 0
        self.order: list[tuple[str, str]] | None = None
        self.watchers: list[Callable[[Event], None]] = []

    def put(self, record: Record) -> None:
        place = (record.namespace, record.name)
        if place not in self.records:
            self.order = None
        self.records[place] = record
        self.namespaces.setdefault(record.namespace, {})[record.name] = record

    def drop(self, record: Record) -> None:
        del self.records[record.namespace, record.name]
        del self.namespaces[record.namespace][record.name]
        self.order = None

    def remember(self, event: Event) -> None:
        self.history.append(event)
        if len(self.history) > self.capacity:
            self.floor = self.history.popleft().version


class _Tables(dict[Resource, _Table]):
    """One for each resource; that of a custom kind is made when it is first asked for."""

    def __init__(self, history: int) -> None:
        self._history = history
        super().__init__({resource: _Table(history) for resource in RESOURCES})

    def __missing__(self, resource: Resource) -> _Table:
        self[resource] = _Table(self._history)
        return self[resource]


class Store:
    """All objects of the cluster. Hold `lock` across a read and the write that depends on it."""

    def __init__(self, history: int = 8192) -> None:
        self.lock = threading.RLock()
        self.version = 1
        self._tables = _Tables(history)
        self._by_uid: dict[str, Record] = {}
        self._owned: dict[str, dict[Key, None]] = {}
        self._listeners: list[Callable[[Event], None]] = []
        self.keep: Callable[[Key, Record | None], None] = lambda key, record: None
        """Called under the lock before a change, None for a removal; what it raises, the writer gets, and
        nothing has changed then."""

    def get(self, resource: Resource, namespace: str, name: str) -> Record | None:
        """Return the latest version, or None."""
        return self._tables[resource].records.get((namespace, name))

    def find(self, key: Key) -> Record | None:
        """Return the latest version under `key`, or None."""
        return self._tables[key[0]].records.get((key[1], key[2]))

    def by_uid(self, uid: str) -> Record | None:
        """Return the live object with this `uid`, or None."""
        return self._by_uid.get(uid)

    def owned_by(self, uid: str) -> list[Record]:
        """Return the objects that name `uid` as an owner, oldest first."""
        return [r for key in self._owned.get(uid, ()) if (r := self.find(key)) is not None]

    def count(self, resource: Resource, namespace: str | None = None) -> int:
        """Return how many objects there are."""
        table = self._tables[resource]
        return len(table.records if namespace is None else table.namespaces.get(namespace, ()))

    def listing(self, resource: Resource, namespace: str | None = None) -> list[Record]:
        """Return all objects, ordered by namespace and name as in etcd."""
        table = self._tables[resource]
        if namespace is not None:
            records = table.namespaces.get(namespace, {})
            return [records[name] for name in sorted(records)]
        if table.order is None:
            table.order = sorted(table.records)
        return [table.records[place] for place in table.order]

    def insert(self, resource: Resource, body: Json) -> Record:
        """Store a new object; the caller has checked that its name is free."""
        record = self._next(resource, body)
        self.keep(record.key, record)
        self._adopt(record)
        self._publish(Event("ADDED", record, None))
        return record

    def replace(self, previous: Record, body: Json) -> Record:
        """Store a new version of `previous`."""
        record = self._next(previous.resource, body)
        self.keep(record.key, record)
        if _owners(previous.body) != _owners(body):
            self._disown(previous)
        self._adopt(record)
        self._publish(Event("MODIFIED", record, previous))
        return record

    def remove(self, previous: Record, body: Json | None = None) -> Record:
        """Remove the object; its last version gets the version number of the removal."""
        record = self._next(previous.resource, body or previous.body)
        self.keep(record.key, None)
        self._tables[record.resource].drop(previous)
        self._by_uid.pop(previous.uid, None)
        self._disown(previous)
        self._publish(Event("DELETED", record, previous))
        return record

    def load(self, bodies: Iterable[tuple[Resource, Json, int]], version: int) -> None:
        """Take over saved objects; versions before `version` cannot be resumed from."""
        for resource, body, number in bodies:
            self._adopt(Record(resource, body, number))
        self.version = max(self.version, version)
        for table in self._tables.values():
            table.floor = self.version

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` under the lock for every change of any resource."""
        self._listeners.append(listener)

    def watch(self, resource: Resource, watcher: Callable[[Event], None]) -> Callable[[], None]:
        """Call `watcher` under the lock for every change of `resource`; return how to stop."""
        watchers = self._tables[resource].watchers
        watchers.append(watcher)
        return lambda: watchers.remove(watcher) if watcher in watchers else None

    def since(self, resource: Resource, version: int) -> list[Event] | None:
        """Return the events after `version`; None if some of them have been forgotten."""
        table = self._tables[resource]
        if version < table.floor:
            return None
        start = bisect_right(table.history, version, key=lambda event: event.version)
        return [table.history[i] for i in range(start, len(table.history))]

    def forget_history(self) -> None:
        """Forget all events, as compaction does; older versions cannot be resumed from."""
        for table in self._tables.values():
            table.history.clear()
            table.floor = self.version

    def resources(self) -> list[Resource]:
        """Return every resource that was ever asked for, custom ones among them."""
        return list(self._tables)

    def all_records(self) -> Iterator[Record]:
        """Yield every object."""
        for table in self._tables.values():
            yield from table.records.values()

    def _next(self, resource: Resource, body: Json) -> Record:
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        return Record(resource, {**body, "metadata": metadata}, self.version)

    def _adopt(self, record: Record) -> None:
        self._tables[record.resource].put(record)
        self._by_uid[record.uid] = record
        for uid in _owners(record.body):
            self._owned.setdefault(uid, {})[record.key] = None

    def _disown(self, record: Record) -> None:
        for uid in _owners(record.body):
            keys = self._owned.get(uid, {})
            keys.pop(record.key, None)
            if not keys:
                self._owned.pop(uid, None)

    def _publish(self, event: Event) -> None:
        table = self._tables[event.record.resource]
        table.remember(event)
        for watcher in list(table.watchers):
            watcher(event)
        for listener in self._listeners:
            listener(event)


def _owners(body: Json) -> list[str]:
    references = body["metadata"].get("ownerReferences")
    return [reference.get("uid", "") for reference in references] if references else []
