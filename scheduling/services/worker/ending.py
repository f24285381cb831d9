"""How a Celery worker ends on SIGTERM: cycles that run hurry, leases are given back, and a cluster that does
not answer keeps nobody."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_shutdown, worker_shutting_down

from scheduling.services.worker import held


@worker_shutting_down.connect
def hurry(**_: Any) -> None:
    held.leave_all()


@worker_shutdown.connect
def let_go(**_: Any) -> None:
    held.close_all()
