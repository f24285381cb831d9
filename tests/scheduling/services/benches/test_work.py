"""The generator of Jobs: how many, when, and the bound that follows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from workshop.benches.worker.work import BASELINE, LARGE, LIVE, JobClass, Load

ONE_EACH = Load(
    cohorts=1,
    queues=2,
    classes=(
        JobClass("small", units=1, runtime_s=2, priority=1, every_s=0.5, count=2),
        JobClass("large", units=4, runtime_s=3, priority=2, every_s=1, count=1, from_s=10),
    ),
    nominal=4,
)


def test_queues_take_turns_and_the_first_job_comes_after_one_interval() -> None:
    assert [(a.at_s, a.name) for a in ONE_EACH.arrivals()] == [
        (0.5, "cohort-0-queue-0-small-0"),
        (0.5, "cohort-0-queue-1-small-0"),
        (1.0, "cohort-0-queue-0-small-1"),
        (1.0, "cohort-0-queue-1-small-1"),
        (11.0, "cohort-0-queue-0-large-0"),
        (11.0, "cohort-0-queue-1-large-0"),
    ]


def test_bound_is_all_work_over_all_nominal_units() -> None:
    assert ONE_EACH.bound_s == (2 * (2 * 1 * 2) + 2 * (4 * 3)) / 8


@pytest.mark.parametrize(
    ("load", "jobs", "queues", "bound_s"),
    [(BASELINE, 15_000, 30, 66.0), (LARGE, 50_000, 1_000, 4.03)],
)
def test_work_of_kueue_is_its_own_generators(
    load: Load, jobs: int, queues: int, bound_s: float
) -> None:
    assert (load.jobs, len(load.queue_names)) == (jobs, queues)
    assert load.bound_s == pytest.approx(bound_s, abs=0.005)
    assert len(load.arrivals()) == jobs


def test_live_keeps_ten_thousand_waiting_apart_from_those_it_times() -> None:
    held = {kind.name: set(kind.queues) for kind in LIVE.classes}
    arrivals = Counter(a.kind.name for a in LIVE.arrivals())

    assert not held["standing"] & held["probe"]
    assert arrivals["standing"] - len(held["standing"]) > 10_000


def test_part_keeps_every_class() -> None:
    assert [kind.count for kind in BASELINE.part(0.01).classes] == [4, 1, 1]


def test_load_is_read_as_it_was_written(tmp_path: Path) -> None:
    LIVE.write(tmp_path / "load.json")

    assert Load.read(tmp_path / "load.json") == LIVE
