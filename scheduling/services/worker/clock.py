"""The clock of clusters, in the process that runs their cycles: no cycle waits for another process to ask."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Any

from celery import bootsteps
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from scheduling.models import Cluster, ClusterMode
from scheduling.services.worker.consuming import is_for_clusters, queue_of

log = logging.getLogger(__name__)

EVERY_S = 1.0
GUARD_EVERY_S, MEASURE_EVERY_S = 30.0, 15.0
EXPIRES_S = 5.0


class Clock:
    """Asks for cycles, guardrails and measures of the clusters whose lanes ``app`` consumes."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._last: dict[tuple[str, int], float] = {}
        """When each was asked for last, by task and cluster, in seconds of the process's clock."""

    def tick(self) -> None:
        """Ask for all that is due. One query."""
        consumed = set(self._app.amqp.queues.consume_from)
        rows = [c for c in Cluster.objects.all() if queue_of(c.name) in consumed]
        for cluster in rows:
            if cluster.mode != ClusterMode.PAUSED:
                self._plan(cluster)
                self._ask("guard", cluster, GUARD_EVERY_S)
            if cluster.metrics_url:
                self._ask("measure", cluster, MEASURE_EVERY_S)
        self._forget({row.pk for row in rows})

    def _plan(self, cluster: Cluster) -> None:
        since = cluster.planned_at
        gone_s = (timezone.now() - since).total_seconds() if since else float("inf")
        # A tick may come a little before the interval is over.
        if gone_s > cluster.cycle_interval_s - EVERY_S / 2:
            self._ask("run_cycle", cluster, min(EXPIRES_S, cluster.cycle_interval_s), "timer")

    def _ask(self, task: str, cluster: Cluster, every_s: float, *more: str) -> None:
        now_s = time.monotonic()
        if now_s - self._last.get((task, cluster.pk), float("-inf")) < every_s:
            return
        self._app.send_task(
            f"scheduling.tasks.{task}",
            args=[cluster.pk, *more],
            queue=queue_of(cluster.name),
            expires=max(EXPIRES_S, every_s),
            retry=False,  # the next tick asks again
        )
        self._last[task, cluster.pk] = now_s

    def _forget(self, pks: Collection[int]) -> None:
        self._last = {key: at for key, at in self._last.items() if key[1] in pks}


class ClusterClock(bootsteps.StartStopStep):
    """A step of the consumer of a worker that consumes lanes of clusters."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **_: Any) -> None:
        self._timer: Any = None

    def include_if(self, parent: Any) -> bool:
        return is_for_clusters(parent.app.amqp.queues.consume_from)

    def start(self, parent: Any) -> None:
        self._timer = parent.timer.call_repeatedly(EVERY_S, tick, (Clock(parent.app),))

    def stop(self, parent: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()


def tick(clock: Clock) -> None:
    close_old_connections()  # no request ends here that would do it
    try:
        clock.tick()
    except DatabaseError as error:
        log.warning("clusters cannot be read, nothing is asked for: %s", error)
    except Exception as error:
        log.warning("the broker takes no messages, nothing is asked for: %s", error)
