"""What a process says that it spends, read from a kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduling.models import Process, Role
from scheduling.services.worker.processes import Heart
from scheduling.services.worker.spending import MIB, TICK_S, Meter, spent

TICKS = round(1 / TICK_S)


def process(proc: Path, pid: int, parent: int, cpu_s: int, mib: int, ended_s: int = 0) -> None:
    """As the kernel writes it; its name tries to look like more fields."""
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    times = f"{cpu_s * TICKS} 0 {ended_s * TICKS} 0"
    folder.joinpath("stat").write_text(
        f"{pid} (a) 1 (b) S {parent} 0 0 0 0 0 0 0 0 0 {times} 0 0\n"
    )
    folder.joinpath("smaps_rollup").write_text(
        f"0-1 ---p 0 0 0 [rollup]\nRss: 999999 kB\nPss: {mib << 10} kB\n"
    )


def test_process_is_told_with_all_below_it_and_its_part_of_what_they_share(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, cpu_s=3, mib=100, ended_s=1)
    process(tmp_path, 11, 10, cpu_s=4, mib=30)
    process(tmp_path, 12, 11, cpu_s=5, mib=10)
    process(tmp_path, 13, 1, cpu_s=99, mib=999)
    found = spent(10, tmp_path)
    assert found is not None
    assert (found.memory // MIB, found.cpu_s) == (140, pytest.approx(13))


def test_machine_without_the_files_tells_nothing(tmp_path: Path) -> None:
    assert Meter(tmp_path).read() == {"memory_mib": None, "cpu": None}


def test_cpu_is_told_from_the_second_reading_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 10)
    meter = Meter(tmp_path)
    process(tmp_path, 10, 1, cpu_s=3, mib=100)
    assert meter.read(now=50) == {"memory_mib": 100, "cpu": None}
    process(tmp_path, 10, 1, cpu_s=8, mib=110)
    assert meter.read(now=60) == {"memory_mib": 110, "cpu": 0.5}


def test_child_that_ended_makes_no_negative_cpu(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 10)
    meter = Meter(tmp_path)
    process(tmp_path, 10, 1, cpu_s=8, mib=100)
    meter.read(now=50)
    process(tmp_path, 10, 1, cpu_s=3, mib=100)
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
