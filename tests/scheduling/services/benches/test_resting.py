"""What ``bench demo`` makes of what it saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduling.services.worker.spending import MIB, TICK_S, ProcessUse, spent_by_name
from workshop.benches.worker.resting import cores, figures_of


def seen(*looks):
    return [
        (at, {name: ProcessUse(mib * MIB, cpu_s) for name, (mib, cpu_s) in of.items()})
        for at, of in looks
    ]


def test_cores_are_what_was_spent_between_the_looks():
    found = cores(
        seen((0, {"engine": (10, 5.0)}), (10, {"engine": (10, 6.0)}), (20, {"engine": (10, 7.0)}))
    )
    assert found == {"engine": pytest.approx(0.1)}


def test_process_that_began_in_between_counts_from_its_begin():
    found = cores(seen((0, {}), (10, {"studies": (10, 2.0)}), (20, {})))
    assert found == {"studies": pytest.approx(0.1)}


def test_process_that_took_the_place_of_another_counts_no_negative_seconds():
    found = cores(seen((0, {"engine": (10, 50.0)}), (10, {"engine": (10, 1.0)})))
    assert found == {"engine": 0}


def test_memory_is_told_at_first_at_the_end_and_at_its_most():
    looks = (0, {"a": (100, 0)}), (10, {"a": (100, 0), "b": (300, 1)}), (30, {"a": (150, 3)})
    found = figures_of(seen(*looks))
    assert (found["all_first_mib"], found["all_peak_mib"], found["all_mib"]) == (100, 400, 150)
    assert found["a_mib"] == 150


def test_processes_are_told_by_the_names_they_gave_themselves(tmp_path: Path):
    for pid, parent, name in ((10, 1, "python"), (11, 10, "weir engine"), (12, 10, "weir worker")):
        folder = tmp_path / str(pid)
        folder.mkdir()
        ticks = round(pid / TICK_S)
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} 0 0 0 0 0 0 0 0 0 {ticks} 0 0 0\n")
        (folder / "comm").write_text(f"{name}\n")
        (folder / "smaps_rollup").write_text(f"Pss: {pid << 10} kB\n")
    found = spent_by_name(10, tmp_path)
    assert found["weir engine"] == ProcessUse(11 * MIB, pytest.approx(11))
    assert set(found) == {"python", "weir engine", "weir worker"}
