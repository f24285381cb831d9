"""All lanes served by threads of this process, for tests that look at what they do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celery.worker import state

from scheduling.models import Role
from scheduling.services.worker import cluster_turns, hearts, parts
from scheduling.services.worker.names import GENERAL, STUDIES
from scheduling.services.worker.parts import START_S, Controller, beating, end

THREADS = 4
JOIN_S = 10.0


@contextmanager
def embedded_worker() -> Iterator[None]:
    """Workers and beat, once they consume."""
    state.should_stop = None
    lanes = [GENERAL, STUDIES, *parts.engine_queues()]
    worker = Controller(parts.app(), lanes, THREADS)
    thread = threading.Thread(target=worker.start, name="celery worker", daemon=True)
    thread.start()
    assert worker.consuming.wait(START_S), "it reached no broker"
    try:
        with beating(parts.app()):
            yield
    finally:
        end()
        thread.join(JOIN_S)
        state.should_stop = None
        hearts.leave(*Role)
        cluster_turns.close_all()
