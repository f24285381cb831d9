"""Which processes there are: each writes down that it lives, and pages read who has fallen silent."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.utils import timezone

from scheduling.models import Process, Role
from scheduling.services.worker.allocator import give_back
from scheduling.services.worker.spending import Meter

log = logging.getLogger(__name__)

EVERY_S = 10.0
LOST_S = 35.0
"""Three beats, and a little for the clock of another machine."""
KEPT = timedelta(hours=24)
STOP_S = 2.0

Told = dict[str, Any]


def nothing() -> Told:
    return {}


class Heart:
    """Writes every ``EVERY_S`` seconds that this process lives in a role, from a thread of its own.

    ``held`` says what an engine worker holds of clusters at that moment; what the process spends goes along.
    """

    def __init__(self, role: Role, report: Callable[[], Told] = nothing) -> None:
        self.role = role
        self.host = socket.gethostname()
        self.name = f"{self.host}:{os.getpid()}"
        self._report = report
        self._began = timezone.now()
        self._meter = Meter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heart {role}", daemon=True)

    def start(self) -> Heart:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Beat no more; the row stays, and grows old."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_S)

    def leave(self) -> None:
        """Beat no more and take the row away: the process ends as it should."""
        self.stop()
        _trying(self._forget)

    def is_dead(self) -> bool:
        """Whether its thread ended by a fault, not by ``stop``."""
        return not self._stop.is_set() and not self._thread.is_alive()

    def beat(self) -> None:
        """Write it down once. Raises what the database raises."""
        values = {"seen_at": timezone.now(), "held": self._report(), "began_at": self._began}
        values |= self._meter.read()
        found = Process.objects.filter(role=self.role, name=self.name)
        if not found.update(**values):
            Process.objects.create(role=self.role, name=self.name, host=self.host, **values)
            _forget_old()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                _trying(self.beat)
                give_back()
                self._stop.wait(EVERY_S)
        finally:
            connection.close()

    def _forget(self) -> None:
        Process.objects.filter(role=self.role, name=self.name).delete()


def _trying(act: Callable[[], None]) -> None:
    """A database that is away ends no process; the next beat tries again, on a connection of its own."""
    try:
        act()
    except Error as error:
        log.warning("heartbeat: %s", error)
        connection.close()


def _forget_old() -> None:
    Process.objects.filter(seen_at__lt=timezone.now() - KEPT).delete()


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process and whether it was heard of lately."""

    process: Process
    alive: bool


def standings(now: datetime | None = None) -> list[ProcessState]:
    """Every process that lives, and those that fell silent and were replaced by none. One query."""
    now = now or timezone.now()
    rows = list(Process.objects.order_by("role", "began_at"))
    lost = now - timedelta(seconds=LOST_S)
    every = [ProcessState(row, row.seen_at >= lost) for row in rows]
    return [one for one in every if one.alive or not _is_replaced(one.process, rows)]


def _is_replaced(silent: Process, rows: Iterable[Process]) -> bool:
    """Whether one of its role began, on its host or any other, after it was last heard of."""
    return any(
        row.role == silent.role and row.pk != silent.pk and row.began_at > silent.seen_at
        for row in rows
    )


def missing(standings: Sequence[ProcessState]) -> list[Role]:
    """The roles in which nobody lives, without one that is filled when it has something to do."""
    alive = {one.process.role for one in standings if one.alive}
    if settings.WEIR_BROKER_FOLDER:
        alive.add(Role.STUDY)
    return [role for role in Role if role not in alive]
