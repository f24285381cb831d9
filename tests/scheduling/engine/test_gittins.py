"""Expected work to an end, over the last run times of a class."""

from __future__ import annotations

import numpy as np
import pytest

from scheduling.engine.compile.structs import as_struct
from scheduling.engine.merit import gittins
from scheduling.engine.merit.gittins import KEPT, LONGER_S, UNKNOWN_S


def expected_s(runs: list[float], age_s: float = 0.0) -> float:
    times = as_struct(gittins.empty_run_times(3))
    gittins.note_run_times(times, np.zeros(len(runs), np.int64), np.array(runs))
    found = np.zeros(1)
    gittins.indices(times, np.array([[0, 1, 2]]), np.array([age_s]), found)
    return float(found[0])


def by_definition(runs: list[float], age_s: float) -> float:
    """Over all times to stop at: expected work until then or the end, per expected end."""
    rest = [r - age_s for r in runs if r > age_s]
    return min(sum(min(r, stop) for r in rest) / sum(r <= stop for r in rest) for stop in rest)


@pytest.mark.parametrize("age_s", [0.0, 50.0, 400.0])
def test_index_is_the_least_work_per_end(age_s: float) -> None:
    runs = [600.0, 30.0, 45.0, 5000.0, 700.0]

    assert expected_s(runs, age_s) == pytest.approx(by_definition(runs, age_s))


def test_few_run_times_say_nothing() -> None:
    assert expected_s([10.0, 20.0]) == UNKNOWN_S


def test_who_ran_longer_than_all_is_expected_to_take_as_long_again() -> None:
    assert expected_s([10.0, 20.0, 30.0], 100.0) == 100.0 + LONGER_S


def test_oldest_run_times_are_forgotten() -> None:
    assert expected_s([1.0] * 5 + [1000.0] * KEPT) == pytest.approx(1000.0)


def test_class_without_history_goes_by_its_queue_then_by_all() -> None:
    times = as_struct(gittins.empty_run_times(3))
    gittins.note_run_times(times, np.array([1, 1, 1, 2, 2, 2]), np.array([60.0] * 3 + [9.0] * 3))
    found = np.zeros(2)

    gittins.indices(times, np.array([[0, 1, 2], [0, 0, 2]]), np.zeros(2), found)

    assert found.tolist() == [60.0, 9.0]
