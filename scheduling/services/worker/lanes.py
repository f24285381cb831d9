"""How many tasks wait in each Celery queue that a cluster needs, where the broker can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from celery import current_app
from kombu.exceptions import OperationalError

from scheduling.models import Cluster
from scheduling.services.worker.consuming import queue_of
from scheduling.services.worker.embedded import DEFAULT_QUEUE

ASK_S = 1.0
"""A page waits no longer for a broker that does not answer."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A Celery queue; ``waiting`` is None where the broker does not answer."""

    name: str
    what: str
    waiting: int | None


def lanes_of(cluster: Cluster) -> list[Lane]:
    wanted = {
        queue_of(cluster.name): "cycles and guardrails of this cluster",
        DEFAULT_QUEUE: "roll-ups, forecasts, what-ifs and the clock of all clusters",
    }
    waiting = _waiting(wanted)
    return [Lane(name, what, waiting.get(name)) for name, what in wanted.items()]


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
