"""The thread that submits a stream's arrivals when the cluster's clock reaches them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from django.db import DatabaseError, close_old_connections

from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import submit as workloads
from workshop.demo.cluster.furnish import SimulatedCluster
from workshop.demo.work.arrivals import Arrival

log = logging.getLogger(__name__)

SAVE_CLOCK_S = 1.0
LONGEST_NAP_S = 0.2
"""So that a stop is noticed soon, however far away the next arrival is."""
AGAIN_S = 2.0
LATER = frozenset({"no_answer", "no_connection", "no_space"})
"""Refusals that say nothing of the work itself: the arrival is sent again."""


class Stream:
    """Submits ``arrivals`` one by one; remembers in ``position`` which come next.

    A submission that was sent but not noted before a kill is sent again and answered with 409: the
    names of a stream's Jobs are its positions, so nothing arrives twice.
    """

    def __init__(
        self, played: SimulatedCluster, arrivals: Iterator[Arrival], position: Path
    ) -> None:
        self._played = played
        self._cluster: Cluster = played.cluster
        self._arrivals = arrivals
        self._position = position
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._submit_all, name="stream", daemon=True),
            threading.Thread(target=self._keep_clock, name="clock", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)

    def _submit_all(self) -> None:
        for arrival in self._arrivals:
            if not self._wait_until(arrival):
                return
            while not self._submitted(arrival):
                if self._stop.wait(AGAIN_S):
                    return

    def _wait_until(self, arrival: Arrival) -> bool:
        while not self._stop.is_set():
            delay = self._played.clock.real_delay(arrival.at.timestamp())
            if not delay:
                return True
            self._stop.wait(min(delay, LONGEST_NAP_S))
        return False

    def _submitted(self, arrival: Arrival) -> bool:
        """Whether the next one may come: this one was taken, or refused for what it is."""
        try:
            workloads.submit(self._cluster, manifest=arrival.manifest, user=arrival.user)
        except ServiceError as error:
            log.warning("arrival %s was refused: %s", arrival.number, error)
            if error.code in LATER:
                return False
        except DatabaseError as error:
            log.warning("arrival %s waits for the database: %s", arrival.number, error)
            return False
        finally:
            close_old_connections()
        return self._noted(arrival.number + 1)

    def _noted(self, number: int) -> bool:
        half = self._position.with_suffix(".half")
        try:
            half.write_text(str(number))
            half.replace(self._position)
        except OSError as error:
            log.warning("the position of the stream cannot be written: %s", error)
            return False
        return True

    def _keep_clock(self) -> None:
        while not self._stop.wait(SAVE_CLOCK_S):
            try:
                self._played.save_clock()
            except DatabaseError as error:
                log.warning("the clock cannot be written, and is again in a second: %s", error)
            finally:
                close_old_connections()


def next_position(path: Path) -> int:
    """Where a stream goes on: 0 for a new one."""
    return int(path.read_text() or 0) if path.exists() else 0
