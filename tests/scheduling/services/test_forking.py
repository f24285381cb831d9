"""A worker that forks beside threads which hold locks of the database's pool."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from django.db import connections
from psycopg_pool import ConnectionPool

from scheduling.services.worker import forking

PATIENCE_S = 10


@contextmanager
def held_by_a_thread(pool: ConnectionPool) -> Iterator[None]:
    """The pool's own threads hold its lock for moments: here one does, for as long as the test needs."""
    has, done = threading.Event(), threading.Event()

    def hold() -> None:
        with pool._lock:
            has.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    has.wait(60)
    try:
        yield
    finally:
        done.set()
        thread.join()


def ends_in_time(child: int) -> bool:
    """Whether the process ended by itself: its own alarm kills it where it waits for a lock."""
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


@pytest.mark.parametrize("leaves", [True, False])
def test_pool_whose_lock_a_thread_holds_at_a_fork_keeps_the_child_only_where_it_is_not_left(
    monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    pool = ConnectionPool("", min_size=0, max_size=1, open=True)
    pools = {"default": pool}
    # A worker that another test began has each fork of this process leave what the connections have.
    known = [SimpleNamespace(_connection_pools=pools)] if leaves else []
    monkeypatch.setattr(connections, "all", lambda: known)

    with held_by_a_thread(pool):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE_S if leaves else 1)
            if leaves:
                forking.leave_pools()
            for one in pools.values():
                one.close()
            os._exit(0)

        ended = ends_in_time(child)

    pool.close()
    assert ended == leaves
