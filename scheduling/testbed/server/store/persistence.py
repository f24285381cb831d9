"""Objects on disk: an SQLite file written behind, so that a second start goes on where the first ended."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from scheduling.testbed.server.kinds.clock import Clock
from scheduling.testbed.server.kinds.resources import BY_PATH, DEFINITIONS, Json, Resource

from .custom import described
from .store import Event, Key, Record, Store

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    api TEXT, plural TEXT, namespace TEXT, name TEXT, version INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (api, plural, namespace, name)
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value REAL NOT NULL);
"""
_UPSERT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM objects WHERE api = ? AND plural = ? AND namespace = ? AND name = ?"
_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"

_UNSEEN = 100_000
"""Versions skipped at a start: more than any half second that a crash may have lost can use up,
so that no version a client has seen is given out again."""


class Journal:
    """Writes changed objects to a file, in batches, from its own thread."""

    def __init__(self, path: Path, store: Store, clock: Clock, every_s: float = 0.5) -> None:
        self._store = store
        self._clock = clock
        self._every_s = every_s
        self._dirty: dict[Key, Record | None] = {}
        self._stop = threading.Event()
        self._writing = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, check_same_thread=False)
        self._database.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + _SCHEMA
        )
        self._thread = threading.Thread(target=self._run, name="weir-journal", daemon=True)

    def restore(self) -> bool:
        """Load what an earlier run left, and its time; return whether there was anything."""
        facts = dict(self._database.execute("SELECT name, value FROM facts"))
        if "version" not in facts:
            return False
        rows = list(self._saved())
        with self._store.lock:
            self._store.load(rows, int(facts["version"]) + _UNSEEN)
        self._clock.not_before(facts["now"])
        return True

    def _saved(self) -> Iterator[tuple[Resource, Json, int]]:
        rows = self._database.execute(
            "SELECT api, plural, version, body FROM objects ORDER BY plural = ? DESC, version",
            (DEFINITIONS.plural,),
        )
        definitions: dict[str, Json] = {}
        for api, plural, version, body in rows:
            group, _, api_version = api.rpartition("/")
            resource = BY_PATH.get((group, api_version, plural))
            if resource is DEFINITIONS:
                definition = json.loads(body)
                definitions[definition["metadata"]["name"]] = definition
            elif resource is None and (made := definitions.get(f"{plural}.{group}")):
                resource = described(made, api_version)
            if resource is not None:
                yield resource, json.loads(body), version

    def start(self) -> None:
        """Begin to write whatever changes from now on."""
        with self._store.lock:
            self._store.listen(self._notice)
        self._thread.start()

    def stop(self) -> None:
        """Write the rest and close the file."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self.flush()
        self._database.close()

    def _notice(self, event: Event) -> None:
        self._dirty[event.record.key] = None if event.type == "DELETED" else event.record

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self.flush()

    def flush(self) -> None:
        """Write what has changed since the last time, in one transaction."""
        with self._writing:
            with self._store.lock:
                changed, self._dirty = self._dirty, {}
                version, now = self._store.version, self._clock.seconds()
            with self._database:
                self._write(changed)
                self._database.executemany(_FACT, [("version", version), ("now", now)])

    def _write(self, changed: dict[Key, Record | None]) -> None:
        gone = [_place(key) for key, record in changed.items() if record is None]
        kept = [
            (*_place(key), record.version, record.raw)
            for key, record in changed.items()
            if record is not None
        ]
        self._database.executemany(_DELETE, gone)
        self._database.executemany(_UPSERT, kept)


def _place(key: Key) -> tuple[str, str, str, str]:
    resource, namespace, name = key
    return resource.group_version, resource.plural, namespace, name
