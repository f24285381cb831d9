"""What a process says that it spends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from scheduling.models import Process, Role
from scheduling.services.worker import spending
from scheduling.services.worker.processes import Heart
from scheduling.services.worker.spending import MIB, Meter, ProcessUse, family, spent, spent_by_name

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
