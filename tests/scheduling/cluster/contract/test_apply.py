"""Server-side apply: who owns a field, and what happens when two want it."""

from __future__ import annotations

from typing import Any

from .api import Api, causes, config_map, job


def _owner(body: Any, manager: str) -> Any:
    return next(e for e in body["metadata"]["managedFields"] if e["manager"] == manager)


def test_apply_creates_and_repeats_without_a_write(api: Api) -> None:
    made = api.apply("configmaps", config_map("a", k="1"), "one").expect(201)
    again = api.apply("configmaps", config_map("a", k="1"), "one").expect(200)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert _owner(made, "one")["operation"] == "Apply"


def test_apply_removes_what_its_manager_no_longer_wants(api: Api) -> None:
    api.apply("configmaps", config_map("a", keep="1", drop="1"), "one").expect(201)
    assert api.apply("configmaps", config_map("a", keep="1"), "one").expect(200)["data"] == {
        "keep": "1"
    }


def test_apply_leaves_fields_of_others_alone(api: Api) -> None:
    api.apply("configmaps", config_map("a", mine="1"), "one").expect(201)
    api.apply("configmaps", config_map("a", theirs="1"), "two").expect(200)
    applied = api.apply("configmaps", config_map("a", mine="2"), "one").expect(200)
    assert applied["data"] == {"mine": "2", "theirs": "1"}


def test_apply_of_a_field_another_owns_is_a_conflict_naming_both(api: Api) -> None:
    api.apply("configmaps", config_map("a", k="1"), "one").expect(201)
    refused = api.apply("configmaps", config_map("a", k="2"), "two").expect(409)
    assert refused["reason"] == "Conflict"
    assert causes(refused) == {".data.k": "FieldManagerConflict"}
    assert '"one"' in refused["details"]["causes"][0]["message"]


def test_forced_apply_takes_the_field_over(api: Api) -> None:
    api.apply("configmaps", config_map("a", k="1"), "one").expect(201)
    taken = api.apply("configmaps", config_map("a", k="2"), "two", force="true").expect(200)
    assert taken["data"] == {"k": "2"}
    assert all(e["manager"] != "one" for e in taken["metadata"]["managedFields"])


def test_equal_values_are_owned_together_and_survive_one_owner(api: Api) -> None:
    api.apply("configmaps", config_map("a", k="1"), "one").expect(201)
    api.apply("configmaps", config_map("a", k="1"), "two").expect(200)
    left = api.apply("configmaps", config_map("a"), "one").expect(200)
    assert left["data"] == {"k": "1"}


def test_plain_writes_take_fields_from_an_applier(api: Api) -> None:
    api.apply("configmaps", config_map("a", k="1"), "one").expect(201)
    api.patch("configmaps", "a", {"data": {"k": "2"}})
    api.apply("configmaps", config_map("a", k="1"), "one").expect(409)


def test_list_items_are_owned_by_key(api: Api) -> None:
    body = job("a", suspend=True)
    api.apply("jobs", body, "one").expect(201)
    limits = {"name": "main", "resources": {"limits": {"cpu": "1"}}}
    change = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [limits]}}},
    }  # fmt: skip
    applied = api.apply("jobs", change, "two").expect(200)
    container = applied["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"cpu": "1"}
    assert container["image"] == "busybox"


def test_apply_without_a_manager_is_invalid(api: Api) -> None:
    path = api.path("configmaps", "a")
    api.call("PATCH", path, config_map("a"), "application/apply-patch+yaml").expect(422)


def test_apply_takes_yaml(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: 'yes'}\n"
    path = api.path("configmaps", "a")
    kind = "application/apply-patch+yaml"
    made = api.call("PATCH", path, text, kind, fieldManager="one").expect(201)
    assert made["data"] == {"k": "yes"}


def test_apply_to_an_object_made_otherwise_keeps_the_rest(api: Api) -> None:
    api.create("configmaps", config_map("a", other="1"), fieldManager="creator")
    applied = api.apply("configmaps", config_map("a", k="1"), "one").expect(200)
    assert applied["data"] == {"other": "1", "k": "1"}
    assert _owner(applied, "creator")["fieldsV1"]["f:data"]["f:other"] == {}
