"""Child processes that can be found again: a file each, with the process's id and its birth.

An id alone may have been given to another process since; together with the moment of birth it
cannot, so nothing foreign is ever ended. A starter that was killed leaves the files behind, and
whoever comes next ends what they name.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STOP_S = 10.0
"""Between the polite signal and the other one."""
_POLL_S = 0.02
_TAIL = 15


class ProcessDiedError(Exception):
    """A process ended by itself, with the last lines it logged."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process for ever: ids are used again, (id, birth) is not."""

    pid: int
    born: str

    @classmethod
    def of(cls, pid: int) -> Identity:
        return cls(pid, _birth(pid))

    @classmethod
    def read(cls, path: Path) -> Identity | None:
        try:
            pid, born = path.read_text().split()
        except (OSError, ValueError):
            return None
        return cls(int(pid), born)

    def write(self, path: Path) -> None:
        path.write_text(f"{self.pid} {self.born}\n")

    @property
    def is_alive(self) -> bool:
        return bool(self.born) and _birth(self.pid) == self.born

    def end(self, wait_s: float = STOP_S) -> None:
        """Ask it to stop; after ``wait_s`` it is not asked."""
        self.send(signal.SIGTERM)
        until = time.monotonic() + wait_s
        while self.is_alive and time.monotonic() < until:
            time.sleep(_POLL_S)
        self.send(signal.SIGKILL)
        while self.is_alive:
            time.sleep(_POLL_S)

    def send(self, number: int) -> None:
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Process:
    """One program with its arguments, its log and its identity in ``folder``."""

    def __init__(self, folder: Path, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._command = list(command)
        self._log = folder / f"{name}.log"
        self._file = folder / f"{name}.pid"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def identity(self) -> Identity | None:
        return Identity.read(self._file)

    @property
    def is_alive(self) -> bool:
        self._reap()
        identity = self.identity
        return identity is not None and identity.is_alive

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Run it in a session of its own, so that a Ctrl-C meant for the starter spares it."""
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(  # noqa: S603 - our own command line
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        Identity.of(self._child.pid).write(self._file)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it, however often it is called; ``number`` SIGKILL is a crash."""
        identity = self.identity
        if identity is not None:
            identity.send(number)
            self._reap()
            identity.end()
        self._reap()
        self._file.unlink(missing_ok=True)

    def check(self) -> None:
        """Raises ProcessDiedError if it has ended."""
        if not self.is_alive:
            raise ProcessDiedError(f"{self.name} ended by itself; its log says:\n{self.tail()}")

    def tail(self) -> str:
        try:
            return "\n".join(self._log.read_text(errors="replace").splitlines()[-_TAIL:])
        except OSError:
            return ""

    def _reap(self) -> None:
        if self._child is not None:
            self._child.poll()


def end_all(folder: Path) -> list[str]:
    """End whatever the files in ``folder`` name and still lives; return the names."""
    ended = []
    for path in sorted(folder.glob("*.pid"), reverse=True):
        identity = Identity.read(path)
        if identity is not None and identity.is_alive:
            identity.end()
            ended.append(path.stem)
        path.unlink(missing_ok=True)
    return ended


def _birth(pid: int) -> str:
    """Clock ticks since boot at which ``pid`` began; "" if it is gone or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        threads = len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return ""
    # A killed program's first thread may be done before the others, which hold its ports till they are.
    return "" if fields[0] in ("Z", "X") and threads < 2 else fields[19]
