"""Deletion: finalizers, preconditions, dependents, namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from .api import Api, config_map, eventually, job, pod


def _gone(api: Api, plural: str, name: str) -> bool:
    return api.call("GET", api.path(plural, name)).code == 404


def test_finalizer_holds_a_deleted_object_until_it_is_removed(api: Api) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["weir.dev/hold"]
    api.create("configmaps", body)
    marked = api.delete("configmaps", "a")
    assert marked["metadata"]["deletionTimestamp"]
    assert not _gone(api, "configmaps", "a")
    api.patch("configmaps", "a", {"metadata": {"finalizers": None}})
    assert _gone(api, "configmaps", "a")


def test_no_finalizer_can_be_added_to_a_deleted_object(api: Api) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["weir.dev/hold"]
    api.create("configmaps", body)
    api.delete("configmaps", "a")
    change = {"metadata": {"finalizers": ["weir.dev/hold", "weir.dev/late"]}}
    path = api.path("configmaps", "a")
    api.call("PATCH", path, change, "application/merge-patch+json").expect(422)
    api.patch("configmaps", "a", {"metadata": {"finalizers": None}})


def test_deletion_answers_with_a_status_but_for_a_pod_with_the_pod(api: Api) -> None:
    api.create("configmaps", config_map("a"))
    answer = api.delete("configmaps", "a")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    api.create("pods", pod("a"))
    assert api.delete("pods", "a", gracePeriodSeconds=0)["kind"] == "Pod"


@pytest.mark.parametrize("condition", ["uid", "resourceVersion"])
def test_precondition_that_does_not_hold_is_a_conflict(api: Api, condition: str) -> None:
    made = api.create("configmaps", config_map("a"))
    path = api.path("configmaps", "a")
    wrong = {"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": "1"}
    api.call("DELETE", path, {"preconditions": {condition: wrong[condition]}}).expect(409)
    right = {"preconditions": {condition: made["metadata"][condition]}}
    api.call("DELETE", path, right).expect(200)


def test_second_deletion_is_not_found(api: Api) -> None:
    api.create("configmaps", config_map("a"))
    api.delete("configmaps", "a")
    api.call("DELETE", api.path("configmaps", "a")).expect(404)


def test_collection_is_deleted_by_selector(api: Api) -> None:
    for name in "abc":
        body = config_map(name)
        body["metadata"]["labels"] = {"drop": "yes" if name != "b" else "no"}
        api.create("configmaps", body)
    api.call("DELETE", api.path("configmaps"), labelSelector="drop=yes").expect(200)
    left = api.get("configmaps", labelSelector="drop")["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


def test_pod_without_a_node_is_gone_at_once(api: Api) -> None:
    api.create("pods", pod("a"))
    api.delete("pods", "a")
    assert _gone(api, "pods", "a")


def _owned(name: str, owner: Any) -> dict[str, Any]:
    body = config_map(name)
    body["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        }
    ]  # fmt: skip
    return body


@pytest.mark.controllers
@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependents_go_with_their_owner(api: Api, policy: str) -> None:
    owner = api.create("configmaps", config_map("owner"))
    child = api.create("configmaps", _owned("child", owner))
    api.create("configmaps", _owned("grandchild", child))
    api.delete("configmaps", "owner", propagationPolicy=policy)
    for name in ("owner", "child", "grandchild"):
        eventually(lambda name=name: _gone(api, "configmaps", name))


@pytest.mark.controllers
def test_orphans_stay_without_their_owner(api: Api) -> None:
    owner = api.create("configmaps", config_map("owner"))
    api.create("configmaps", _owned("child", owner))
    api.delete("configmaps", "owner", propagationPolicy="Orphan")
    eventually(lambda: _gone(api, "configmaps", "owner"))
    assert "ownerReferences" not in api.get("configmaps", "child")["metadata"]


@pytest.mark.controllers
def test_job_deleted_without_a_policy_leaves_its_pods(api: Api) -> None:
    api.create("jobs", job("a"))
    name = eventually(lambda: api.get("pods")["items"])[0]["metadata"]["name"]
    api.delete("jobs", "a")
    eventually(lambda: _gone(api, "jobs", "a"))
    assert "ownerReferences" not in api.get("pods", name)["metadata"]


@pytest.mark.controllers
def test_job_deleted_in_the_background_takes_its_pods_along(api: Api) -> None:
    api.create("jobs", job("a"))
    eventually(lambda: api.get("pods")["items"])
    api.delete("jobs", "a", propagationPolicy="Background")
    eventually(lambda: not api.get("pods")["items"])


@pytest.mark.controllers
def test_namespace_takes_its_contents_along_and_takes_nothing_new(api: Api) -> None:
    name = f"{api.namespace}-x"
    api.create("namespaces", {"metadata": {"name": name}})
    inside = Api(api.url, api.token, api.ca, name)
    body = config_map("a")
    body["metadata"]["finalizers"] = ["weir.dev/hold"]
    inside.create("configmaps", body)
    inside.delete("namespaces", name)
    assert inside.get("namespaces", name)["status"]["phase"] == "Terminating"
    refused = inside.call("POST", inside.path("configmaps"), config_map("b")).expect(403)
    assert "because it is being terminated" in refused["message"]
    eventually(lambda: inside.get("configmaps", "a")["metadata"].get("deletionTimestamp"))
    inside.patch("configmaps", "a", {"metadata": {"finalizers": None}})
    eventually(lambda: _gone(inside, "namespaces", name))
