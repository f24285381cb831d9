"""Objects on disk: each change is in an SQLite file before anybody is told of it.

A process that is killed loses nothing that it answered; a machine without power may lose the last moments
(``synchronous=NORMAL``), as a demo may.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from workshop.testbed.server.kinds.clock import Clock
from workshop.testbed.server.kinds.errors import ApiError
from workshop.testbed.server.kinds.resources import BY_PATH, DEFINITIONS, Json, Resource

from .custom import described
from .store import Key, Record, Store

log = logging.getLogger(__name__)

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
"""Versions skipped at a start: more than the last moments before a loss of power can use up, so that no
version a client has seen is given out again."""
_PATIENCE_S = 1.0
"""How long a write waits for another program that locks the file; all other requests wait with it."""


class Journal:
    """What the store holds, in a file. Everything in it happens under the store's lock."""

    def __init__(self, path: Path, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            path, timeout=_PATIENCE_S, check_same_thread=False, isolation_level=None
        )
        self._database.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + _SCHEMA
        )

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
            self._store.keep = self._keep

    def stop(self) -> None:
        """Write the time and close the file; what changes later is kept in memory alone."""
        with self._store.lock:
            self._store.keep = lambda key, record: None
            try:
                self._database.executemany(_FACT, self._facts())
            except sqlite3.Error:
                log.warning("the time at the end is not written", exc_info=True)
            self._database.close()

    def _keep(self, key: Key, record: Record | None) -> None:
        """One change in one transaction. Raises ApiError, and nothing has changed then."""
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                if record is None:
                    self._database.execute(_DELETE, _place(key))
                else:
                    self._database.execute(_UPSERT, (*_place(key), record.version, record.raw))
                self._database.executemany(_FACT, self._facts())
        except sqlite3.Error as error:
            raise _refusal(error) from error

    def _facts(self) -> list[tuple[str, float]]:
        return [("version", self._store.version), ("now", self._clock.seconds())]


def _refusal(error: sqlite3.Error) -> ApiError:
    busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )
    if busy:
        message = "the cluster's file is locked by another program: nothing was changed"
        return ApiError(503, "ServiceUnavailable", message, retry_after=1)
    message = (
        f"the cluster's file takes no more ({error}): nothing was changed; make room on its disk"
    )
    return ApiError(507, "InsufficientStorage", message)


def _place(key: Key) -> tuple[str, str, str, str]:
    resource, namespace, name = key
    return resource.group_version, resource.plural, namespace, name
