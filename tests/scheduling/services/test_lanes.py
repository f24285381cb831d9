"""What waits in the Celery queues of a cluster, as a heartbeat writes it down and pages read it."""

from __future__ import annotations

import pytest
from celery import Celery
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.models import Cluster, Lane
from scheduling.services.worker import lanes

pytestmark = pytest.mark.django_db


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Celery:
    app = Celery(broker="memory://", set_as_current=False)
    monkeypatch.setattr(lanes, "current_app", app)
    return app


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="lanes-test")


def waiting(cluster: Cluster) -> list[int | None]:
    return [lane.waiting for lane in lanes.lanes_of(cluster)]


def test_each_lane_counts_its_own_tasks(app: Celery, cluster: Cluster) -> None:
    for _ in range(2):
        app.send_task("t", queue="cluster-lanes-test")
    lanes.measure()
    assert waiting(cluster) == [2, 0, 0]


def test_page_reads_what_was_written_and_asks_no_broker(
    app: Celery, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes.measure()
    monkeypatch.setattr(app, "connection_for_read", pytest.fail)
    assert lanes.lanes_of(cluster)[0].asked_at is not None


def test_lane_that_was_never_asked_for_says_so(cluster: Cluster) -> None:
    (first, *_) = lanes.lanes_of(cluster)
    assert (first.waiting, first.asked_at) == (None, None)


def test_broker_that_does_not_answer_leaves_it_unknown(
    app: Celery, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise OperationalError("refused")

    monkeypatch.setattr(app, "connection_for_read", refuse)
    lanes.measure()
    assert waiting(cluster) == [None, None, None]


def test_lane_of_a_cluster_that_is_gone_is_forgotten(app: Celery, cluster: Cluster) -> None:
    lanes.measure()
    cluster.delete()
    lanes.measure()
    assert {lane.name for lane in Lane.objects.all()} == {"celery", "studies"}


def test_heartbeat_that_a_worker_takes_is_noted_at_its_lane(app: Celery, cluster: Cluster) -> None:
    lanes.measure()
    lanes.serve("cluster-lanes-test")
    served = Lane.objects.get(name="cluster-lanes-test").served_at
    assert served is not None
    assert (timezone.now() - served).total_seconds() < 5


def test_general_worker_is_seen_by_its_own_question(app: Celery, cluster: Cluster) -> None:
    names = lanes.measure()
    assert Lane.objects.get(name="celery").served_at is not None
    assert "celery" not in lanes.attended(names)
