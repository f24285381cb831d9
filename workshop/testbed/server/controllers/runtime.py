"""Runs the controllers: changed keys in, one reconcile each, timers in a heap.

Everything is level-triggered: a reconcile looks at what stands in the store, so it may run
twice or late, and a restart begins by queueing every object once.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from workshop.testbed.server.kinds.errors import ApiError
from workshop.testbed.server.kinds.resources import Resource
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""When a reconcile that a write refused is tried again; a full disk is nobody's fault in the cluster."""

After = Callable[[Key, float], None]
"""Ask to see a key again at an epoch second of the clock."""


class Controller(Protocol):
    """One loop of the control plane."""

    def keys(self, event: Event) -> Iterable[Key]:
        """Return the keys that `event` makes worth another look."""

    def reconcile(self, key: Key, after: After) -> None:
        """Bring the object under `key`, which may be gone, closer to what it should be."""


class Runtime:
    """The queue of all controllers. Everything in it happens under the store's lock."""

    def __init__(self, world: World, controllers: Iterable[Controller]) -> None:
        self._world = world
        self._controllers = list(controllers)
        self._queue: deque[tuple[int, Key]] = deque()
        self._queued: set[tuple[int, Key]] = set()
        self._timers: list[tuple[float, int, int, Key]] = []
        self._deadlines: dict[tuple[int, Key], float] = {}
        self._sequence = 0
        self.wake: Callable[[], None] = lambda: None
        """Called when there is work; must not run it in the same breath."""

    def start(self) -> None:
        """Queue everything that is there, then whatever changes."""
        with self._world.store.lock:
            for record in list(self._world.store.all_records()):
                self._notice(Event("ADDED", record, None))
            self._world.store.listen(self._notice)

    def next_due(self) -> float | None:
        """Return the epoch second of the next timer; the past if something is queued."""
        with self._world.store.lock:
            if self._queue:
                return float("-inf")
            return self._timers[0][0] if self._timers else None

    def run_due(self) -> None:
        """Reconcile until nothing is queued and no timer is due."""
        while self.run_for(3600.0):
            pass

    def run_for(self, budget_s: float) -> bool:
        """Reconcile for about `budget_s` wall seconds; return whether work is left."""
        end = time.monotonic() + budget_s
        with self._world.store.lock:
            self._ring()
            while self._queue:
                number, key = self._queue.popleft()
                self._queued.discard((number, key))
                self._reconcile(number, key)
                if time.monotonic() >= end:
                    break
                if not self._queue:
                    self._ring()
            return bool(self._queue)

    def _reconcile(self, number: int, key: Key) -> None:
        try:
            self._controllers[number].reconcile(key, lambda k, when: self._after(number, k, when))
        except ApiError as error:
            log.warning("reconcile of %s %s/%s: %s", key[0].plural, key[1], key[2], error)
            self._after(number, key, self._world.clock.seconds() + AGAIN_S)
        except Exception:  # a fault of one object must not stop the cluster
            log.exception("reconcile of %s %s/%s failed", key[0].plural, key[1], key[2])

    def _notice(self, event: Event) -> None:
        for number, controller in enumerate(self._controllers):
            for key in controller.keys(event):
                self._enqueue(number, key)

    def _enqueue(self, number: int, key: Key) -> None:
        if (number, key) not in self._queued:
            self._queued.add((number, key))
            self._queue.append((number, key))
            if len(self._queue) == 1:
                self.wake()

    def _after(self, number: int, key: Key, when: float) -> None:
        known = self._deadlines.get((number, key))
        if known is not None and known <= when:
            return
        self._deadlines[number, key] = when
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, number, key))
        if self._timers[0][0] == when:
            self.wake()

    def _ring(self) -> None:
        """Move timers that are due into the queue."""
        now = self._world.clock.seconds()
        while self._timers and self._timers[0][0] <= now:
            when, _, number, key = heapq.heappop(self._timers)
            if self._deadlines.get((number, key)) == when:
                del self._deadlines[number, key]
                self._enqueue(number, key)


def owner_of(record: Record, resource: Resource) -> tuple[Key, str] | None:
    """Return key and uid of the controller of `record` if that is a `resource`, else None."""
    for reference in record.body["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") == resource.kind:
            return (resource, record.namespace, reference["name"]), reference["uid"]
    return None
