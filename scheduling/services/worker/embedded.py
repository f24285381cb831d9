"""Celery workers and beat as threads of this process: what one command serves everything with.

Production runs ``celery worker`` and ``celery beat`` instead; the tasks are the same. Studies have a
worker of their own here as there, so that a cycle waits for none of them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from celery import Celery, beat, current_app
from celery.worker import WorkController, state

from scheduling.models import Cluster, Role
from scheduling.services.worker import hearts, held
from scheduling.services.worker.consuming import ALL_CLUSTERS, queue_of
from scheduling.services.worker.lanes import DEFAULT_QUEUE, STUDY_QUEUE

START_S = 20.0
THREADS = 2
"""Of each worker, so that a long roll-up delays no cycle, and one study no other."""
FIRST = (
    "request_cycles", "request_replays", "request_learning", "request_predictions", "request_capacity",
)  # fmt: skip
"""Asked for at the start, in this order: replays are fewer than the lives of a study of capacity."""


def queues() -> list[str]:
    """Every queue a worker for all clusters consumes; it follows the clusters from there."""
    names = Cluster.objects.values_list("name", flat=True)
    return [DEFAULT_QUEUE, ALL_CLUSTERS, *map(queue_of, names)]


@dataclass(slots=True)
class EmbeddedWorker:
    """Running threads: the workers and beat."""

    workers: tuple[threading.Thread, ...]
    beat: threading.Thread

    def stop(self, timeout_s: float = 10.0) -> None:
        """Let running tasks end, stop all threads, give the leases back."""
        held.leave_all()
        self.beat.stop()  # type: ignore[attr-defined] # celery's embedded service
        state.should_stop = 0
        for thread in self.workers:
            thread.join(timeout_s)
        state.should_stop = None
        hearts.leave(Role.BEAT, Role.ENGINE, Role.WORKER, Role.STUDY)
        held.close_all()


def start_embedded_worker(app: Celery | None = None) -> EmbeddedWorker:
    """Start all threads and return once the workers consume; asks for a first cycle at once.

    Call it from a command, never while Django starts. Raises TimeoutError when the broker cannot be reached.
    """
    app = app or current_app._get_current_object()
    state.should_stop = None
    workers = (
        _consuming(app, queues()),
        _consuming(_for_studies(app), [STUDY_QUEUE]),
    )
    ticker = beat.EmbeddedService(app, thread=True, scheduler_cls=beat.Scheduler)
    ticker.start()
    for first in FIRST:
        app.send_task(f"scheduling.tasks.{first}")
    return EmbeddedWorker(workers, ticker)


def _for_studies(app: Celery) -> Celery:
    """What is consumed is a Celery application's, not a worker's: a second worker needs a second one."""
    twin = Celery(f"{app.main}-studies", set_as_current=False)
    twin.config_from_object("django.conf:settings", namespace="CELERY")
    twin.steps["consumer"].add(hearts.Beating)
    return twin


def _consuming(app: Celery, consumed: list[str]) -> threading.Thread:
    """A worker in a thread, once it consumes."""
    worker = _Controller(
        app=app,
        pool="threads",
        concurrency=THREADS,
        queues=consumed,
        loglevel="WARNING",
        without_heartbeat=True,
        without_gossip=True,
        without_mingle=True,
    )
    thread = threading.Thread(target=worker.start, name="celery worker", daemon=True)
    thread.start()
    if not worker.consuming.wait(START_S):
        raise TimeoutError(f"the Celery worker reached no broker in {START_S:g} s")
    return thread


class _Controller(WorkController):
    """A worker that says when it consumes and leaves the process's signals and logging alone."""

    def __init__(self, **options: object) -> None:
        self.consuming = threading.Event()
        super().__init__(**options)

    def on_consumer_ready(self, consumer: object) -> None:
        self.consuming.set()


@contextlib.contextmanager
def embedded_worker(app: Celery | None = None) -> Iterator[EmbeddedWorker]:
    """``start_embedded_worker`` for a block of code."""
    running = start_embedded_worker(app)
    try:
        yield running
    finally:
        running.stop()
