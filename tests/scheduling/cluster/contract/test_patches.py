"""Patches of three kinds."""

from __future__ import annotations

from typing import Any

import pytest

from .api import JSON_PATCH, MERGE, STRATEGIC, Api, config_map, job


def test_merge_patch_adds_changes_and_removes(api: Api) -> None:
    api.create("configmaps", config_map("a", keep="1", change="1", drop="1"))
    change = {"data": {"change": "2", "drop": None, "new": "1"}}
    assert api.patch("configmaps", "a", change)["data"] == {
        "keep": "1", "change": "2", "new": "1",
    }  # fmt: skip


def test_merge_patch_replaces_lists(api: Api) -> None:
    made = api.create("jobs", job("a", suspend=True))
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    change = {"spec": {"template": {"spec": {"tolerations": tolerations}}}}
    patched = api.patch("jobs", "a", change)
    assert patched["spec"]["template"]["spec"]["tolerations"] == tolerations
    assert patched["spec"]["selector"] == made["spec"]["selector"]


def test_json_patch_applies_its_operations_in_order(api: Api) -> None:
    api.create("configmaps", config_map("a", old="1"))
    operations = [
        {"op": "test", "path": "/data/old", "value": "1"},
        {"op": "add", "path": "/data/new~1key", "value": "2"},
        {"op": "replace", "path": "/data/old", "value": "3"},
        {"op": "copy", "from": "/data/old", "path": "/data/copied"},
        {"op": "move", "from": "/data/copied", "path": "/data/moved"},
        {"op": "remove", "path": "/data/old"},
    ]
    # A config map's keys hold no slash, so the escaped one goes again.
    operations.append({"op": "remove", "path": "/data/new~1key"})
    patched = api.patch("configmaps", "a", operations, JSON_PATCH)
    assert patched["data"] == {"moved": "3"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/k", "value": "other"},
        {"op": "remove", "path": "/data/absent"},
        {"op": "replace", "path": "/absent/k", "value": "1"},
    ],
)
def test_json_patch_that_cannot_be_applied_changes_nothing(api: Api, operation: Any) -> None:
    made = api.create("configmaps", config_map("a", k="1"))
    operations = [{"op": "add", "path": "/data/new", "value": "1"}, operation]
    api.call("PATCH", api.path("configmaps", "a"), operations, JSON_PATCH).expect(422)
    assert api.get("configmaps", "a") == made


def test_json_patch_replaces_a_key_that_is_not_there_by_adding_it(api: Api) -> None:
    api.create("configmaps", config_map("a", k="1"))
    operations = [{"op": "replace", "path": "/data/absent", "value": "2"}]
    patched = api.patch("configmaps", "a", operations, JSON_PATCH)
    assert patched["data"] == {"k": "1", "absent": "2"}


def test_json_patch_guards_a_version(api: Api) -> None:
    made = api.create("jobs", job("a", suspend=True))
    version = made["metadata"]["resourceVersion"]
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": made["metadata"]["uid"]},
        {"op": "replace", "path": "/spec/parallelism", "value": 3},
    ]
    patched = api.patch("jobs", "a", operations, JSON_PATCH)
    assert patched["spec"]["parallelism"] == 3
    assert patched["metadata"]["resourceVersion"] != version


def test_strategic_patch_merges_containers_by_name(api: Api) -> None:
    body = job("a", suspend=True)
    containers = body["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "side", "image": "busybox"})
    api.create("jobs", body)
    limits = {"resources": {"limits": {"cpu": "2"}}}
    change = {"spec": {"template": {"spec": {"containers": [{"name": "side", **limits}]}}}}
    patched = api.patch("jobs", "a", change, STRATEGIC)
    main, side = patched["spec"]["template"]["spec"]["containers"]
    assert main["resources"] == {}
    assert side["resources"]["limits"] == {"cpu": "2"}
    assert side["image"] == "busybox"


def test_strategic_patch_replaces_tolerations(api: Api) -> None:
    template = {"spec": {"tolerations": [{"key": "old", "operator": "Exists"}]}}
    body = job("a", suspend=True)
    body["spec"]["template"]["spec"] |= template["spec"]
    api.create("jobs", body)
    new = [{"key": "new", "operator": "Exists"}]
    change = {"spec": {"template": {"spec": {"tolerations": new}}}}
    patched = api.patch("jobs", "a", change, STRATEGIC)
    assert patched["spec"]["template"]["spec"]["tolerations"] == new


def test_strategic_patch_deletes_list_items_and_map_keys(api: Api) -> None:
    body = config_map("a", keep="1", drop="1")
    body["metadata"]["finalizers"] = ["weir.dev/one", "weir.dev/two"]
    api.create("configmaps", body)
    change = {
        "data": {"drop": None},
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["weir.dev/one"]},
    }
    patched = api.patch("configmaps", "a", change, STRATEGIC)
    assert patched["data"] == {"keep": "1"}
    assert patched["metadata"]["finalizers"] == ["weir.dev/two"]
    api.patch("configmaps", "a", {"metadata": {"finalizers": None}})


def test_strategic_patch_merges_conditions_by_type(api: Api) -> None:
    api.create("nodes", {"metadata": {"name": api.namespace}})
    try:
        for kind in ("Ready", "Lit"):
            condition = {"type": kind, "status": "True", "reason": "x", "message": "x"}
            change = {"status": {"conditions": [condition]}}
            patched = api.patch("nodes", api.namespace, change, STRATEGIC, sub="status")
        assert {"Ready", "Lit"} <= {c["type"] for c in patched["status"]["conditions"]}
    finally:
        api.delete("nodes", api.namespace)


def test_patch_cannot_change_identity(api: Api) -> None:
    made = api.create("configmaps", config_map("a"))
    api.call("PATCH", api.path("configmaps", "a"), {"metadata": {"name": "b"}}, MERGE).expect(400)
    change = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "labels": {"a": "b"}}}
    patched = api.patch("configmaps", "a", change)
    assert patched["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
