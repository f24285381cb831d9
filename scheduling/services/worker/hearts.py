"""Where hearts begin to beat: the steps and signals of Celery's processes. The web server has its own.

On SIGTERM cycles that run hurry, leases are given back, and a cluster that does not answer keeps nobody.
"""

from __future__ import annotations

import atexit
from typing import Any

from celery import bootsteps
from celery.signals import beat_init, worker_shutdown, worker_shutting_down

from scheduling.models import Role
from scheduling.services.worker import cluster_turns
from scheduling.services.worker.consuming import is_for_clusters
from scheduling.services.worker.names import GENERAL, STUDIES
from scheduling.services.worker.processes import Heart, nothing

_hearts: dict[Role, Heart] = {}


def begin(role: Role) -> None:
    """Beat in ``role`` until the process ends or leaves it."""
    if former := _hearts.pop(role, None):
        former.stop()
    report = cluster_turns.as_json if role == Role.ENGINE else nothing
    _hearts[role] = Heart(role, report).start()


def roles() -> list[Role]:
    """Those in which a heart beats here."""
    return list(_hearts)


def stopped() -> list[Role]:
    """Those whose heart ended by itself: the process no longer says that it lives."""
    return [role for role, heart in list(_hearts.items()) if heart.is_dead()]


def leave(*roles: Role) -> None:
    for role in roles:
        if heart := _hearts.pop(role, None):
            heart.leave()


class HeartbeatStep(bootsteps.StartStopStep):
    """A step of the worker's consumer: it lives while it consumes, in the role that its queues say."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        for role in roles_of(parent.app.amqp.queues.consume_from):
            begin(role)

    def stop(self, parent: Any) -> None:
        for role in roles_of(parent.app.amqp.queues.consume_from):
            if heart := _hearts.get(role):
                heart.stop()


def roles_of(queues: Any) -> list[Role]:
    """What a worker that consumes ``queues`` is."""
    names = list(queues)
    found = []
    if is_for_clusters(names):
        found.append(Role.ENGINE)
    if GENERAL in names:
        found.append(Role.WORKER)
    if STUDIES in names:
        found.append(Role.STUDY)
    return found


@beat_init.connect
def _begin_beat(**_: Any) -> None:
    begin(Role.BEAT)


@worker_shutdown.connect
def _leave_worker(**_: Any) -> None:
    leave(Role.ENGINE, Role.WORKER, Role.STUDY)


@atexit.register
def _leave_all() -> None:
    leave(*list(_hearts))


@worker_shutting_down.connect
def hurry(**_: Any) -> None:
    cluster_turns.leave_all()


@worker_shutdown.connect
def let_go(**_: Any) -> None:
    cluster_turns.close_all()
