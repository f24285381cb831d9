"""What ``bench demo`` makes of what it saw."""

from __future__ import annotations

import pytest

from scheduling.services.worker.spending import MIB, ProcessUse
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
