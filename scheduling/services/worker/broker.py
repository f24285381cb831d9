"""The broker of one machine: a folder of messages that its processes share, each message a file.

A file is claimed by renaming it, so that one process alone has it, and removed when its task has ended. What
a process held when it was killed is put back by ``give_back``. The writer of a message wakes those who wait,
in this process and in others: looking a hundred times a second would take a twentieth of a core, and a cycle
would still wait for the next look.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from queue import Empty
from typing import Any
from urllib.parse import quote

from kombu.transport import base, virtual

LOOK_EVERY_S = 1.0
"""The longest a consumer waits without a look, should it be told of nothing."""
CLAIM = "~"
"""Between the name of a message and the number of the process that has it."""
EARS = ".ears"
"""Folder of those who wait to be woken, by process number."""


class _News:
    """Counts what consumers may have to look for, so that none is missed between a look and a wait."""

    def __init__(self) -> None:
        self._came = threading.Condition()
        self.number = 0

    def tell(self) -> None:
        with self._came:
            self.number += 1
            self._came.notify_all()

    def wait_after(self, number: int, timeout_s: float) -> None:
        with self._came:
            self._came.wait_for(lambda: self.number != number, timeout_s)


NEWS = _News()


class _Bell:
    """Wakes other processes that consume from the same folder, by datagrams that hold nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: dict[Path, int] = {}
        """Folder -> the process that listens for it: a child of ours does not."""

    def listen(self, folder: Path) -> None:
        with self._lock:
            if self._heard.get(folder) == os.getpid():
                return
            self._heard[folder] = os.getpid()
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ear.bind(_address(folder, os.getpid()))
        (folder / EARS).mkdir(parents=True, exist_ok=True)
        (folder / EARS / str(os.getpid())).touch()
        threading.Thread(target=_hear, args=(ear,), name="broker", daemon=True).start()

    def ring(self, folder: Path) -> None:
        for entry in _names(folder / EARS):
            if entry != str(os.getpid()):
                _wake(folder, entry)


def _hear(ear: socket.socket) -> None:
    while True:
        ear.recv(1)
        NEWS.tell()


def _wake(folder: Path, entry: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mouth:
        mouth.setblocking(False)
        try:
            mouth.sendto(b"", _address(folder, int(entry)))
        except BlockingIOError:
            return  # it has been woken more often than it has looked
        except OSError:
            (folder / EARS / entry).unlink(missing_ok=True)


def _address(folder: Path, pid: int) -> str:
    """An abstract one: it ends with its process, and may be short where the folder's path is long."""
    return f"\0weir-{sha256(str(folder).encode()).hexdigest()[:16]}-{pid}"


BELL = _Bell()


def waiting(folder: Path, queue: str) -> list[str]:
    """Names of the messages in ``queue`` that nobody has claimed, oldest first."""
    return sorted(n for n in _names(_of(folder, queue)) if CLAIM not in n and not n.startswith("."))


def give_back(folder: Path, pid: int | None = None) -> None:
    """Put back what ``pid`` had claimed, which has ended; without it what any that has ended had."""
    for queue in _names(folder):
        for name in _names(folder / queue):
            message, is_claimed, holder = name.partition(CLAIM)
            if is_claimed and (int(holder) == pid or not Path(f"/proc/{holder}").exists()):
                with suppress(FileNotFoundError):
                    (folder / queue / name).rename(folder / queue / message)
    BELL.ring(folder)


@lru_cache(256)
def _of(folder: Path, queue: str) -> Path:
    """Kept: a consumer looks at its queues several times a second, and making a path costs as much."""
    return folder / quote(queue, safe="")


_folder = cache(Path)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


class Channel(virtual.Channel):
    """Tells of every message, and of every answer to one: it makes room for the next."""

    _numbers = itertools.count()

    def __init__(self, connection: Any, **options: Any) -> None:
        super().__init__(connection, **options)  # type: ignore[no-untyped-call] # kombu's
        self._claims: dict[Any, Path] = {}
        """By delivery tag."""

    @property
    def folder(self) -> Path:
        return _folder(self.connection.client.transport_options["folder"])

    def _new_queue(self, queue: str, **_: Any) -> None:
        _of(self.folder, queue).mkdir(parents=True, exist_ok=True)

    def _has_queue(self, queue: str, **_: Any) -> bool:
        return _of(self.folder, queue).is_dir()

    def _put(self, queue: str, message: Any, **_: Any) -> None:
        self._new_queue(queue)
        home = _of(self.folder, queue)
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(self._numbers)}"
        (home / f".{name}").write_text(json.dumps(message))
        (home / f".{name}").rename(home / name)
        NEWS.tell()
        BELL.ring(self.folder)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for claimed in self._claimed(queue):
            message = json.loads(claimed.read_text())
            self._claims[message["properties"]["delivery_tag"]] = claimed
            return message
        raise Empty

    def _claimed(self, queue: str) -> Iterator[Path]:
        home = _of(self.folder, queue)
        for name in waiting(self.folder, queue):
            mine = home / f"{name}{CLAIM}{os.getpid()}"
            with suppress(FileNotFoundError):  # another was quicker
                (home / name).rename(mine)
                yield mine

    def _size(self, queue: str) -> int:
        return len(waiting(self.folder, queue))

    def _purge(self, queue: str) -> int:
        names = waiting(self.folder, queue)
        for name in names:
            (_of(self.folder, queue) / name).unlink(missing_ok=True)
        return len(names)

    def basic_ack(self, delivery_tag: Any, multiple: bool = False) -> None:
        super().basic_ack(delivery_tag, multiple=multiple)  # type: ignore[no-untyped-call] # kombu's
        self._let_go(delivery_tag)

    def basic_reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        super().basic_reject(delivery_tag, requeue=requeue)  # type: ignore[no-untyped-call] # kombu's
        self._let_go(delivery_tag)

    def _restore(self, message: Any) -> None:
        super()._restore(message)  # type: ignore[no-untyped-call] # kombu's
        self._let_go(message.delivery_tag)

    def _let_go(self, delivery_tag: Any) -> None:
        if claimed := self._claims.pop(delivery_tag, None):
            claimed.unlink(missing_ok=True)
        NEWS.tell()


class Transport(virtual.Transport):
    """``transport_options``: ``folder``, where the messages are."""

    Channel = Channel
    driver_type = driver_name = "folder"
    implements = base.Transport.implements
    bindings = virtual.BrokerState()  # type: ignore[no-untyped-call] # kombu's
    """Of all connections of a process: who sends declares what it sends to."""

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)  # type: ignore[no-untyped-call] # kombu's
        self.state = self.bindings

    def driver_version(self) -> str:
        return "1"

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver one message. Raises TimeoutError when none came in ``timeout`` seconds (None: never)."""
        client: Any = self.client
        BELL.listen(_folder(client.transport_options["folder"]))
        cycle: Any = self.cycle
        until = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            number = NEWS.number
            try:
                cycle.get(self._deliver, timeout=timeout)
                return
            except Empty:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError from None
                NEWS.wait_after(number, min(left_s, LOOK_EVERY_S))
