"""What a process and all that it started took."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil

from scheduling.services.worker.spending import MIB, ProcessUse, each

LOOK_EVERY_S = 0.5


class Watch:
    """The processes of one session, by the process that leads it: CPU so far, and the most memory at once
    (proportional set size), looked at every half second until ``stop``."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._over = threading.Event()
        self._most = 0.0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def cpu_s(self) -> float:
        """Of all that live and of the children that they waited for."""
        return self._spent().cpu_s

    def take_peak_mib(self) -> float:
        """The most since the last call."""
        most, self._most = self._most, 0.0
        return max(most, self._spent().memory / MIB)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self._most = max(self._most, self._spent().memory / MIB)

    def _spent(self) -> ProcessUse:
        return sum((one for _, one in each(self._members())), ProcessUse())

    def _members(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(OSError):
                if os.getsid(process.pid) == self._leader:
                    yield process
