"""Watches: what a mirror of the cluster rests on."""

from __future__ import annotations

import time
from typing import Any

from .api import Api, config_map


def _seen(event: Any) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


def _labelled(name: str, **labels: str) -> dict[str, Any]:
    body = config_map(name)
    body["metadata"]["labels"] = labels
    return body


OURS = {"labelSelector": "set=ours"}


def _now(api: Api) -> str:
    version: str = api.get("configmaps")["metadata"]["resourceVersion"]
    return version


def test_watch_shows_every_change_in_order(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=_now(api), **OURS) as events:
        api.create("configmaps", _labelled("a", set="ours"))
        api.patch("configmaps", "a", {"data": {"k": "1"}})
        api.delete("configmaps", "a")
        assert [_seen(next(events)) for _ in range(3)] == [
            ("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"),
        ]  # fmt: skip


def test_watch_resumes_after_a_version_without_loss_or_repetition(api: Api) -> None:
    first = api.create("configmaps", _labelled("a", set="ours"))
    api.create("configmaps", _labelled("b", set="ours"))
    api.delete("configmaps", "b")
    version = first["metadata"]["resourceVersion"]
    with api.watch("configmaps", resourceVersion=version, **OURS) as events:
        assert [_seen(next(events)) for _ in range(2)] == [("ADDED", "b"), ("DELETED", "b")]


def test_versions_of_events_rise_and_a_deletion_has_its_own(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=_now(api), **OURS) as events:
        api.create("configmaps", _labelled("a", set="ours"))
        api.delete("configmaps", "a")
        added, deleted = (int(next(events)["object"]["metadata"]["resourceVersion"]) for _ in "12")
    assert added < deleted


def test_watch_without_a_version_begins_with_what_is_there(api: Api) -> None:
    api.create("configmaps", _labelled("a", set="ours"))
    with api.watch("configmaps", **OURS) as events:
        assert _seen(next(events)) == ("ADDED", "a")


def test_object_that_leaves_the_selection_is_deleted_for_the_watcher(api: Api) -> None:
    with api.watch("configmaps", resourceVersion=_now(api), **OURS) as events:
        api.create("configmaps", _labelled("a", set="theirs"))
        api.patch("configmaps", "a", {"metadata": {"labels": {"set": "ours"}}})
        api.patch("configmaps", "a", {"metadata": {"labels": {"set": "theirs"}}})
        assert [_seen(next(events)) for _ in range(2)] == [("ADDED", "a"), ("DELETED", "a")]


def test_watch_of_one_name_sees_no_other(api: Api) -> None:
    version = _now(api)
    with api.watch(
        "configmaps", resourceVersion=version, fieldSelector="metadata.name=b"
    ) as events:
        api.create("configmaps", config_map("a"))
        api.create("configmaps", config_map("b"))
        assert _seen(next(events)) == ("ADDED", "b")


def test_watch_ends_after_its_timeout(api: Api) -> None:
    begun = time.monotonic()
    with api.watch("configmaps", timeout=1, resourceVersion=_now(api), **OURS) as events:
        assert list(events) == []
    assert 0.5 < time.monotonic() - begun < 5


def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    api.create("configmaps", _labelled("a", set="ours"))
    query = {
        "sendInitialEvents": "true", "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan", **OURS,
    }  # fmt: skip
    with api.watch("configmaps", **query) as events:
        assert _seen(next(events)) == ("ADDED", "a")
        bookmark = next(events)
    assert bookmark["type"] == "BOOKMARK"
    annotations = bookmark["object"]["metadata"]["annotations"]
    assert annotations["k8s.io/initial-events-end"] == "true"


def test_two_watchers_see_the_same(api: Api) -> None:
    version = _now(api)
    with (
        api.watch("configmaps", resourceVersion=version, **OURS) as one,
        api.watch("configmaps", resourceVersion=version, **OURS) as other,
    ):
        api.create("configmaps", _labelled("a", set="ours"))
        assert next(one) == next(other)
