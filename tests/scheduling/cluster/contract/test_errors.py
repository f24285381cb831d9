"""Refusals: every one is a Status that a program can read."""

from __future__ import annotations

import pytest

from .api import Api, causes, config_map, job, pod


def test_missing_object_is_a_status_with_details(api: Api) -> None:
    assert api.call("GET", api.path("jobs", "nope")).expect(404) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'jobs.batch "nope" not found',
        "reason": "NotFound",
        "details": {"name": "nope", "group": "batch", "kind": "jobs"},
        "code": 404,
    }


def test_unknown_resource_is_not_found(api: Api) -> None:
    api.call("GET", f"/apis/batch/v1/namespaces/{api.namespace}/dances").expect(404)


def test_create_in_a_missing_namespace_is_not_found(api: Api) -> None:
    path = "/api/v1/namespaces/contract-absent/configmaps"
    refused = api.call("POST", path, config_map("a")).expect(404)
    assert refused["message"] == 'namespaces "contract-absent" not found'


def test_post_to_an_object_is_not_allowed(api: Api) -> None:
    api.create("configmaps", config_map("a"))
    refused = api.call("POST", api.path("configmaps", "a"), config_map("a")).expect(405)
    assert refused["reason"] == "MethodNotAllowed"


def test_unknown_accept_is_not_acceptable(api: Api) -> None:
    path = api.path("configmaps")
    assert api.call("GET", path, headers={"Accept": "text/csv"}).code == 406


def test_unknown_content_type_is_unsupported(api: Api) -> None:
    api.call("POST", api.path("configmaps"), b"name=a", "text/csv").expect(415)
    api.create("configmaps", config_map("a"))
    api.call("PATCH", api.path("configmaps", "a"), {}, "application/json").expect(415)


def test_body_that_is_no_json_is_a_bad_request(api: Api) -> None:
    refused = api.call("POST", api.path("configmaps"), b"{oops").expect(400)
    assert refused["reason"] == "BadRequest"


def test_body_of_the_wrong_shape_is_a_bad_request(api: Api) -> None:
    api.call("POST", api.path("jobs"), {"metadata": {"name": "a"}, "spec": []}).expect(400)


def test_object_of_another_kind_is_a_bad_request(api: Api) -> None:
    api.call("POST", api.path("jobs"), config_map("a")).expect(400)


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.", "x" * 254])
def test_name_outside_rfc_1123_is_invalid(api: Api, name: str) -> None:
    refused = api.call("POST", api.path("configmaps"), config_map(name)).expect(422)
    assert refused["reason"] == "Invalid"
    assert causes(refused)["metadata.name"] == "FieldValueInvalid"


def test_missing_name_is_required(api: Api) -> None:
    refused = api.call("POST", api.path("configmaps"), {"metadata": {}}).expect(422)
    assert causes(refused)["metadata.name"] == "FieldValueRequired"


@pytest.mark.parametrize("value", ["-x", "a b", "x" * 64])
def test_label_value_that_is_none_is_invalid(api: Api, value: str) -> None:
    body = config_map("a")
    body["metadata"]["labels"] = {"key": value}
    refused = api.call("POST", api.path("configmaps"), body).expect(422)
    assert causes(refused) == {"metadata.labels": "FieldValueInvalid"}


def test_all_faults_come_at_once_with_their_fields(api: Api) -> None:
    body = job("a", parallelism=-1)
    body["spec"]["template"]["spec"]["containers"][0].pop("image")
    refused = api.call("POST", api.path("jobs"), body).expect(422)
    assert refused["details"]["kind"] == "Job"
    assert refused["details"]["group"] == "batch"
    assert causes(refused) == {
        "spec.parallelism": "FieldValueInvalid",
        "spec.template.spec.containers[0].image": "FieldValueRequired",
    }


def test_pod_without_containers_is_invalid(api: Api) -> None:
    refused = api.call("POST", api.path("pods"), pod("a", containers=[])).expect(422)
    assert causes(refused) == {"spec.containers": "FieldValueRequired"}


def test_pod_of_an_unknown_priority_class_is_forbidden(api: Api) -> None:
    body = pod("a", priorityClassName="contract-absent")
    refused = api.call("POST", api.path("pods"), body).expect(403)
    assert "no PriorityClass with name contract-absent was found" in refused["message"]


def test_spec_of_a_pod_is_immutable(api: Api) -> None:
    api.create("pods", pod("a"))
    change = {"spec": {"nodeSelector": {"other": "yes"}}}
    kind = "application/merge-patch+json"
    refused = api.call("PATCH", api.path("pods", "a"), change, kind).expect(422)
    assert causes(refused) == {"spec": "FieldValueForbidden"}


def test_unreadable_selectors_are_bad_requests(api: Api) -> None:
    api.call("GET", api.path("pods"), labelSelector="a in b").expect(400)
    api.call("GET", api.path("pods"), fieldSelector="spec.colour=red").expect(400)


def test_extended_resource_is_whole_and_equal_to_its_limit(api: Api) -> None:
    field = "spec.containers[0].resources"
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "500m"}}
    refused = api.call("POST", api.path("pods"), body).expect(422)
    assert f"{field}.limits[example.com/gpu]" in causes(refused)
    body["spec"]["containers"][0]["resources"] = {"requests": {"example.com/gpu": "1"}}
    refused = api.call("POST", api.path("pods"), body).expect(422)
    assert causes(refused) == {f"{field}.limits": "FieldValueRequired"}


def test_unknown_field_is_dropped_or_refused_as_the_client_asks(api: Api) -> None:
    body = job("a", paralelism=2)
    path = api.path("jobs")
    refused = api.call("POST", path, body, fieldValidation="Strict").expect(400)
    assert 'unknown field "spec.paralelism"' in refused["message"]
    assert "paralelism" not in api.create("jobs", body, fieldValidation="Ignore")["spec"]


@pytest.mark.parametrize("option", ["dryRun", "propagationPolicy"])
def test_option_with_an_unknown_value_is_invalid(api: Api, option: str) -> None:
    api.create("configmaps", config_map("a"))
    api.call("DELETE", api.path("configmaps", "a"), **{option: "Sometimes"}).expect(422)
