"""Counts what a piece of work asks for: never how long it takes, which depends on who else computes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from numba.core.dispatcher import Dispatcher

from scheduling.cluster.connection.client import Client
from scheduling.engine.compile.machine import KernelCache

WRITES = ("INSERT", "UPDATE", "DELETE")


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """``queries``, rows ``read`` and ``written``, model ``objects`` made, calls of compiled ``kernels``,
    writes to an API server, and ``calls`` of Python functions in this thread: each makes objects.
    """
    counts: Counter[str] = Counter()
    asked: list[str] = []
    with (
        connection.execute_wrapper(_Statements(counts)),
        patch.multiple(CursorWrapper, create=True, **_fetches(counts)),
        patch.object(Model, "__init__", _made(counts)),
        patch.object(Client, "request", _requests(asked)),
        _kernels(counts),
        _calls(counts),
    ):
        yield counts
    counts["API writes"] = len(asked)


class _Statements:
    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self._counts["queries"] += 1
        result = execute(sql, params, many, context)
        if sql.lstrip().upper().startswith(WRITES):
            self._counts["written"] += max(0, context["cursor"].rowcount)
        return result


def _fetches(counts: Counter[str]) -> dict[str, Any]:
    """What reads rows of a cursor; the wrapper hands these on to it."""

    def fetchone(self: CursorWrapper) -> Any:
        row = self.cursor.fetchone()
        counts["read"] += row is not None
        return row

    def fetchmany(self: CursorWrapper, *args: Any) -> Any:
        rows = self.cursor.fetchmany(*args)
        counts["read"] += len(rows)
        return rows

    def fetchall(self: CursorWrapper) -> Any:
        rows = self.cursor.fetchall()
        counts["read"] += len(rows)
        return rows

    return {"fetchone": fetchone, "fetchmany": fetchmany, "fetchall": fetchall}


def _made(counts: Counter[str]) -> Any:
    make = Model.__init__

    def init(self: Model, *args: Any, **fields: Any) -> None:
        counts["objects"] += 1
        make(self, *args, **fields)

    return init


def _requests(asked: list[str]) -> Any:
    """Threads ask, too: a list takes what several add at once."""
    request = Client.request

    def ask(self: Client, method: str, path: str, **more: Any) -> Any:
        if method != "GET":
            asked.append(method)
        return request(self, method, path, **more)

    return ask


@contextmanager
def _calls(counts: Counter[str]) -> Iterator[None]:
    made = [0]

    def hear(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            made[0] += 1

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield
    finally:
        sys.setprofile(before)
        counts["calls"] = made[0]


@contextmanager
def _kernels(counts: Counter[str]) -> Iterator[None]:
    """Wherever a module names one."""
    places = [
        (module, name, value)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("scheduling.")
        for name, value in list(vars(module).items())
        if isinstance(value, Dispatcher) and isinstance(value._cache, KernelCache)
    ]
    for module, name, value in places:
        setattr(module, name, _Kernel(value, counts))
    try:
        yield
    finally:
        for module, name, value in places:
            setattr(module, name, value)


class _Kernel:
    def __init__(self, kernel: Dispatcher, counts: Counter[str]) -> None:
        self._kernel, self._counts = kernel, counts

    def __call__(self, *args: Any) -> Any:
        self._counts["kernels"] += 1
        return self._kernel(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)
