"""Faults on purpose."""

from __future__ import annotations

import time

import pytest

from ..contract.api import MERGE, config_map
from .conftest import Cluster


def _codes(cluster: Cluster, count: int = 40) -> list[int]:
    path = cluster.api.path("configmaps", "a")
    return [
        cluster.api.call("PATCH", path, {"data": {"k": str(i)}}, MERGE).code for i in range(count)
    ]


def test_share_of_writes_conflicts_and_can_be_replayed(cluster: Cluster) -> None:
    cluster.api.create("configmaps", config_map("a"))
    cluster.server.faults.configure(conflict=0.5, seed=7)
    first = _codes(cluster)
    cluster.server.faults.configure(conflict=0.5, seed=7)
    assert _codes(cluster) == first
    assert 10 < first.count(409) < 30


def test_too_many_requests_says_when_to_come_back(cluster: Cluster) -> None:
    cluster.server.faults.configure(too_many=1, retry_after_s=3)
    answer = cluster.api.call("GET", "/api/v1/nodes")
    assert answer.expect(429)["details"]["retryAfterSeconds"] == 3
    assert answer.headers["Retry-After"] == "3"


def test_fault_strikes_before_anything_is_done(cluster: Cluster) -> None:
    cluster.server.faults.configure(server_error=1)
    cluster.api.call("POST", cluster.api.path("configmaps"), config_map("a")).expect(500)
    cluster.server.faults.clear()
    cluster.api.call("GET", cluster.api.path("configmaps", "a")).expect(404)


def test_faults_keep_to_their_paths_and_verbs(cluster: Cluster) -> None:
    cluster.server.faults.configure(server_error=1, path="/jobs", verbs=["delete"])
    cluster.api.get("configmaps")
    cluster.api.get("jobs")
    cluster.api.call("DELETE", cluster.api.path("jobs", "a")).expect(500)


def test_latency_delays_the_answer(cluster: Cluster) -> None:
    cluster.server.faults.configure(latency_s=0.1)
    begun = time.monotonic()
    cluster.api.get("configmaps")
    assert time.monotonic() - begun >= 0.1


def test_dropped_watch_breaks_off(cluster: Cluster) -> None:
    cluster.server.faults.configure(dropped_watch=1, drop_within_s=0.05)
    with (
        cluster.api.watch("configmaps", resourceVersion="1") as events,
        pytest.raises((ConnectionError, OSError, Exception)),
    ):
        next(events)


def test_all_connections_can_be_cut_at_once(cluster: Cluster) -> None:
    with cluster.api.watch("configmaps", resourceVersion="1") as events:
        cluster.server.drop_connections()
        with pytest.raises((ConnectionError, StopIteration, OSError)):
            next(events)


def test_faults_are_set_over_http(cluster: Cluster) -> None:
    told = cluster.api.call("POST", "/_weir/faults", {"server_error": 1, "verbs": ["GET"]})
    assert told.expect(200)["server_error"] == 1
    cluster.api.call("GET", "/api/v1/nodes").expect(500)
    cluster.api.call("DELETE", "/_weir/faults").expect(200)
    cluster.api.get("nodes")


@pytest.mark.parametrize("rules", [{"colour": 1}, {"conflict": 2}])
def test_rule_that_is_none_is_refused(cluster: Cluster, rules: dict[str, int]) -> None:
    refused = cluster.api.call("POST", "/_weir/faults", rules).expect(400)
    assert next(iter(rules)) in refused["message"]
