"""The broker of one process: kombu's in memory, whose consumers are woken where kombu's look at intervals.

Looking a hundred times a second takes a twentieth of a core, and a cycle still waits for the next look.
"""

from __future__ import annotations

import threading
import time
from queue import Empty
from typing import Any

from kombu.transport import memory

LOOK_EVERY_S = 1.0
"""The longest a consumer waits without a look, should it be told of nothing."""


class _News:
    """Counts what consumers may have to look for, so that none is missed between a look and a wait."""

    def __init__(self) -> None:
        self._came = threading.Condition()
        self.number = 0

    def tell(self) -> None:
        with self._came:
            self.number += 1
            self._came.notify_all()

    def wait_after(self, number: int, timeout_s: float) -> None:
        with self._came:
            self._came.wait_for(lambda: self.number != number, timeout_s)


NEWS = _News()


class Channel(memory.Channel):
    """Tells of every message, and of every answer to one: it makes room for the next."""

    def _put(self, queue: str, message: Any, **options: Any) -> None:
        super()._put(queue, message, **options)  # type: ignore[no-untyped-call] # kombu's
        NEWS.tell()

    def basic_ack(self, delivery_tag: Any, multiple: bool = False) -> None:
        super().basic_ack(delivery_tag, multiple=multiple)  # type: ignore[no-untyped-call] # kombu's
        NEWS.tell()

    def basic_reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        super().basic_reject(delivery_tag, requeue=requeue)  # type: ignore[no-untyped-call] # kombu's
        NEWS.tell()


class Transport(memory.Transport):
    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver one message. Raises TimeoutError when none came in ``timeout`` seconds (None: never)."""
        cycle: Any = self.cycle
        until = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            number = NEWS.number
            try:
                cycle.get(self._deliver, timeout=timeout)
                return
            except Empty:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError from None
                NEWS.wait_after(number, min(left_s, LOOK_EVERY_S))
