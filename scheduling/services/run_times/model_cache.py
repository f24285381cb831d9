"""The model that serves a cluster, in the memory of the process, kept up with what has ended since."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from scheduling.models import Cluster, Predictor
from scheduling.prediction import storage
from scheduling.prediction.learner import Models

from .learning import ended
from .runs import run_of

_loaded: dict[int, tuple[int, Models, tuple[datetime, int]]] = {}
"""By cluster: the version in memory and up to which end it has heard."""
_lock = threading.Lock()


@contextmanager
def models_of(cluster: Cluster, predictor: Predictor, now: datetime) -> Iterator[Models]:
    """The models of ``predictor``, for one thread at a time."""
    with _lock:
        yield _caught_up(cluster, predictor, now)


def _caught_up(cluster: Cluster, predictor: Predictor, now: datetime) -> Models:
    version, models, heard = _loaded.get(cluster.pk, (-1, Models(), (now, 0)))
    if version != predictor.pk:
        models, heard = storage.load(bytes(predictor.state)), (predictor.window_to, 0)
    new = ended(cluster).filter(finished_at__gte=heard[0], finished_at__lte=now)
    for row in new.order_by("finished_at", "pk"):
        if row.finished_at is None or (row.finished_at, row.pk) <= heard:
            continue
        if row.finished_at > predictor.window_to and (run := run_of(row)) is not None:
            models.history.learn(run)
            models.submissions.end(run.work)
        heard = (row.finished_at, row.pk)
    _loaded[cluster.pk] = (predictor.pk, models, heard)
    return models
