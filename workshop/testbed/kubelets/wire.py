"""The kubelet's writes as requests: decided at once, sent by a few threads, one pod's in order."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduling.cluster.connection.client import ApiError, Client, ConflictError, NotFoundError
from workshop.testbed.server.kinds.resources import Json, Resource
from workshop.testbed.server.store.store import Key, Record

from .shadow import Feed

log = logging.getLogger(__name__)

THREADS = 4


@dataclass(frozen=True, slots=True)
class Write:
    """One write and the resource whose copy takes in the answer."""

    method: str
    path: str
    body: Json
    resource: Resource


class WireScribe:
    """Notes what a reconcile writes; ``take`` hands it over."""

    def __init__(self) -> None:
        self._noted: list[Write] = []

    def take(self) -> list[Write]:
        noted, self._noted = self._noted, []
        return noted

    def status(self, record: Record, status: Json) -> Record:
        """A status made from an old version is refused: others write conditions there as well."""
        if record.body.get("status") == status:
            return record
        body = {"metadata": _precondition(record), "status": status}
        self._note("PATCH", record, body, "/status")
        return Record(record.resource, {**record.body, "status": status}, record.version)

    def annotate(self, record: Record, name: str, value: str) -> Record:
        body = {"metadata": {"uid": record.uid, "annotations": {name: value}}}
        self._note("PATCH", record, body)
        return record

    def remove(self, pod: Record) -> None:
        if pod.body["metadata"].get("deletionGracePeriodSeconds") == 0:
            return  # asked for before; a finalizer holds it
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        self._note("DELETE", pod, options)

    def _note(self, method: str, record: Record, body: Json, sub: str = "") -> None:
        self._noted.append(Write(method, path_of(record) + sub, body, record.resource))


class Post:
    """Sends the requests of one key in order, those of different keys side by side."""

    def __init__(self, client: Client, feeds: Mapping[Resource, Feed]) -> None:
        self._client = client
        self._feeds = feeds
        self._letters: queue.SimpleQueue[tuple[Key, list[Write], Callable[[bool], None]] | None]
        self._letters = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"kubelet-{n}", daemon=True)
            for n in range(THREADS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for _ in self._threads:
            self._letters.put(None)

    def send(self, key: Key, requests: list[Write], done: Callable[[bool], None]) -> None:
        """Send, then call ``done`` with whether all was written; a refusal leaves out the rest."""
        self._letters.put((key, requests, done))

    def _run(self) -> None:
        while (letter := self._letters.get()) is not None:
            key, requests, done = letter
            done(self._sent(key, requests))

    def _sent(self, key: Key, requests: list[Write]) -> bool:
        try:
            for request in requests:
                self._send(request)
        except (ConflictError, NotFoundError):
            return False  # the watch brings what happened
        except ApiError as error:
            log.warning("%s/%s: %s", key[1], key[2], error)
            return False
        return True

    def _send(self, request: Write) -> None:
        body = self._client.request(request.method, request.path, body=request.body)
        if body.get("kind") == request.resource.kind and request.method == "PATCH":
            self._feeds[request.resource].absorb(body)


def path_of(record: Record) -> str:
    """The object's own URL."""
    resource = record.resource
    root = f"/apis/{resource.group_version}" if resource.group else f"/api/{resource.version}"
    scope = f"/namespaces/{record.namespace}" if record.namespace else ""
    return f"{root}{scope}/{resource.plural}/{record.name}"


def _precondition(record: Record) -> Json:
    return {"uid": record.uid, "resourceVersion": record.body["metadata"]["resourceVersion"]}
