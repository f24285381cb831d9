"""How many tasks wait in each Celery queue, and when a worker last took one out: written down by a
heartbeat, so that no page waits for a broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celery import current_app
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.models import Cluster, Lane, Role
from scheduling.services.worker.consuming import queue_of
from scheduling.services.worker.names import GENERAL, STUDIES

ASK_S = 1.0
"""The general worker waits no longer for a broker that does not answer."""
MEANING_OF_DEFAULT = "roll-ups, forecasts, alerts and notices"
MEANING_OF_STUDIES = "what-ifs, experiments, capacity and learning"
MEANING_OF_CLUSTER = "cycles and guardrails of this cluster"


@dataclass(frozen=True, slots=True)
class LaneNow:
    """``waiting`` is None where the broker did not answer, ``asked_at`` where nobody asked it yet."""

    name: str
    what: str
    role: Role
    """Of the processes that serve it."""
    waiting: int | None
    asked_at: datetime | None
    served_at: datetime | None


def lanes_of(cluster: Cluster) -> list[LaneNow]:
    """The lanes that a cluster needs, as they were written down. One query."""
    wanted = {
        queue_of(cluster.name): (MEANING_OF_CLUSTER, Role.ENGINE),
        GENERAL: (MEANING_OF_DEFAULT, Role.WORKER),
        STUDIES: (MEANING_OF_STUDIES, Role.STUDY),
    }
    rows = {lane.name: lane for lane in Lane.objects.filter(name__in=wanted)}
    return [_now(name, *known, rows.get(name)) for name, known in wanted.items()]


def _now(name: str, what: str, role: Role, row: Lane | None) -> LaneNow:
    if row is None:
        return LaneNow(name, what, role, None, None, None)
    return LaneNow(name, what, role, row.waiting, row.asked_at, row.served_at)


def measure() -> list[str]:
    """Ask the broker how much waits in every lane and write it down; the names of the lanes. For a worker of
    the general one, which is served then."""
    names = [GENERAL, STUDIES, *map(queue_of, Cluster.objects.values_list("name", flat=True))]
    waiting = _waiting(names)
    now = timezone.now()
    for name in names:
        values = {"waiting": waiting.get(name), "asked_at": now}
        Lane.objects.update_or_create(name=name, defaults=values)
    Lane.objects.exclude(name__in=names).delete()
    serve(GENERAL)
    return names


def is_on_demand(name: str) -> bool:
    """Whether who serves the lane comes only when something waits in it: a heartbeat would keep it there."""
    return bool(settings.WEIR_BROKER_FOLDER) and name == STUDIES


def attended(names: Iterable[str]) -> list[str]:
    """Those of ``names`` that another worker serves all the time."""
    return [name for name in names if name != GENERAL and not is_on_demand(name)]


def serve(name: str) -> None:
    """A worker took a heartbeat out of the lane."""
    Lane.objects.filter(name=name).update(served_at=timezone.now())


def _waiting(names: Iterable[str]) -> dict[str, int]:
    try:
        with current_app.connection_for_read(connect_timeout=ASK_S) as connection:
            connection.ensure_connection(max_retries=1, timeout=ASK_S)
            absent = tuple(connection.channel_errors)
            return {name: _in(connection.default_channel, name, absent) for name in names}
    except (OperationalError, OSError):
        return {}


def _in(channel: Any, name: str, absent: tuple[type[Exception], ...]) -> int:
    """``absent`` is raised for a queue that was never written to, or, in Redis, is empty."""
    try:
        declared = channel.queue_declare(queue=name, passive=True)
    except absent:
        return 0
    return int(declared.message_count)
