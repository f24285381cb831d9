"""What gives way to cycles gives way in everything but a write, which cycles may wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduling.services.worker.priority import may_come_back

PROGRAM = """
import os, sys
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1],
                           "OPTIONS": {"transaction_mode": "IMMEDIATE"}}},
)
django.setup()
from django.db import connection, transaction
from scheduling.services.worker import priority

priority.may_come_back = lambda: sys.argv[2] == "may"
priority.give_way(19)
nice = lambda: os.getpriority(os.PRIO_PROCESS, 0)
seen = [nice()]
with transaction.atomic(), connection.cursor() as cursor:
    seen.append(nice())
    cursor.execute("CREATE TABLE t (x)")
    seen.append(nice())
seen.append(nice())
connection.cursor().execute("INSERT INTO t VALUES (1)")
seen.append(nice())
try:
    with transaction.atomic():
        seen.append(nice())
        raise KeyError
except KeyError:
    seen.append(nice())
print(*seen)
"""


def seen(tmp_path: Path, what: str) -> list[int]:
    """Niceness: at first; in a transaction, after its write, after it; after a write; in one that fails, and
    after it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "db"), what],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(not may_come_back(), reason="the kernel lets nobody here raise a priority")
def test_process_is_lifted_for_the_time_of_each_write(tmp_path: Path) -> None:
    assert seen(tmp_path, "may") == [19, 0, 0, 19, 19, 0, 19]


def test_process_that_could_not_come_back_stays_where_it_is(tmp_path: Path) -> None:
    assert set(seen(tmp_path, "may not")) == {os.getpriority(os.PRIO_PROCESS, 0)}


@pytest.mark.parametrize(("held", "may"), [("000001ffffffffff", True), ("00000000a80425fb", False)])
def test_capability_to_raise_priorities_is_read_from_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str, may: bool
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (0, 0))
    status = tmp_path / "status"
    status.write_text(f"Name:\tpython\nCapEff:\t{held}\n")
    assert may_come_back(status) is may
