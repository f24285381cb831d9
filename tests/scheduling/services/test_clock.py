"""The process that runs the cycles of clusters asks for them itself."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduling.models import Cluster, ClusterMode
from scheduling.services.worker import clock as clock_module
from scheduling.services.worker.clock import Clock, ClusterClock, tick

pytestmark = pytest.mark.django_db


class App:
    """What of a Celery application is used; notes what was asked for: (task, cluster, queue)."""

    def __init__(self, *lanes: str) -> None:
        self.amqp = SimpleNamespace(queues=SimpleNamespace(consume_from=lanes))
        self.asked: list[tuple[str, int, str]] = []

    def send_task(
        self, name: str, args: list[object], queue: str, expires: float, retry: bool
    ) -> None:
        assert expires > 0
        assert not retry
        self.asked.append((name.rpartition(".")[2], args[0], queue))  # type: ignore[arg-type] # a key

    def cycles(self) -> list[str]:
        return [queue for task, _, queue in self.asked if task == "run_cycle"]


def make(name: str, mode: str = ClusterMode.ENFORCE, **columns: object) -> Cluster:
    return Cluster.objects.create(name=name, mode=mode, **columns)


def test_cycle_and_guard_of_each_cluster_are_asked_for_on_its_own_lane() -> None:
    one, two = make("a"), make("b", ClusterMode.OBSERVE)
    app = App("clusters", "cluster-a", "cluster-b")
    Clock(app).tick()
    assert app.asked == [
        ("run_cycle", one.pk, "cluster-a"), ("guard", one.pk, "cluster-a"),
        ("run_cycle", two.pk, "cluster-b"), ("guard", two.pk, "cluster-b"),
    ]  # fmt: skip


def test_paused_cluster_is_left_alone() -> None:
    make("a", ClusterMode.PAUSED)
    app = App("cluster-a")
    Clock(app).tick()
    assert app.asked == []


def test_cluster_of_another_process_is_left_to_it() -> None:
    make("a")
    make("b")
    app = App("cluster-b")
    Clock(app).tick()
    assert app.cycles() == ["cluster-b"]


def test_cluster_that_was_planned_just_now_is_not_asked_for() -> None:
    make("a", planned_at=timezone.now())
    app = App("cluster-a")
    Clock(app).tick()
    assert app.cycles() == []


def test_cluster_whose_interval_is_over_is_asked_for() -> None:
    make("a", planned_at=timezone.now() - timedelta(seconds=5), cycle_interval_s=5)
    app = App("cluster-a")
    Clock(app).tick()
    assert app.cycles() == ["cluster-a"]


def test_cycle_that_was_asked_for_just_now_is_not_asked_for_again() -> None:
    make("a")
    app = App("cluster-a")
    clock = Clock(app)
    clock.tick()
    clock.tick()
    assert app.cycles() == ["cluster-a"]


def test_cluster_is_measured_where_it_says_where() -> None:
    make("a", metrics_url="http://127.0.0.1:9")
    make("b")
    app = App("cluster-a", "cluster-b")
    Clock(app).tick()
    assert [queue for task, _, queue in app.asked if task == "measure"] == ["cluster-a"]


def test_tick_over_twenty_clusters_is_one_query() -> None:
    lanes = [f"cluster-c{make(f'c{number}').name[1:]}" for number in range(20)]
    clock = Clock(App(*lanes))
    with CaptureQueriesContext(connection) as queries:
        clock.tick()
    assert len(queries) == 1


def test_clock_of_clusters_that_are_gone_is_forgotten() -> None:
    cluster = make("a")
    clock = Clock(App("cluster-a"))
    clock.tick()
    cluster.delete()
    clock.tick()
    assert clock._last == {}


@pytest.mark.parametrize(
    ("queues", "ticks"),
    [(["clusters"], True), (["cluster-a"], True), (["celery", "studies"], False)],
)
def test_only_a_worker_of_clusters_has_a_clock(queues: list[str], ticks: bool) -> None:
    assert ClusterClock.include_if(None, SimpleNamespace(app=App(*queues))) is ticks  # type: ignore[arg-type] # unused


def test_broker_that_is_away_ends_no_tick_and_is_asked_again_by_the_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Celery ends the whole process with the thread of its timer."""
    tries = []

    def refuse(name: str, **options: object) -> None:
        tries.append(name)
        raise ConnectionError("no route")

    make("a")
    app = App("cluster-a")
    monkeypatch.setattr(app, "send_task", refuse)
    monkeypatch.setattr(clock_module, "close_old_connections", lambda: None)
    clock = Clock(app)  # type: ignore[arg-type] # what of it is used
    tick(clock)
    tick(clock)

    assert tries == ["scheduling.tasks.run_cycle"] * 2
    assert "no route" in caplog.text
