"""The bounded history: resuming, 410, bookmarks."""

from __future__ import annotations

from workshop.testbed.server import EmbeddedServer

from ..contract.api import Api, config_map
from .conftest import Cluster


def test_version_older_than_the_history_is_expired(cluster: Cluster) -> None:
    version = cluster.api.create("configmaps", config_map("a"))["metadata"]["resourceVersion"]
    cluster.api.patch("configmaps", "a", {"data": {"k": "1"}})
    cluster.server.compact()
    with cluster.api.watch("configmaps", resourceVersion=version) as events:
        error = next(events)
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    assert error["object"]["reason"] == "Expired"


def test_history_forgets_its_oldest_events() -> None:
    with EmbeddedServer(history=10) as server:
        api = Api(server.url, namespace="default")
        versions = [
            api.create("configmaps", config_map(f"c{i}"))["metadata"]["resourceVersion"]
            for i in range(20)
        ]
        with api.watch("configmaps", resourceVersion=versions[0]) as events:
            assert next(events)["type"] == "ERROR"
        with api.watch("configmaps", resourceVersion=versions[9]) as events:
            assert next(events)["object"]["metadata"]["name"] == "c10"


def test_bookmarks_move_a_quiet_watch_on() -> None:
    with EmbeddedServer(bookmark_every_s=0.05) as server:
        api = Api(server.url, namespace="default")
        version = api.get("jobs")["metadata"]["resourceVersion"]
        with api.watch("jobs", resourceVersion=version, allowWatchBookmarks="true") as events:
            written = api.create("configmaps", config_map("a"))["metadata"]["resourceVersion"]
            marks = [next(events) for _ in range(3)]
    assert {mark["type"] for mark in marks} == {"BOOKMARK"}
    assert int(marks[-1]["object"]["metadata"]["resourceVersion"]) >= int(written)


def test_continue_of_a_forgotten_list_is_expired(cluster: Cluster) -> None:
    for name in "abc":
        cluster.api.create("configmaps", config_map(name))
    first = cluster.api.get("configmaps", limit=1)["metadata"]["continue"]
    for _ in range(70):
        cluster.api.get("configmaps", limit=1)
    cluster.api.call("GET", cluster.api.path("configmaps"), **{"continue": first}).expect(410)
