"""The doors: learn from the ledger, predict in rows, step back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from scheduling.models import (
    Outcome,
    Prediction,
    Predictor,
    PredictorState,
    Queue,
    State,
    Workload,
)
from scheduling.services import forecasts
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(cluster=factories.make_cluster(), name="research")


def finished(queue: Queue, number: int, now: datetime, *, ran_s: int = 600) -> Workload:
    start = now - timedelta(hours=100 - number)
    return factories.make_workload(
        queue,
        name=f"train-{number}",
        user="ada",
        state=State.FINISHED,
        outcome=Outcome.SUCCEEDED,
        submitted_at=start,
        started_at=start,
        finished_at=start + timedelta(seconds=ran_s),
    )


def past(queue: Queue) -> None:
    now = queue.cluster.now()
    for number in range(30):
        finished(queue, number, now)


def waiting(queue: Queue) -> Workload:
    return factories.make_workload(
        queue,
        name="train-99",
        user="ada",
        state=State.PENDING,
        submitted_at=queue.cluster.now(),
    )


def test_learned_run_time_is_predicted_of_what_waits(queue: Queue) -> None:
    past(queue)
    work = waiting(queue)

    assert forecasts.learn(cluster=queue.cluster) is not None
    assert forecasts.predict(cluster=queue.cluster) == 1

    rest = forecasts.rests(queue.cluster)[work.uid]
    assert rest.p10_s <= rest.p50_s <= rest.p90_s
    assert rest.p50_s == pytest.approx(600, rel=0.3)


def test_learning_and_predicting_twice_changes_nothing(queue: Queue) -> None:
    past(queue)
    waiting(queue)
    forecasts.learn(cluster=queue.cluster)
    forecasts.predict(cluster=queue.cluster)

    assert forecasts.learn(cluster=queue.cluster) is None
    assert forecasts.predict(cluster=queue.cluster) == 0
    assert Predictor.objects.count() == 1


def test_too_few_runs_leave_nothing_predicted(queue: Queue) -> None:
    finished(queue, 1, queue.cluster.now())
    waiting(queue)

    assert forecasts.learn(cluster=queue.cluster) is None
    assert forecasts.predict(cluster=queue.cluster) == 0


def test_ended_run_is_set_beside_what_was_said_first(queue: Queue) -> None:
    past(queue)
    work = waiting(queue)
    forecasts.learn(cluster=queue.cluster)
    forecasts.predict(cluster=queue.cluster)
    now = queue.cluster.now()
    Workload.objects.filter(pk=work.pk).update(
        state=State.FINISHED,
        outcome=Outcome.FAILED,
        started_at=now,
        finished_at=now + timedelta(seconds=700),
    )

    forecasts.predict(cluster=queue.cluster)

    said = Prediction.objects.get(workload=work)
    assert said.ran_s == pytest.approx(700)
    assert said.cut_short


def test_boosted_model_that_is_demoted_leaves_history_serving(queue: Queue) -> None:
    past(queue)
    learned = forecasts.learn(cluster=queue.cluster)
    Predictor.objects.update(kind="boosted")

    made = forecasts.demote(cluster=queue.cluster, why="It lost its hold.")

    assert made is not None
    assert learned is not None
    assert forecasts.serving(queue.cluster) == made
    assert Predictor.objects.get(pk=learned.pk).status == PredictorState.RETIRED
    assert forecasts.demote(cluster=queue.cluster, why="Again.") is None
