"""Watches: changes as they happen, from a version that the client names."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from workshop.testbed.server.kinds.errors import expired
from workshop.testbed.server.kinds.resources import Json, Resource
from workshop.testbed.server.store.store import Event, Record, Store, encode, watch_chunk

from .lists import Selection, select

Shape = Callable[[Record], bytes]
"""How an object is encoded in a watch, when not as itself (tables)."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What the client asked for; seconds are wall seconds."""

    version: int | None
    """None: begin with everything that is there."""
    timeout_s: float
    bookmarks: bool
    bookmark_every_s: float
    initial_events: bool = False
    drop_after_s: float | None = None
    """The connection is cut after this time (fault injection)."""


class Watch:
    """One watch on one connection. Changes may come from any thread; sending is the loop's."""

    delay_s = 0.0

    def __init__(
        self,
        store: Store,
        resource: Resource,
        selection: Selection,
        options: WatchOptions,
        shape: Shape | None = None,
    ) -> None:
        self._store = store
        self._resource = resource
        self._selection = selection
        self._options = options
        self._shape = shape
        self._pending: deque[bytes] = deque()
        self._scheduled = False
        self._version = options.version or 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(
        self, send: Callable[[bytes], None], finish: Callable[[], None], abort: Callable[[], None]
    ) -> None:
        """Send what happened since the version asked for, then whatever happens."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._send, self._finish = send, finish
        with self._store.lock:
            if not self._replay():
                self._end()
                return
            self._unsubscribe = self._store.watch(self._resource, self._notice)
        self._flush()
        self._later("end", self._options.timeout_s, self._end)
        if self._options.bookmarks:
            self._later("bookmark", self._options.bookmark_every_s, self._bookmark)
        if self._options.drop_after_s is not None:
            self._later("drop", self._options.drop_after_s, abort)

    def stop(self) -> None:
        """Stop listening; nothing more is sent."""
        self._unsubscribe()
        for timer in self._timers.values():
            timer.cancel()

    def _later(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        self._timers[name] = self._loop.call_later(seconds, action)

    def _replay(self) -> bool:
        """Queue the beginning; False if the version asked for is too old."""
        version = self._options.version
        if version is None:
            for record in select(self._store, self._resource, self._selection):
                self._pending.append(watch_chunk("ADDED", self._encoded(record)))
            self._version = self._store.version
            if self._options.initial_events:
                self._pending.append(self._bookmark_chunk(initial=True))
            return True
        events = self._store.since(self._resource, version)
        if events is None:
            error = expired(f"too old resource version: {version} ({self._store.version})")
            self._pending.append(watch_chunk("ERROR", encode(error.status())))
            return False
        for event in events:
            self._notice(event)
        return True

    def _notice(self, event: Event) -> None:
        """Queue `event` if it concerns the selection. Called under the store's lock."""
        self._version = event.version
        chunk = self._chunk(event)
        if chunk is None:
            return
        self._pending.append(chunk)
        if not self._scheduled:
            self._scheduled = True
            if threading.get_ident() == self._thread:
                self._loop.call_soon(self._flush)
            else:
                self._loop.call_soon_threadsafe(self._flush)

    def _chunk(self, event: Event) -> bytes | None:
        if self._selection.everything and self._shape is None:
            return event.chunk
        before = event.previous is not None and self._selection.matches(event.previous)
        after = event.type != "DELETED" and self._selection.matches(event.record)
        if not before and not after:
            return None
        kind = ("MODIFIED" if before else "ADDED") if after else "DELETED"
        if kind == event.type and self._shape is None:
            return event.chunk
        if kind == "DELETED" and event.type != "DELETED" and event.previous is not None:
            return watch_chunk(kind, self._encoded(_as_of(event.previous, event.version)))
        return watch_chunk(kind, self._encoded(event.record))

    def _encoded(self, record: Record) -> bytes:
        return record.raw if self._shape is None else self._shape(record)

    def _flush(self) -> None:
        self._scheduled = False
        if self._pending:
            chunks = []
            while self._pending:
                chunks.append(self._pending.popleft())
            self._send(b"".join(chunks))

    def _bookmark_chunk(self, *, initial: bool = False) -> bytes:
        metadata: Json = {"creationTimestamp": None, "resourceVersion": str(self._version)}
        if initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        resource = self._resource
        body = {"kind": resource.kind, "apiVersion": resource.group_version, "metadata": metadata}
        return watch_chunk("BOOKMARK", encode(body))

    def _bookmark(self) -> None:
        with self._store.lock:
            self._version = self._store.version
            self._flush()
        self._send(self._bookmark_chunk())
        self._later("bookmark", self._options.bookmark_every_s, self._bookmark)

    def _end(self) -> None:
        self.stop()
        self._flush()
        self._finish()


def _as_of(record: Record, version: int) -> Record:
    """Return `record` with the version at which it left a selection."""
    metadata = {**record.body["metadata"], "resourceVersion": str(version)}
    return Record(record.resource, {**record.body, "metadata": metadata}, version)
