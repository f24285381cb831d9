"""What a worker's process leaves behind as it forks: pools of database connections have threads and locks."""

from __future__ import annotations

import os
from typing import Any

from django.db import connections

_of_parents: list[Any] = []
"""Kept, never closed: that would wait for threads which the fork did not copy, or for a lock that one of
them held, and the worker would take no task, ever. A probe opens a pool before the first fork."""


def leave_pools() -> None:
    """The pools of the process that forked are no pools of this one, which makes its own on first use."""
    for connection in connections.all():
        pools: dict[str, Any] = getattr(connection, "_connection_pools", {})
        _of_parents.extend(pools.values())
        pools.clear()


def register() -> None:
    """From now on for each fork of this process."""
    os.register_at_fork(after_in_child=leave_pools)
