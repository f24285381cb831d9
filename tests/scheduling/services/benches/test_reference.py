"""The manager that only counts: what it starts, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from workshop.benches.worker.managers import start_reference
from workshop.benches.worker.record import throughput
from workshop.benches.worker.reference import Cohort
from workshop.benches.worker.registry import run_load
from workshop.benches.worker.work import JobClass, Load

TWO_QUEUES = Load(
    cohorts=1,
    queues=2,
    classes=(
        JobClass("small", units=1, runtime_s=0.1, priority=50, every_s=0.05, count=10),
        JobClass("large", units=4, runtime_s=0.2, priority=200, every_s=0.2, count=2),
    ),
    nominal=4,
    borrowing=2,
)
ONE, OTHER = TWO_QUEUES.queue_names


@pytest.fixture
def cohort() -> Cohort:
    return Cohort(TWO_QUEUES, "cohort-0")


def test_higher_priority_starts_first(cohort: Cohort) -> None:
    for number in range(5):
        cohort.submit(f"small-{number}", ONE, "small")
    cohort.submit("large", ONE, "large")

    # The queue may hold its four units and borrow two.
    assert list(cohort.starts()) == ["large", "small-0", "small-1"]


def test_queue_that_holds_least_is_next(cohort: Cohort) -> None:
    for number in range(3):
        cohort.submit(f"one-{number}", ONE, "small")
    assert len(list(cohort.starts())) == 3
    cohort.submit("one-3", ONE, "small")
    cohort.submit("other-0", OTHER, "small")

    assert list(cohort.starts()) == ["other-0", "one-3"]


def test_full_cohort_starts_what_fits_once_units_are_released(cohort: Cohort) -> None:
    for queue in (ONE, OTHER):
        cohort.submit(f"{queue}-large", queue, "large")
    assert len(list(cohort.starts())) == 2
    cohort.submit("late", ONE, "small")
    assert list(cohort.starts()) == []

    cohort.release(OTHER, 4)

    assert list(cohort.starts()) == ["late"]


@pytest.mark.real
def test_reference_starts_every_job_once(tmp_path: Path) -> None:
    found = run_load(
        TWO_QUEUES, throughput, tmp_path / "stage", lambda line: None, start_reference
    ).measured

    assert found["jobs"] == TWO_QUEUES.jobs
    assert found["evictions"] == 0
    assert found["api_writes_jobs"] == 3 * TWO_QUEUES.jobs
    assert found["makespan_s"] > found["bound_s"]
