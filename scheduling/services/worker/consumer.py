"""A Celery worker in this process: with beat, without, or until it has had nothing to do for a while."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from celery import Celery, beat
from celery.worker import WorkController, state

from scheduling.services.worker import held

START_S = 20.0
IDLE_LOOK_S = 2.0


class Controller(WorkController):
    """A worker that says when it consumes and leaves the process's signals and logging alone."""

    def __init__(self, app: Celery, queues: Sequence[str], threads: int) -> None:
        self.consuming = threading.Event()
        super().__init__(
            app=app,
            pool="threads",
            concurrency=threads,
            queues=list(queues),
            loglevel="WARNING",
            without_heartbeat=True,
            without_gossip=True,
            without_mingle=True,
        )

    def on_consumer_ready(self, consumer: object) -> None:
        self.consuming.set()


def consume(app: Celery, queues: Sequence[str], threads: int) -> None:
    """Consume in this thread, which is the main one, until SIGTERM; leases are given back."""
    signal.signal(signal.SIGTERM, lambda *_: end())
    state.should_stop = None
    try:
        Controller(app, queues, threads).start()
    finally:
        held.close_all()


def end() -> None:
    """Let what runs end, then the worker. Safe in a signal handler."""
    held.leave_all()
    state.should_stop = 0


@contextmanager
def beating(app: Celery) -> Iterator[None]:
    """Beat in a thread of its own."""
    ticker: Any = beat.EmbeddedService(app, thread=True, scheduler_cls=beat.Scheduler)
    ticker.start()
    try:
        yield
    finally:
        ticker.stop()


@contextmanager
def ending_when_idle(after_s: float, is_idle: Callable[[], bool]) -> Iterator[None]:
    """End the worker of this process once nothing runs, and ``is_idle`` holds, for ``after_s`` seconds."""
    stop = threading.Event()

    def watch() -> None:
        idle_s = 0.0
        while idle_s < after_s and not stop.wait(IDLE_LOOK_S):
            rests = is_idle() and not state.requests
            idle_s = idle_s + IDLE_LOOK_S if rests else 0.0
        state.should_stop = 0

    threading.Thread(target=watch, name="idle", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
