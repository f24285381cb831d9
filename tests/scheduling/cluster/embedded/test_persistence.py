"""A second start goes on where the first one ended."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from workshop.testbed.server import EmbeddedServer, ManualClock

from ..contract.api import Api, config_map, eventually
from .conftest import Cluster


def test_objects_uids_and_time_survive(tmp_path: Path) -> None:
    path, clock = tmp_path / "cluster.sqlite3", ManualClock()
    with EmbeddedServer(clock=clock, path=path) as server:
        first = Cluster(server, clock)
        first.node("n1", gpus=4)
        made = first.job("a", gpus=2, annotations={"weir.dev/run-seconds": "100"})
        first.api.create("configmaps", config_map("gone"))
        first.api.delete("configmaps", "gone")
        first.step(50)
    later = ManualClock()
    with EmbeddedServer(clock=later, path=path) as server:
        second = Cluster(server, later)
        assert later.seconds() == clock.seconds()
        found = second.api.get("jobs", "a")
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert second.api.call("GET", second.api.path("configmaps", "gone")).code == 404
        assert len(second.pods("Running")) == 1
        second.step(52)
        assert second.status("a")["succeeded"] == 1


def test_versions_go_on_higher_and_the_old_history_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "cluster.sqlite3"
    with EmbeddedServer(path=path) as server:
        api = Api(server.url, namespace="default")
        old = api.create("configmaps", config_map("a"))["metadata"]["resourceVersion"]
    with EmbeddedServer(path=path) as server:
        api = Api(server.url, namespace="default")
        new = api.create("configmaps", config_map("b"))["metadata"]["resourceVersion"]
        assert int(new) > int(old)
        with api.watch("configmaps", resourceVersion=old) as events:
            assert next(events)["object"]["code"] == 410


def test_writes_reach_the_file_within_half_a_second(tmp_path: Path) -> None:
    path = tmp_path / "cluster.sqlite3"
    with EmbeddedServer(path=path) as server:
        Api(server.url, namespace="default").create("configmaps", config_map("a"))
        reader = sqlite3.connect(path)
        query = "SELECT count(*) FROM objects WHERE plural = 'configmaps'"
        eventually(lambda: reader.execute(query).fetchone()[0], within=5)
        reader.close()


def test_without_a_path_nothing_is_kept() -> None:
    with EmbeddedServer() as server:
        Api(server.url, namespace="default").create("configmaps", config_map("a"))
    with EmbeddedServer() as server:
        assert not Api(server.url, namespace="default").get("configmaps")["items"]


def test_stop_leaves_no_thread() -> None:
    before = threading.active_count()
    with EmbeddedServer():
        pass
    assert threading.active_count() == before


def test_what_was_made_before_counts_against_a_quota(tmp_path: Path) -> None:
    path, clock = tmp_path / "cluster.sqlite3", ManualClock()
    with EmbeddedServer(clock=clock, path=path) as server:
        first = Cluster(server, clock)
        first.job("a", gpus=2)
        first.step()
    with EmbeddedServer(clock=ManualClock(), path=path) as server:
        api = Api(server.url, namespace="default")
        hard = {"requests.nvidia.com/gpu": "2", "pods": "9"}
        api.create("resourcequotas", {"metadata": {"name": "cap"}, "spec": {"hard": hard}})
        server.settle()
        used = api.get("resourcequotas", "cap")["status"]["used"]
        assert used == {"requests.nvidia.com/gpu": "2", "pods": "1"}
