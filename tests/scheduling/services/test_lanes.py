"""What waits in the Celery queues of a cluster, as its broker tells."""

from __future__ import annotations

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from scheduling.models import Cluster
from scheduling.services.worker import lanes


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Celery:
    app = Celery(broker="memory://", set_as_current=False)
    monkeypatch.setattr(lanes, "current_app", app)
    return app


def waiting(name: str) -> list[int | None]:
    return [lane.waiting for lane in lanes.lanes_of(Cluster(name=name))]


def test_each_lane_counts_its_own_tasks(app: Celery) -> None:
    for _ in range(2):
        app.send_task("t", queue="cluster-lanes-test")
    assert waiting("lanes-test") == [2, 0]


def test_lane_that_nothing_was_ever_put_into_is_empty(app: Celery) -> None:
    assert waiting("lanes-untouched")[0] == 0


def test_broker_that_does_not_answer_leaves_it_unknown(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise OperationalError("refused")

    monkeypatch.setattr(app, "connection_for_read", refuse)
    assert waiting("lanes-test") == [None, None]
