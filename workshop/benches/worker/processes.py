"""What a process and all that it started took, read from Linux' own books."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
LOOK_EVERY_S = 0.5
USER, CHILDREN_SYSTEM, SESSION = 11, 14, 3
"""Fields of /proc/PID/stat behind the name; user, system, and those of children that were waited for."""


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
        ticks = (sum(map(int, fields[USER : CHILDREN_SYSTEM + 1])) for _, fields in self._members())
        return sum(ticks) * TICK_S

    def take_peak_mib(self) -> float:
        """The most since this was last asked."""
        most, self._most = self._most, 0.0
        return max(most, self._memory_mib())

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self._most = max(self._most, self._memory_mib())

    def _memory_mib(self) -> float:
        return sum(map(_pss_kib, (pid for pid, _ in self._members()))) / 1024

    def _members(self) -> Iterator[tuple[int, list[str]]]:
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[SESSION]) == self._leader:
                    yield int(folder.name), fields


def _pss_kib(pid: int) -> int:
    """Nothing of a process that has ended meanwhile."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
