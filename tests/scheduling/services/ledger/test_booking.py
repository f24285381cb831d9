"""Demand by the hour: as if nothing waited, for every queue, corrected while work tells how long it took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from scheduling.models import Cluster, Queue, State, UsageSample, Workload
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.demand import WantedSpan, book, hourly
from scheduling.services.ledger.rollup import roll_up
from tests.factories import make_workload
from tests.scheduling.services.test_workdays import HOUR, T0, cluster, live, stand_at  # noqa: F401

pytestmark = pytest.mark.django_db
NOW = T0 + 30 * HOUR


@pytest.fixture
def sampled(cluster: Cluster) -> Cluster:  # noqa: F811
    """Hours of the root, and of vision below it, that nobody worked out yet; now is 30 hours after T0."""
    for queue in Queue.objects.filter(name__in=["fra1", "vision"]):
        for i in range(30):
            UsageSample.objects.create(
                queue=queue, gpu_class=cluster.gpu_classes.get(name="h100"),
                resolution=Resolution.HOUR, start=T0 + i * HOUR, seconds=3600,
            )  # fmt: skip
    return stand_at(cluster, NOW)


def demand(queue: str = "vision") -> list[float]:
    rows = UsageSample.objects.filter(queue__name=queue, resolution=Resolution.HOUR)
    return [
        (gpus or 0.0) / 1000
        for gpus in rows.order_by("start").values_list("demand_gpus", flat=True)
    ]


def test_work_counts_from_its_submission_for_as_long_as_it_ran(sampled: Cluster) -> None:
    live(sampled, T0 + 6 * HOUR, 2.5, gpus=4, wait=4 * HOUR)
    book(sampled, since=T0)
    assert demand()[:7] == [0, 0, 4, 4, 2, 0, 0]


def test_inner_queues_ask_for_what_is_asked_below_them(sampled: Cluster) -> None:
    live(sampled, T0 + 2 * HOUR, 1, gpus=4, wait=timedelta(0))
    live(sampled, T0 + 2 * HOUR, 1, gpus=1, queue="speech", wait=timedelta(0))
    book(sampled, since=T0)
    assert demand("fra1")[2] == 5
    assert demand("vision")[2] == 4


def test_work_thrown_away_is_not_wanted_twice(sampled: Cluster) -> None:
    work = live(sampled, T0 + HOUR, 3, gpus=2, wait=timedelta(0))
    Workload.objects.filter(pk=work.pk).update(lost_gpu_s=2 * 3600)
    book(sampled, since=T0)
    assert sum(demand()) == pytest.approx(4)


def test_work_that_runs_is_wanted_up_to_now(sampled: Cluster) -> None:
    live(sampled, T0 + 20 * HOUR, None, gpus=2, wait=timedelta(0))
    book(sampled, since=T0)
    assert demand()[19:] == [0, *[2] * 10]


def test_work_that_waits_is_wanted_for_what_is_guessed_of_it(sampled: Cluster) -> None:
    make_workload(
        sampled.queues.get(name="vision"),
        gpus=3000,
        gpu_classes=["h100"],
        submitted_at=T0 + 5 * HOUR,
    )
    book(sampled, since=T0)
    assert demand()[4:7] == [0, 3, 0]


def test_work_that_left_before_it_started_is_not_known(sampled: Cluster) -> None:
    make_workload(
        sampled.queues.get(name="vision"), gpus=3000, gpu_classes=["h100"], state=State.FINISHED,
        submitted_at=T0 + HOUR, finished_at=T0 + 2 * HOUR,
    )  # fmt: skip
    book(sampled, since=T0)
    assert sum(demand()) == 0


def test_hour_that_is_not_over_is_left_open(sampled: Cluster) -> None:
    stand_at(sampled, T0 + 10.5 * HOUR)
    book(sampled, since=T0)
    rows = UsageSample.objects.filter(demand_gpus=None, queue__name="vision")
    assert min(rows.values_list("start", flat=True)) == T0 + 10 * HOUR


def test_booking_again_changes_nothing_and_late_news_is_taken_up(sampled: Cluster) -> None:
    live(sampled, T0 + 6 * HOUR, 2, gpus=4)
    assert book(sampled, since=T0) == 60
    assert book(sampled) == 0
    live(sampled, T0 + 6 * HOUR, 2, gpus=1)
    assert book(stand_at(sampled, NOW + HOUR)) == 4


def test_hour_that_is_worked_out_is_left_alone_until_the_next(
    sampled: Cluster, django_assert_num_queries: Any
) -> None:
    book(sampled)
    live(sampled, T0 + 6 * HOUR, 2, gpus=4)
    with django_assert_num_queries(2):
        assert book(sampled) == 0


def test_hour_that_was_sampled_since_is_worked_out_at_once(sampled: Cluster) -> None:
    live(sampled, T0 + 6 * HOUR, 2, gpus=4, wait=timedelta(0))
    book(sampled)
    UsageSample.objects.filter(queue__name="vision", start=T0 + 6 * HOUR).update(demand_gpus=None)
    assert book(sampled) == 1
    assert demand()[6] == 4


def test_days_carry_the_mean_of_their_hours_and_minutes_leave_it_alone(sampled: Cluster) -> None:
    live(sampled, T0 + HOUR, 12, gpus=2, wait=timedelta(0))
    book(sampled, since=T0)
    UsageSample.objects.create(
        queue=Queue.objects.get(name="vision"), gpu_class=sampled.gpu_classes.get(name="h100"),
        resolution=Resolution.MINUTE, start=T0 + 2 * HOUR, seconds=60,
    )  # fmt: skip
    roll_up(sampled, since=T0)
    day = UsageSample.objects.get(
        queue__name="vision", resolution=Resolution.DAY, start=T0, demand_gpus__isnull=False
    )
    assert day.demand_gpus == pytest.approx(1000)
    assert demand()[2] == 2


def test_means_between_edges_are_exact() -> None:
    begin = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
    edges = begin + 3600 * np.arange(4.0)
    asked = [
        WantedSpan((1, 1), begin - 1e6, begin + 1800, 2000),
        WantedSpan((1, 1), begin + 5400, begin + 1e6, 500),
    ]
    assert hourly(asked, edges)[1, 1].tolist() == pytest.approx([1000, 250, 500])
