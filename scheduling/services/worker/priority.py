"""The lowest priority, but for the time of a write.

SQLite has one writer at a time: a process that may hardly run while it holds the lock keeps every cycle from
writing, on a busy machine for longer than those wait. So its thread is lifted from the statement that takes
the lock to the one that gives it back.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

NORMAL = 0
SYS_NICE = 1 << 23
"""Capability to raise priorities."""


def give_way(nice: int) -> None:
    """Let this process, and its threads to come, give way to others by ``nice``; before any other thread.

    Where a write would be kept waiting by that, and the kernel does not let the process come back from it,
    its priority stays as it is.
    """
    if not nice:
        return
    if connection.vendor == "sqlite":
        if not may_come_back():
            return
        connection_created.connect(_lift_writes(nice), weak=False)
    _set(nice)


def may_come_back(status: Path = Path("/proc/self/status")) -> bool:
    """Whether the kernel lets this process raise its priority to the normal again."""
    if resource.getrlimit(resource.RLIMIT_NICE)[0] >= 20 - NORMAL:
        return True
    lines = status.read_text().splitlines() if status.exists() else []
    mask = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(mask, 16) & SYS_NICE)


def _set(nice: int) -> None:
    """Of the calling thread: on Linux each has its own."""
    os.setpriority(os.PRIO_PROCESS, 0, nice)


def _lift_writes(nice: int) -> Callable[..., None]:
    def prepare(connection: BaseDatabaseWrapper, **_: Any) -> None:
        connection.execute_wrappers.append(lifted)
        connection.commit = _then_lowered(connection.commit)  # type: ignore[method-assign] # of this one
        connection.rollback = _then_lowered(connection.rollback)  # type: ignore[method-assign] # the same

    def lifted(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        begins, within = sql.startswith("BEGIN"), more[-1]["connection"].in_atomic_block
        _set(NORMAL)
        try:
            return execute(sql, *more)
        finally:
            if not begins and not within:
                _set(nice)

    def _then_lowered(end: Callable[[], None]) -> Callable[[], None]:
        @wraps(end)
        def ended() -> None:
            try:
                end()
            finally:
                _set(nice)

        return ended

    return prepare
