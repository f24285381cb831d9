"""A live copy of one resource of a cluster: list once, then watch, for ever, in a thread of its own.

The copy is never older than the last event or write it saw, misses nothing across dropped watches (it resumes
by resourceVersion, or lists anew when that is too old) and says when it is complete and how long it has been
out of touch.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Container
from typing import Any
from urllib.parse import parse_qsl

import orjson
import urllib3

from scheduling.cluster.connection.client import (
    ApiError,
    Client,
    ForbiddenError,
    GoneError,
    NotFoundError,
    back_off,
    error_of,
)
from scheduling.cluster.connection.wire import Stream

Json = dict[str, Any]
Key = tuple[str, str]
"""(namespace, name); the namespace of cluster-wide objects is empty."""

log = logging.getLogger(__name__)

PAGE = 500
WATCH_S = 300
"""Asked of the server; it ends the watch then, and we resume."""
SILENCE_S = 90.0
"""Bookmarks come about once a minute: a longer silence is a dead connection."""
BACK_OFF_S = (0.1, 15.0)
UNSERVED_S = 30.0
"""Between two looks whether the cluster serves a kind by now: its definition may be added later."""
DEPARTED = 500
BURIED = 5000
"""Deletions remembered; a write is answered long before that many follow it."""


def key_of(obj: Json) -> Key:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def version_of(obj: Json) -> int:
    """resourceVersions of one resource are ordered integers (documented since Kubernetes 1.35)."""
    return int(obj["metadata"]["resourceVersion"])


def untrimmed(obj: Json) -> Json:
    obj["metadata"].pop("managedFields", None)
    return obj


class Reflector:
    """The mirror of one resource: ``path`` is its list URL, which may choose among its objects by a query;
    ``trim`` drops what nobody reads."""

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        on_change: Callable[[], None],
        trim: Callable[[Json], Json] = untrimmed,
        optional: bool = False,
    ) -> None:
        self._optional = optional
        self._client = client
        self._path, _, chosen = path.partition("?")
        self._chosen: dict[str, str | int] = dict(parse_qsl(chosen))
        self._trim = trim
        self._on_change = on_change
        self._objects: dict[Key, Json] = {}
        self._aside: dict[Key, int] = {}
        """Versions of those that were set aside."""
        self._buried: dict[Key, int] = {}
        self._own_writes: dict[Key, int] = {}
        """Objects that we are writing -> the latest version that the watch told of meanwhile."""
        self._departed: dict[str, Json] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._in_touch_at = time.monotonic()
        self._connected = False
        self._open: Stream | None = None
        self._version = ""
        self.synced = threading.Event()
        self.served = True
        """The cluster knows this kind, as far as we heard."""
        self.lists = 0
        self.watches = 0
        self.generation = 0
        """Rises with every change of the copy."""
        self._thread = threading.Thread(target=self._run, name=f"mirror {path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._open is not None:
            # A blocked read wakes only when its socket dies under it.
            _sever(self._open)

    def join(self, timeout_s: float) -> None:
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def objects(self) -> list[Json]:
        """The objects now; treat them as read-only."""
        with self._lock:
            return list(self._objects.values())

    def size(self) -> int:
        return len(self._objects)

    def get(self, namespace: str, name: str) -> Json | None:
        with self._lock:
            return self._objects.get((namespace, name))

    def departed(self, uids: Container[str]) -> list[Json]:
        """The last state of objects among ``uids`` that were deleted lately: one that ended and was
        cleaned up between two looks is told from one that was stopped."""
        with self._lock:
            return [obj for uid, obj in self._departed.items() if uid in uids]

    def lag_s(self) -> float:
        """Seconds out of touch with the server: 0 while the watch is open, or there is none to open."""
        return 0.0 if self._connected or not self.served else time.monotonic() - self._in_touch_at

    def absorb(self, obj: Json) -> None:
        """Take in the answer to a write of ours, so that the next plan sees it at once."""
        self._put(self._trim(obj))

    def write(self, key: Key, send: Callable[[], Json], *, is_foreseen: bool) -> None:
        """Have ``send`` write the object ``key`` and take in the server's answer.

        A write that ``is_foreseen`` is no change to anybody, whether the watch or the answer tells of it
        first, unless others wrote after it; every other one is announced. Raises what ``send`` raises.
        """
        with self._lock:
            self._own_writes[key] = 0
        answered = 0
        try:
            obj = self._trim(send())
            answered = version_of(obj)
            self._put(obj)
        finally:
            with self._lock:
                heard = self._own_writes.pop(key, 0)
            if heard > answered or (answered and not is_foreseen):
                self._on_change()

    def bury(self, namespace: str, name: str, uid: str) -> None:
        """Drop an object that a write found gone (404), if it still is the one with ``uid``."""
        with self._lock:
            current = self._objects.get((namespace, name))
            if current is not None and current["metadata"].get("uid") == uid:
                del self._objects[namespace, name]
                self.generation += 1
                self.notify("DELETED", current)

    def set_aside(self, obj: Json) -> None:
        """Hold ``obj`` no longer, unless it changed since: it is not there until it does."""
        key = key_of(obj)
        with self._lock:
            if self._objects.get(key) is obj:
                del self._objects[key]
                self._aside[key] = version_of(obj)

    def notify(self, kind: str, obj: Json) -> None:
        """For those who derive from it: called for each change, in order, with the copy locked."""

    def _run(self) -> None:
        waits = back_off(*BACK_OFF_S)
        while not self._stop.is_set():
            try:
                if not self._version:
                    self._list()
                began = time.monotonic()
                self._watch()
                if time.monotonic() - began > 1:
                    waits = back_off(*BACK_OFF_S)
                    continue
            except GoneError:
                log.info("%s: resource version too old, listing again", self._path)
                self._version = ""
            except (NotFoundError, ForbiddenError) as error:
                if self._is_unserved(error):
                    self._find_unserved(error)
                    self._stop.wait(UNSERVED_S)
                    continue
                log.info("%s: %s", self._path, error)
            except (ApiError, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                log.info("%s: %s", self._path, error)
            finally:
                self._connected = False
            self._stop.wait(next(waits))

    def _is_unserved(self, error: ApiError) -> bool:
        """An optional kind the cluster does not know, or never let us see; rights that are taken away
        later must not make its objects look deleted."""
        known = self.synced.is_set() and self.served
        return self._optional and (isinstance(error, NotFoundError) or not known)

    def _find_unserved(self, error: ApiError) -> None:
        """The cluster has none of the kind: that is all there is to know for now."""
        if self.served or not self.synced.is_set():
            log.info("%s: not served: %s", self._path, error)
        self.served, self._version = False, ""
        with self._lock:
            gone = bool(self._objects)
            self._objects.clear()
            self._aside.clear()
            self.generation += gone
        self.synced.set()
        if gone:
            self._on_change()

    def _list(self) -> None:
        """Page through everything, then drop what the server no longer has."""
        seen: set[Key] = set()
        token, version = "", ""
        while True:
            query: dict[str, str | int] = {**self._chosen, "limit": PAGE}
            if token:
                query["continue"] = token
            page = self._client.get(self._path, **query)
            for obj in page.get("items") or []:
                seen.add(key_of(obj))
                self._put(self._trim(obj), quiet=True)
            version = version or page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue") or ""
            if not token:
                break
        self._drop_unlisted(seen, int(version))
        self.lists += 1
        self._version = version
        self.served = True
        self._touch()
        self.synced.set()
        self._on_change()

    def _drop_unlisted(self, seen: set[Key], version: int) -> None:
        """An object newer than the list was written by us meanwhile; the watch will tell of it."""
        with self._lock:
            gone = [
                key
                for key, obj in self._objects.items()
                if key not in seen and version_of(obj) <= version
            ]
            for key in gone:
                self.notify("DELETED", self._objects.pop(key))
            self._aside = {key: at for key, at in self._aside.items() if key in seen}
            self._buried.clear()
            self.generation += 1

    def _watch(self) -> None:
        query: dict[str, str | int] = {
            **self._chosen,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": WATCH_S,
        }
        with self._client.stream(self._path, query, timeout_s=SILENCE_S) as stream:
            self._open = stream
            if self._stop.is_set():
                return
            self.watches += 1
            self._connected = True
            self._touch()
            for line in stream.lines():
                if self._stop.is_set():
                    return
                self._take(orjson.loads(line))
                self._touch()

    def _take(self, event: Json) -> None:
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise error_of(obj.get("code", 500), json.dumps(obj).encode())
        if kind == "BOOKMARK":
            self._version = obj["metadata"]["resourceVersion"]
            return
        obj = self._trim(obj)
        changed = self._remove(obj) if kind == "DELETED" else self._put(obj)
        self._version = obj["metadata"]["resourceVersion"]
        if changed and not self._is_own_write(kind, obj):
            self._on_change()

    def _is_own_write(self, kind: str, obj: Json) -> bool:
        """Whether it may be what we are writing: the answer will tell whether it is."""
        key = key_of(obj)
        with self._lock:
            if kind != "MODIFIED" or key not in self._own_writes:
                return False
            self._own_writes[key] = version_of(obj)
            return True

    def _put(self, obj: Json, *, quiet: bool = False) -> bool:
        """Keep ``obj`` unless a newer one is held or it was deleted since."""
        key, version = key_of(obj), version_of(obj)
        with self._lock:
            current = self._objects.get(key)
            if current is not None and version_of(current) >= version:
                return False
            if max(self._buried.get(key, 0), self._aside.get(key, 0)) >= version:
                return False
            self._aside.pop(key, None)
            self._objects[key] = obj
            self.generation += 1
            self.notify("ADDED" if current is None else "MODIFIED", obj)
        return not quiet

    def _remove(self, obj: Json) -> bool:
        key, version = key_of(obj), version_of(obj)
        with self._lock:
            current = self._objects.get(key)
            self._aside.pop(key, None)
            # The answer of a slow write may arrive after the watch told of the deletion.
            self._buried[key] = version
            if len(self._buried) > BURIED:
                del self._buried[next(iter(self._buried))]
            self._departed[obj["metadata"]["uid"]] = obj
            if len(self._departed) > DEPARTED:
                del self._departed[next(iter(self._departed))]
            if current is None or version_of(current) > version:
                return False
            del self._objects[key]
            self.generation += 1
            self.notify("DELETED", obj)
        return True

    def _touch(self) -> None:
        self._in_touch_at = time.monotonic()


def _sever(stream: Stream) -> None:
    """End a read that blocks in another thread."""
    try:
        stream.sever()
    except (OSError, ValueError):
        log.debug("the watch is closed already")
