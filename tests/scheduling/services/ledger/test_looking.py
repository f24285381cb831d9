"""Forecasts that are kept: whose, when they are due, and what stands in them."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from scheduling.models import Cluster, DemandForecast, GpuClass, Queue, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.demand_forecasts import forecast_queues, look_ahead
from tests.scheduling.prediction.test_demand import weeks_of
from tests.scheduling.services.test_workdays import HOUR, T0, cluster, stand_at  # noqa: F401

pytestmark = pytest.mark.django_db
WEEKS = 10
NOW = T0 + timedelta(weeks=WEEKS)


def asked(queue: Queue, gpu_class: GpuClass, gpus: np.ndarray) -> None:
    UsageSample.objects.bulk_create(
        UsageSample(
            queue=queue, gpu_class=gpu_class, resolution=Resolution.HOUR, seconds=3600,
            start=T0 + i * HOUR, demand_gpus=1000 * value,
        )
        for i, value in enumerate(gpus)
    )  # fmt: skip


@pytest.fixture
def known(cluster: Cluster) -> Cluster:  # noqa: F811
    root = cluster.queues.get(parent=None)
    asked(root, cluster.gpu_classes.get(name="h100"), weeks_of(WEEKS, noise=0.05))
    return stand_at(cluster, NOW)


def test_forecast_has_hours_of_a_week_and_weeks_of_half_a_year(known: Cluster) -> None:
    look_ahead(known, known.queues.filter(parent=None))
    row = DemandForecast.objects.get(gpu_class__name="h100")
    assert (row.made_at, row.why_not, row.known_days) == (NOW, "", 7 * WEEKS)
    assert {name: len(values) for name, values in row.hours.items()} == dict.fromkeys(
        ("p10", "p25", "p50", "p75", "p90"), 168
    )
    assert len(row.weeks["p50"]) == 26
    assert {score["days_ahead"] for score in row.scores} == {1, 7, 28}


def test_class_of_which_too_little_is_known_says_why(known: Cluster) -> None:
    look_ahead(known, known.queues.filter(parent=None))
    row = DemandForecast.objects.get(gpu_class__name="l4")
    assert row.why_not == "nothing is known"
    assert row.hours == {}


def test_looking_later_replaces_what_was_told(known: Cluster) -> None:
    for days in range(2):
        stand_at(known, NOW + timedelta(days=days))
        look_ahead(known, known.queues.filter(parent=None))
    assert DemandForecast.objects.count() == 2


def test_forecast_is_made_once_a_day(known: Cluster) -> None:
    root = known.queues.filter(parent=None)
    assert look_ahead(known, root) == 2
    assert look_ahead(known, root) == 0
    stand_at(known, NOW + timedelta(hours=21))
    assert look_ahead(known, root) == 2


def test_pass_makes_as_many_as_it_may_and_the_next_goes_on(known: Cluster) -> None:
    assert look_ahead(known, most=4) == 4
    assert look_ahead(known, most=4) == 2
    assert DemandForecast.objects.count() == 6


def test_root_departments_and_inner_queues_are_forecast(known: Cluster) -> None:
    vision = known.queues.get(name="vision")
    Queue.objects.create(cluster=known, name="deep", parent=Queue.objects.create(
        cluster=known, name="inner", parent=vision
    ))  # fmt: skip
    assert {queue.name for queue in forecast_queues(known)} == {"fra1", "vision", "speech", "inner"}
