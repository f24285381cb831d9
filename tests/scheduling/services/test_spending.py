"""What a process says that it spends."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from scheduling.models import Process, Role
from scheduling.services.worker import parts, spending
from scheduling.services.worker.processes import Heart
from scheduling.services.worker.spending import (
    MIB,
    Meter,
    ProcessUse,
    family,
    has_grown_by,
    spent,
    spent_by_name,
)

HOLDS_MIB = 64
CHILD = f"held = b'1' * ({HOLDS_MIB} << 20); print(flush=True); input()"
PARENT = f"""
import subprocess, sys, time
while time.process_time() < 0.2: pass
subprocess.run([sys.executable, "-c", {CHILD!r}])
"""


@pytest.fixture
def parent() -> Iterator[int]:
    """A process that spent .2 CPU seconds and has a child that holds 64 MiB."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


def test_process_counts_with_all_below_it(parent: int) -> None:
    found = spent(parent)
    assert found is not None
    assert found.memory > HOLDS_MIB * MIB
    assert found.cpu_s >= 0.2
    assert len(family(parent)) == 2


def test_processes_of_one_name_are_added_up(parent: int) -> None:
    (found,) = spent_by_name(parent).values()
    assert found.memory > HOLDS_MIB * MIB


def test_process_that_is_gone_spends_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert spent(process.pid) is None
    assert spent_by_name(process.pid) == {}


def test_cpu_is_known_from_the_second_reading_on(monkeypatch) -> None:
    readings = iter((ProcessUse(100 * MIB, 3.0), ProcessUse(110 * MIB, 8.0)))
    monkeypatch.setattr(spending, "spent", lambda _: next(readings))
    meter = Meter()
    assert meter.read(now=50) == {"memory_mib": 100, "cpu": None}
    assert meter.read(now=60) == {"memory_mib": 110, "cpu": 0.5}


def test_child_that_ended_makes_no_negative_cpu(monkeypatch) -> None:
    readings = iter((ProcessUse(MIB, 8.0), ProcessUse(MIB, 3.0)))
    monkeypatch.setattr(spending, "spent", lambda _: next(readings))
    meter = Meter()
    meter.read(now=50)
    assert meter.read(now=60)["cpu"] == 0


@pytest.mark.django_db
def test_beat_writes_down_what_the_process_spends() -> None:
    heart = Heart(Role.WEB)
    heart.beat()
    heart.beat()
    row = Process.objects.get()
    assert (row.memory_mib or 0) > 10
    assert row.cpu is not None
    assert row.cpu >= 0


def test_process_has_grown_once_it_holds_more_than_so_much_beyond_its_start(monkeypatch) -> None:
    held = iter(MIB * mib for mib in (100, 90, 164, 165))
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=next(held)))
    monkeypatch.setattr(spending.psutil, "Process", lambda: process)
    has_grown = has_grown_by(64 * MIB)
    assert [has_grown() for _ in range(3)] == [False, False, True]


class Running:
    """What a worker has taken up: something at the first ``looks``, then nothing."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __bool__(self) -> bool:
        self.looks -= 1
        return self.looks >= 0


def test_worker_that_has_grown_ends_at_the_first_look_between_two_tasks(monkeypatch) -> None:
    running, grown = Running(3), iter((False, True))
    monkeypatch.setattr(parts, "IDLE_LOOK_S", 0.0)
    monkeypatch.setattr(parts.state, "should_stop", None)
    monkeypatch.setattr(parts.state, "requests", running)
    with parts.ending_when_idle(0.0, lambda: next(grown)):
        for thread in threading.enumerate():
            if thread.name == "idle":
                thread.join()
    assert parts.state.should_stop == 0
    assert running.looks == -2
    assert next(grown, None) is None
