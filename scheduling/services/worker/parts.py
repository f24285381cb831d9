"""What runs beside the portal where one command serves everything, each a process of its own.

Deployments run ``celery worker`` and ``celery beat`` instead, on the same lanes. The engine's process runs
cycles and what needs their mirrors, and beats; everything else has the lowest priority, so that a cycle
waits for none.
"""

from __future__ import annotations

import mmap
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from celery import Celery, beat, current_app
from celery.worker import WorkController, state
from django.conf import settings

from scheduling.models import Cluster
from scheduling.services.worker import broker, cluster_turns
from scheduling.services.worker.children import ChildPart
from scheduling.services.worker.consuming import is_served, queue_of
from scheduling.services.worker.names import CLUSTERS, GENERAL, NICE, STUDIES
from scheduling.services.worker.priority import give_way
from scheduling.services.worker.spending import MIB, has_grown_by

THREADS = 2
"""Of the engine, so that a cluster that is slow delays no other."""
ALONE = 1
"""Of what gives way: a thread that hardly runs would keep the interpreter from one that writes."""
IDLE_S = 30.0
"""After so long without anything to do the process of studies ends; what comes later starts another."""
MOST_GROWTH = 96 * MIB
"""Beyond what it starts with; then the worker ends between two tasks, and another is forked in its place."""
FIRST = ("request_studies", "request_learning", "request_predictions")
"""Asked for at the start, in this order."""
_studies = mmap.mmap(-1, 1)
"""1 while their process is there, for all who were forked from here."""


def parts() -> list[ChildPart]:
    """All that share the broker's folder; where it is none, workers are started otherwise."""
    messages = Path(settings.WEIR_BROKER_FOLDER)
    messages.mkdir(parents=True, exist_ok=True)
    broker.give_back(messages)
    gone = partial(broker.give_back, messages)
    return [
        ChildPart("engine", engine, gone=gone),
        ChildPart("worker", worker, gone=gone),
        ChildPart(
            "studies", partial(study, messages), gone=partial(_no_study, messages),
            is_wanted=lambda: bool(broker.waiting(messages, STUDIES)),
        ),
    ]  # fmt: skip


def load() -> None:
    """Import what the parts share, before they are forked: it is in memory once then."""
    app().loader.import_default_modules()
    from datetime import UTC, datetime

    from scheduling.engine import GpuClass, Snapshot, plan

    plan(Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), gpu_classes=(GpuClass("gpu"),)))


def app() -> Celery:
    found: Celery = current_app._get_current_object()
    return found


def engine_queues() -> list[str]:
    """Those of the clusters that are there and of this process; the worker follows them from here."""
    names = Cluster.objects.values_list("name", flat=True)
    return [CLUSTERS, *map(queue_of, filter(is_served, names))]


def engine() -> None:
    """It beats too: beat forgets when it asked for what, so a process that is renewed would never ask for
    what is due once an hour."""
    give_way(NICE[CLUSTERS])
    for first in FIRST:
        app().send_task(f"scheduling.tasks.{first}")
    with beating(app()):
        consume(app(), engine_queues(), THREADS)


def worker() -> None:
    give_way(NICE[GENERAL])
    with ending_when_idle(0.0, has_grown_by(MOST_GROWTH)):
        consume(app(), [GENERAL], ALONE)


def are_studies_on(messages: Path) -> bool:
    """Whether their process is there or has something to begin for."""
    return bool(_studies[0]) or bool(broker.waiting(messages, STUDIES))


def _no_study(messages: Path, pid: int) -> None:
    _studies[0] = 0
    broker.give_back(messages, pid)


def study(messages: Path) -> None:
    _studies[0] = 1
    give_way(NICE[STUDIES])
    with ending_when_idle(IDLE_S, lambda: not broker.waiting(messages, STUDIES)):
        consume(app(), [STUDIES], ALONE)


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
        cluster_turns.close_all()


def end() -> None:
    """Let what runs end, then the worker. Safe in a signal handler."""
    cluster_turns.leave_all()
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
        while not stop.wait(IDLE_LOOK_S):
            rests = not state.requests and is_idle()
            idle_s = idle_s + IDLE_LOOK_S if rests else 0.0
            if rests and idle_s >= after_s:
                state.should_stop = 0
                return

    threading.Thread(target=watch, name="idle", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
