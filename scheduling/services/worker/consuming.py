"""Which queues a Celery worker consumes: those of clusters that are there now, without a restart.

A worker that is told to consume ``clusters`` takes that of every cluster, or of those that the settings
name for this process, of new ones within seconds, and lets go of a cluster that is gone. One that is told
``cluster-NAME`` serves that cluster alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from celery import bootsteps
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from scheduling.models import Cluster
from scheduling.services.worker.cluster_turns import close_others
from scheduling.services.worker.names import CLUSTERS

log = logging.getLogger(__name__)

PREFIX = "cluster-"
EVERY_S = 3.0


def is_for_clusters(queues: Iterable[str]) -> bool:
    """Whether who consumes ``queues`` runs cycles."""
    return any(name == CLUSTERS or name.startswith(PREFIX) for name in queues)


def queue_of(cluster_name: str) -> str:
    """The Celery queue that the cluster's cycles wait in."""
    return f"{PREFIX}{cluster_name}"


def is_served(name: str) -> bool:
    """Whether this process runs the cycles of the cluster of this name."""
    named = settings.WEIR_ENGINE_CLUSTERS
    return not named or name in named


class ClusterQueues(bootsteps.StartStopStep):
    """A step of the worker's consumer that follows the table of clusters."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **_: Any) -> None:
        self._timer: Any = None

    def include_if(self, parent: Any) -> bool:
        return CLUSTERS in parent.app.amqp.queues.consume_from

    def start(self, parent: Any) -> None:
        # At once, too: the lease of a killed process is looked at from then on.
        parent.timer.call_after(0, _tick, (parent,))
        self._timer = parent.timer.call_repeatedly(EVERY_S, _tick, (parent,))

    def stop(self, parent: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _tick(consumer: Any) -> None:
    close_old_connections()  # no request ends here that would do it
    follow(consumer)


def follow(consumer: Any) -> None:
    """Bring what ``consumer`` consumes into line with the clusters there are.

    May be called from a timer's thread; the consumer changes its queues itself, between two messages.
    """
    try:
        rows = Cluster.objects.values_list("pk", "name")
        clusters = {pk: name for pk, name in rows if is_served(name)}
    except DatabaseError as error:
        log.warning("clusters cannot be read, queues stay as they are: %s", error)
        return
    wanted = {queue_of(name) for name in clusters.values()}
    queues = {name for name in consumer.app.amqp.queues.consume_from if name.startswith(PREFIX)}
    for name in sorted(wanted - queues):
        consumer.call_soon(consumer.add_task_queue, name)
    for name in sorted(queues - wanted):
        consumer.call_soon(consumer.cancel_task_queue, name)
    close_others(clusters.keys())
