"""What tasks remember of their last pass: the next costs what is news, a kill loses and doubles nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.db import connections
from django.db.models import Model

from scheduling.models import (
    Cluster,
    Outcome,
    Prediction,
    State,
    TaskPass,
    Transition,
    UsageSample,
    WorkDay,
    Workload,
)
from scheduling.models.ledger import Resolution
from scheduling.services import run_times
from scheduling.services.ledger import demand, workdays
from scheduling.services.run_times import predicting
from scheduling.services.starts import outcomes
from scheduling.simulation.ahead.correction import Correction, ForecastKind
from tests.costs.scenario import busy_cluster
from tests.factories import NOW, make_workload

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Task(NamedTuple):
    module: Any
    run: Callable[[Cluster], Any]
    writes: type[Model]
    columns: tuple[str, ...]


TASKS = {
    "days": Task(workdays, workdays.roll_days, WorkDay, ("start", "user", "started", "waited_s")),
    "demand": Task(demand, demand.book, UsageSample, ("queue", "start", "demand_gpus")),
    "run times": Task(
        predicting, lambda cluster: run_times.predict(cluster=cluster), Prediction,
        ("workload__uid", "p10_s", "p50_s", "p90_s"),
    ),
    "correction": Task(
        outcomes, lambda cluster: outcomes.keep_correction(cluster, NOW), TaskPass, ("task", "found"),
    ),
}  # fmt: skip


@pytest.fixture
def at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "now", lambda cluster: NOW)


def lived_cluster(pending: int) -> Cluster:
    cluster = busy_cluster(pending)
    leaf = cluster.queues.get(
        path=Workload.objects.filter(uid="more-wait-0").values("queue__path")[:1]
    )
    UsageSample.objects.bulk_create(
        UsageSample(
            queue=leaf, gpu_class=cluster.gpu_classes.get(name="h100-80gb"),
            resolution=Resolution.HOUR, start=NOW.replace(minute=0, second=0) - i * HOUR, seconds=3600,
        )
        for i in range(1, 30)
    )  # fmt: skip
    run_times.learn(cluster=cluster)
    return cluster


def rows_of(task: Task) -> list[Any]:
    return sorted(map(str, task.writes.objects.values_list(*task.columns)))


def killed_before_it_keeps_its_mark(task: Task, cluster: Cluster) -> int:
    """The signal that ended a process which had done all but that."""
    connections.close_all()
    child = os.fork()
    if not child:
        task.module.keep = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        task.run(cluster)
        os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", TASKS)
def test_pass_killed_before_its_mark_loses_and_doubles_nothing(
    name: str, at_one_moment: None
) -> None:
    task, cluster = TASKS[name], lived_cluster(60)
    TaskPass.objects.all().delete()

    assert killed_before_it_keeps_its_mark(task, cluster) == signal.SIGKILL
    assert not TaskPass.objects.filter(task=task.module.TASK).exists()
    task.run(cluster)
    after_the_kill = rows_of(task)

    if task.writes is UsageSample:
        UsageSample.objects.update(demand_gpus=None)
    else:
        task.writes.objects.all().delete()
    TaskPass.objects.all().delete()
    task.run(cluster)
    assert after_the_kill
    assert after_the_kill == rows_of(task)


@pytest.mark.django_db
def test_days_seen_since_the_pass_read_them_are_rolled_up_by_the_next(
    at_one_moment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = lived_cluster(20)
    read = workdays.between

    def read_then_another_ends(*args: Any) -> Any:
        found = read(*args)
        if not Workload.objects.filter(user="late").exists():
            ended_yesterday(cluster)
        return found

    monkeypatch.setattr(workdays, "between", read_then_another_ends)
    workdays.roll_days(cluster)
    workdays.roll_days(cluster)

    assert WorkDay.objects.get(user="late").succeeded == 1


def ended_yesterday(cluster: Cluster) -> None:
    began = NOW - DAY
    work = make_workload(
        cluster.queues.get(path=Workload.objects.filter(uid="more-wait-0").values("queue__path")[:1]),
        name="late", user="late", state=State.FINISHED, outcome=Outcome.SUCCEEDED,
        submitted_at=began, first_started_at=began, started_at=began, finished_at=began + HOUR,
        gpu_class=cluster.gpu_classes.get(name="h100-80gb"),
    )  # fmt: skip
    Transition.objects.create(workload=work, at=began, to_state=State.RUNNING, gpus=1000)


@pytest.mark.django_db
def test_day_whose_work_changed_its_queue_is_rolled_up_again(at_one_moment: None) -> None:
    cluster = lived_cluster(20)
    workdays.roll_days(cluster)
    assert workdays.roll_days(cluster) == 0
    work = Workload.objects.get(uid="more-ended-0")
    Workload.objects.filter(pk=work.pk).update(queue=Workload.objects.get(uid="more-ended-1").queue)

    assert workdays.roll_days(cluster) > 0


@pytest.mark.django_db
def test_correction_is_learned_once_an_hour(at_one_moment: None) -> None:
    cluster = lived_cluster(20)
    assert outcomes.keep_correction(cluster, NOW) == Correction()
    TaskPass.objects.update(found={"LARGE": [0.5, 1.5]})

    assert outcomes.correction_of(cluster, NOW) == Correction({ForecastKind.LARGE: (0.5, 1.5)})
    assert outcomes.keep_correction(cluster, NOW) == Correction({ForecastKind.LARGE: (0.5, 1.5)})
    assert outcomes.keep_correction(cluster, NOW + HOUR) == Correction()


@pytest.mark.django_db
def test_pass_within_the_hour_predicts_what_is_new_runs_or_may_have_news(
    at_one_moment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = lived_cluster(60)
    run_times.predict(cluster=cluster)
    leaf = Workload.objects.get(uid="more-wait-0").queue
    make_workload(leaf, name="new", user="other", submitted_at=NOW)
    asked: list[str] = []
    prediction = predicting._prediction

    def heard(models: Any, predictor: Any, row: Workload, *rest: Any) -> Any:
        asked.append(row.name)
        return prediction(models, predictor, row, *rest)

    monkeypatch.setattr(predicting, "_prediction", heard)
    run_times.predict(cluster=cluster)
    once, asked[:] = set(asked), []
    Workload.objects.filter(uid="more-ended-0").update(finished_at=NOW)
    run_times.predict(cluster=cluster)

    assert "new" in once
    assert "more-wait-0" not in once
    assert "more-wait-0" in asked
    assert "new" not in asked
