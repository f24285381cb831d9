"""The doors: learn from the ledger, predict in rows, step back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from scheduling.models import Outcome, Prediction, Predictor, PredictorState, Queue, State, Workload
from scheduling.services import run_times
from tests import factories

pytestmark = pytest.mark.django_db
QUERIES = 10


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
        queue, name="train-99", user="ada", state=State.PENDING, submitted_at=queue.cluster.now()
    )


def test_learned_run_time_is_predicted_of_what_waits(queue: Queue) -> None:
    past(queue)
    work = waiting(queue)

    assert run_times.learn(cluster=queue.cluster) is not None
    assert run_times.predict(cluster=queue.cluster) == 1

    rest = run_times.rests(queue.cluster)[work.uid]
    assert rest.p10_s <= rest.p50_s <= rest.p90_s
    assert rest.p50_s == pytest.approx(600, rel=0.3)


def test_learning_and_predicting_twice_changes_nothing(queue: Queue) -> None:
    past(queue)
    waiting(queue)
    run_times.learn(cluster=queue.cluster)
    run_times.predict(cluster=queue.cluster)

    assert run_times.learn(cluster=queue.cluster) is None
    assert run_times.predict(cluster=queue.cluster) == 0
    assert Predictor.objects.count() == 1


def test_too_few_runs_leave_nothing_predicted(queue: Queue) -> None:
    finished(queue, 1, queue.cluster.now())
    waiting(queue)

    assert run_times.learn(cluster=queue.cluster) is None
    assert run_times.predict(cluster=queue.cluster) == 0


def test_ended_run_is_set_beside_what_was_said_first(queue: Queue) -> None:
    past(queue)
    work = waiting(queue)
    run_times.learn(cluster=queue.cluster)
    run_times.predict(cluster=queue.cluster)
    now = queue.cluster.now()
    Workload.objects.filter(pk=work.pk).update(
        state=State.FINISHED,
        outcome=Outcome.FAILED,
        started_at=now,
        finished_at=now + timedelta(seconds=700),
    )

    run_times.predict(cluster=queue.cluster)

    said = Prediction.objects.get(workload=work)
    assert said.ran_s == pytest.approx(700)
    assert said.cut_short


def test_boosted_model_that_is_demoted_leaves_history_serving(queue: Queue) -> None:
    past(queue)
    learned = run_times.learn(cluster=queue.cluster)
    Predictor.objects.update(kind="boosted")

    made = run_times.demote(cluster=queue.cluster, why="It lost its hold.")

    assert made is not None
    assert learned is not None
    assert run_times.serving(queue.cluster) == made
    assert Predictor.objects.get(pk=learned.pk).status == PredictorState.RETIRED
    assert run_times.demote(cluster=queue.cluster, why="Again.") is None


@pytest.mark.parametrize("count", [3, 30])
def test_pass_over_what_is_predicted_already_asks_as_often_however_much_lives(
    queue: Queue, django_assert_num_queries, count: int
) -> None:
    past(queue)
    for number in range(count):
        factories.make_workload(
            queue, name=f"train-{100 + number}", user="ada", submitted_at=queue.cluster.now()
        )
    run_times.learn(cluster=queue.cluster)
    run_times.predict(cluster=queue.cluster)
    with django_assert_num_queries(QUERIES):
        assert run_times.predict(cluster=queue.cluster) == 0


def told(queue: Queue, number: int, *, hours_ago: float, ran_s: float | None) -> Prediction:
    """Told 600 to 1,200 s before it ran, and how long it took."""
    started = queue.cluster.now() - timedelta(hours=hours_ago)
    work = factories.make_workload(
        queue, name=f"told-{number}", state=State.RUNNING, submitted_at=started,
        started_at=started, first_started_at=started,
    )  # fmt: skip
    rest = {"p10_s": 600, "p50_s": 900, "p90_s": 1200}
    said = {f"told_{name}": value for name, value in rest.items()}
    return Prediction.objects.create(
        workload=work, at=started, told_at=started, ran_s=ran_s, **rest, **said
    )


def test_run_counts_once_it_is_due_whether_it_has_ended_or_not(queue: Queue) -> None:
    told(queue, 1, hours_ago=0.1, ran_s=60)
    told(queue, 2, hours_ago=2, ran_s=700)
    told(queue, 3, hours_ago=3, ran_s=None)
    told(queue, 4, hours_ago=4, ran_s=30)
    held = run_times.hits(Prediction.objects.all(), queue.cluster.now(), 10)
    assert held == [True, False, False]


def test_what_was_told_while_it_ran_already_is_not_judged(queue: Queue) -> None:
    said = told(queue, 1, hours_ago=2, ran_s=700)
    Prediction.objects.filter(pk=said.pk).update(told_at=said.told_at + timedelta(minutes=5))
    assert run_times.hits(Prediction.objects.all(), queue.cluster.now(), 10) == []
