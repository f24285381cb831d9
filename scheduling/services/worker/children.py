"""The processes of one command: a parent that does nothing but start, watch and end them.

Each child is forked from a parent that has loaded what all need, so that they share its memory. One that ends
by itself is started again, one that is vital ends all. None outlives its parent: the kernel tells it. The
parent has one thread and no connection of its own while it forks.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from django.core.management import CommandError
from django.db import connections

from scheduling.services.worker.allocator import keep_little

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
LEAST_LIFE_S = 5.0
"""One that ends sooner is started again only after as long, twice as long the next time."""
LONGEST_REST_S = 60.0
GRACE_S = 12.0
"""From the word to end until it is ended."""
ENDED = 128 + signal.SIGTERM
SET_DEATH_SIGNAL, SET_NAME = 1, 15
"""Of prctl(2)."""
KERNEL = ctypes.CDLL(None, use_errno=True)


def always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ChildPart:
    """What a child does until it ends."""

    name: str
    run: Callable[[], None]
    is_vital: bool = False
    """Whether its end is the end of all."""
    is_wanted: Callable[[], bool] = always
    """Whether it has anything to do: one that has not and ends is left alone."""
    gone: Callable[[int], None] = lambda _: None
    """Told the number of the process that ended."""


@dataclass(slots=True)
class _Child:
    part: ChildPart
    pid: int = 0
    began_s: float = 0.0
    rest_s: float = 0.0
    not_before_s: float = 0.0


@dataclass(slots=True)
class Family:
    """``first``, then ``others`` once it ``is_open``; they are ended in the reverse order."""

    first: Sequence[ChildPart]
    others: Sequence[ChildPart] = ()
    is_open: Callable[[], bool] = always
    _children: list[_Child] = field(default_factory=list)
    _is_over: bool = False
    _status: int = 0

    def run(self) -> int:
        """Until it is told to end, or a vital part ends: the status to leave with."""
        self._children = [_Child(part) for part in self.first]
        waiting = [_Child(part) for part in self.others]
        wake = _heard_signals(self._end)
        try:
            while not self._is_over:
                if waiting and self.is_open():
                    self._children, waiting = [*self._children, *waiting], []
                for child in self._children:
                    self._care_for(child)
                select.select([wake], [], [], LOOK_EVERY_S)
                _drain(wake)
                self._reap()
        finally:
            self._close()
        return self._status

    def _end(self, *_: object) -> None:
        self._is_over = True

    def _care_for(self, child: _Child) -> None:
        is_due = not child.pid and time.monotonic() >= child.not_before_s
        if is_due and not self._is_over and child.part.is_wanted():
            child.began_s = time.monotonic()
            child.pid = _fork(child.part)

    def _reap(self) -> None:
        """Note who has ended."""
        for child in self._children:
            if child.pid and (status := _ended(child.pid)) is not None:
                self._note_end(child, status)

    def _note_end(self, child: _Child, status: int) -> None:
        now_s = time.monotonic()
        if child.part.is_vital:
            self._is_over, self._status = True, status
        elif status:
            log.warning("%s (%s) ended with status %s", child.part.name, child.pid, status)
        is_early = bool(status) and now_s - child.began_s < LEAST_LIFE_S
        child.rest_s = min(LONGEST_REST_S, max(1.0, 2 * child.rest_s)) if is_early else 0.0
        child.not_before_s = now_s + child.rest_s
        pid, child.pid = child.pid, 0
        child.part.gone(pid)

    def _close(self) -> None:
        """End all, the last first."""
        for child in reversed(self._children):
            if child.pid:
                _end_child(child.pid)
                child.part.gone(child.pid)


def _heard_signals(end: Callable[..., None]) -> int:
    """A file to wait for: it can be read when a child has ended or a signal has come."""
    ear, mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    return ear


def _drain(ear: int) -> None:
    with suppress(BlockingIOError):
        while os.read(ear, 512):
            pass


def _fork(part: ChildPart) -> int:
    """The number of a new process that runs ``part``."""
    connections.close_all()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    with _frozen():
        pid = os.fork()
    if not pid:
        os._exit(_live(part, parent))
    return pid


def aside(name: str, run: Callable[[], None]) -> None:
    """Go on when ``run`` has ended in a process of its own: the memory that it took goes with it.

    To be called from the main thread, while there is no other. Raises SystemExit with its status where it
    failed.
    """
    pid = _fork(ChildPart(name, run))
    try:
        _, ended = os.waitpid(pid, 0)
    except BaseException:
        _end_child(pid)
        raise
    if status := os.waitstatus_to_exitcode(ended):
        sys.exit(status)


@contextmanager
def _frozen() -> Iterator[None]:
    """Garbage collection leaves alone what the parent has made: its memory stays shared."""
    gc.disable()
    gc.freeze()
    yield
    gc.enable()


def _live(part: ChildPart, parent: int) -> int:
    """The child's whole life; the status that it ends with."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)  # Ctrl-C reaches the parent alone, which says who ends when
    signal.signal(signal.SIGTERM, _leave)
    KERNEL.prctl(SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    keep_little()
    KERNEL.prctl(SET_NAME, f"weir {part.name}".encode()[:15], 0, 0, 0)
    try:
        if os.getppid() != parent:
            return ENDED
        part.run()
    except CommandError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.returncode
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        connections.close_all()
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(ENDED)


def _ended(pid: int) -> int | None:
    """The status of ``pid`` if it has ended, which is forgotten then; as a shell counts it."""
    found, status = os.waitpid(pid, os.WNOHANG)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _end_child(pid: int) -> None:
    """Let it end, and end it where it does not."""
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + GRACE_S
    while _ended(pid) is None:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.02)
