"""A worker's queues follow the clusters there are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import OperationalError

from scheduling.models import Cluster
from scheduling.services.worker import consuming, parts
from scheduling.services.worker.consuming import ClusterQueues, follow


class Consumer:
    """What of a Celery consumer is used: operations are called at once."""

    def __init__(self, *queues: str) -> None:
        self.held = list(queues)
        self.app = SimpleNamespace(
            amqp=SimpleNamespace(queues=SimpleNamespace(consume_from=self.held))
        )
        self.add_task_queue = self.held.append
        self.cancel_task_queue = self.held.remove

    def call_soon(self, act, name: str) -> None:
        act(name)


@pytest.fixture
def fra1(db: None) -> Cluster:
    return Cluster.objects.create(name="fra1")


def test_new_cluster_is_consumed_and_a_gone_one_is_not(fra1: Cluster) -> None:
    consumer = Consumer("celery", "clusters", "cluster-old")
    follow(consumer)
    assert consumer.held == ["celery", "clusters", "cluster-fra1"]


def test_settled_worker_changes_nothing(fra1: Cluster) -> None:
    consumer = Consumer("clusters", "cluster-fra1")
    follow(consumer)
    assert consumer.held == ["clusters", "cluster-fra1"]


def test_database_that_is_away_leaves_the_queues(
    fra1: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(consuming.Cluster.objects, "values_list", away)
    consumer = Consumer("clusters", "cluster-old")
    follow(consumer)
    assert consumer.held == ["clusters", "cluster-old"]


@pytest.mark.parametrize(
    ("queues", "follows"),
    [(["celery", "clusters"], True), (["celery"], False), (["cluster-fra1"], False)],
)
def test_only_a_worker_for_all_clusters_follows_them(queues: list[str], follows: bool) -> None:
    assert ClusterQueues.include_if(None, Consumer(*queues)) is follows


@pytest.mark.parametrize(
    ("named", "served"),
    [
        ([], ["cluster-ams1", "cluster-fra1", "cluster-lon1"]),
        (["fra1"], ["cluster-fra1"]),
        (["fra1", "lon1"], ["cluster-fra1", "cluster-lon1"]),
        (["fra1", "gone"], ["cluster-fra1"]),
    ],
)
def test_process_serves_the_clusters_that_its_setting_names(
    fra1: Cluster, settings, named: list[str], served: list[str]
) -> None:
    Cluster.objects.bulk_create([Cluster(name="ams1"), Cluster(name="lon1")])
    settings.WEIR_ENGINE_CLUSTERS = named
    consumer = Consumer("clusters", "cluster-ams1")

    follow(consumer)

    assert sorted(consumer.held) == [*served, "clusters"]
    assert sorted(parts.engine_queues()) == [*served, "clusters"]
