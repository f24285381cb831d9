"""Objects: identity, versions, conflicts."""

from __future__ import annotations

import re

from .api import MERGE, Api, causes, config_map, job, lease, pod

OTHER_UID = "00000000-0000-0000-0000-000000000000"


def test_created_object_carries_identity_and_version(api: Api) -> None:
    made = api.create("configmaps", config_map("a", k="v"))
    metadata = made["metadata"]
    assert re.fullmatch(r"[0-9a-f-]{36}", metadata["uid"])
    assert metadata["resourceVersion"].isdigit()
    assert metadata["creationTimestamp"].endswith("Z")
    assert metadata["namespace"] == api.namespace
    assert api.get("configmaps", "a") == made


def test_generate_name_appends_a_unique_suffix(api: Api) -> None:
    names = {
        api.create("configmaps", {"metadata": {"generateName": "run-"}})["metadata"]["name"]
        for _ in range(3)
    }
    assert len(names) == 3
    assert all(re.fullmatch(r"run-[a-z0-9]{5}", name) for name in names)


def test_second_create_of_a_name_is_already_exists(api: Api) -> None:
    api.create("configmaps", config_map("a"))
    refused = api.call("POST", api.path("configmaps"), config_map("a")).expect(409)
    assert refused["reason"] == "AlreadyExists"
    assert refused["message"] == 'configmaps "a" already exists'


def test_same_name_is_free_again_with_another_uid_after_deletion(api: Api) -> None:
    first = api.create("configmaps", config_map("a"))
    api.delete("configmaps", "a")
    assert api.create("configmaps", config_map("a"))["metadata"]["uid"] != first["metadata"]["uid"]


def test_put_with_a_stale_version_is_a_conflict_and_changes_nothing(api: Api) -> None:
    stale = api.create("configmaps", config_map("a", k="1"))
    api.patch("configmaps", "a", {"data": {"k": "2"}})
    stale["data"] = {"k": "3"}
    refused = api.call("PUT", api.path("configmaps", "a"), stale).expect(409)
    assert refused["reason"] == "Conflict"
    assert "the object has been modified" in refused["message"]
    assert api.get("configmaps", "a")["data"] == {"k": "2"}


def test_put_without_a_version_overwrites(api: Api) -> None:
    api.create("configmaps", config_map("a", k="1"))
    api.call("PUT", api.path("configmaps", "a"), config_map("a", k="2")).expect(200)
    assert api.get("configmaps", "a")["data"] == {"k": "2"}


def test_patch_with_a_stale_version_is_a_conflict(api: Api) -> None:
    made = api.create("configmaps", config_map("a", k="1"))
    api.patch("configmaps", "a", {"data": {"k": "2"}})
    version = made["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": version}, "data": {"k": "3"}}
    refused = api.call("PATCH", api.path("configmaps", "a"), change, MERGE).expect(409)
    assert refused["reason"] == "Conflict"


def test_patch_with_the_latest_version_is_taken(api: Api) -> None:
    version = api.create("configmaps", config_map("a"))["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": version}, "data": {"k": "1"}}
    assert api.patch("configmaps", "a", change)["data"] == {"k": "1"}


def test_put_with_another_uid_is_a_conflict(api: Api) -> None:
    made = api.create("configmaps", config_map("a"))
    made["metadata"]["uid"] = OTHER_UID
    api.call("PUT", api.path("configmaps", "a"), made).expect(409)


def test_patch_with_another_uid_changes_a_field_that_cannot_change(api: Api) -> None:
    api.create("configmaps", config_map("a"))
    change = {"metadata": {"uid": OTHER_UID}}
    refused = api.call("PATCH", api.path("configmaps", "a"), change, MERGE).expect(422)
    assert "metadata.uid" in causes(refused)


def test_every_write_raises_the_version_and_an_empty_one_does_not(api: Api) -> None:
    first = api.create("configmaps", config_map("a", k="1"))
    second = api.patch("configmaps", "a", {"data": {"k": "2"}})
    third = api.patch("configmaps", "a", {"data": {"k": "2"}})
    versions = [int(o["metadata"]["resourceVersion"]) for o in (first, second, third)]
    assert versions[0] < versions[1] == versions[2]


def test_put_to_nothing_is_not_found(api: Api) -> None:
    api.call("PUT", api.path("configmaps", "a"), config_map("a")).expect(404)


def test_put_of_a_lease_needs_the_version_it_was_made_from(api: Api) -> None:
    made = api.create("leases", lease("fence", "one"))
    refused = api.call("PUT", api.path("leases", "fence"), lease("fence", "two")).expect(422)
    assert refused["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    made["spec"]["holderIdentity"] = "two"
    api.call("PUT", api.path("leases", "fence"), made).expect(200)
    api.call("PUT", api.path("leases", "fence"), made).expect(409)


def test_put_under_another_name_is_a_bad_request(api: Api) -> None:
    api.create("configmaps", config_map("a"))
    api.call("PUT", api.path("configmaps", "a"), config_map("b")).expect(400)


def test_body_with_another_namespace_is_a_bad_request(api: Api) -> None:
    body = {"metadata": {"name": "a", "namespace": "default"}}
    api.call("POST", api.path("configmaps"), body).expect(400)


def test_generation_counts_changes_of_the_spec_only(api: Api) -> None:
    assert api.create("jobs", job("a", suspend=True))["metadata"]["generation"] == 1
    change = {"metadata": {"annotations": {"a": "b"}}}
    assert api.patch("jobs", "a", change)["metadata"]["generation"] == 1
    assert api.patch("jobs", "a", {"spec": {"parallelism": 2}})["metadata"]["generation"] == 2


def test_server_fields_of_a_client_are_ignored(api: Api) -> None:
    body = config_map("a")
    body["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    made = api.create("configmaps", body)
    assert made["metadata"]["uid"] != "mine"
    assert not made["metadata"]["creationTimestamp"].startswith("2001")


def test_dry_run_answers_and_stores_nothing(api: Api) -> None:
    made = api.create("configmaps", config_map("a"), dryRun="All")
    assert made["metadata"]["uid"]
    api.call("GET", api.path("configmaps", "a")).expect(404)
    api.create("configmaps", config_map("a", k="1"))
    path = api.path("configmaps", "a")
    shown = api.call("PATCH", path, {"data": {"k": "2"}}, MERGE, dryRun="All").expect(200)
    assert shown["data"] == {"k": "2"}
    api.call("DELETE", path, {"dryRun": ["All"]}).expect(200)
    assert api.get("configmaps", "a")["data"] == {"k": "1"}


def test_writer_is_named_in_managed_fields(api: Api) -> None:
    made = api.create("configmaps", config_map("a", k="v"), fieldManager="somebody")
    entry = made["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"]) == ("somebody", "Update")
    assert entry["fieldsV1"]["f:data"]["f:k"] == {}


def test_quantities_are_served_as_text(api: Api) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": 1}}
    resources = api.create("pods", body)["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"example.com/gpu": "1"}
    assert resources["requests"] == {"example.com/gpu": "1"}
