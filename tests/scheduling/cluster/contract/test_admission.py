"""ValidatingAdmissionPolicies and access reviews."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from .api import Api, causes, config_map, eventually

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"


@pytest.fixture
def policy(api: Api) -> Iterator[str]:
    """In the test's namespace a ConfigMap says `colour`, and it is not red."""
    name = f"contract-{uuid.uuid4().hex[:10]}"
    rule = {
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"],
    }  # fmt: skip
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "ours", "expression": "!object.metadata.name.startsWith('kube-')"}
        ],
        "variables": [
            {"name": "named", "expression": "has(object.data) && 'colour' in object.data"},
        ],
        "validations": [
            {
                "expression": "variables.named",
                "message": "Say a colour.",
            },
            {
                "expression": "object.data['colour'] != 'red'",
                "messageExpression": "'Not ' + object.data['colour'] + ' in ' + request.namespace",
            },
        ],
    }
    api.create(POLICIES, {"metadata": {"name": name}, "spec": spec})
    here = {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    api.create(BINDINGS, {"metadata": {"name": name}, "spec": binding})
    eventually(lambda: refused(api, config_map("probe")))
    yield name
    api.delete(BINDINGS, name)
    api.delete(POLICIES, name)


def refused(api: Api, body: Any) -> Any:
    """The refusal of a dry run, or nothing."""
    answer = api.call("POST", api.path("configmaps"), body, dryRun="All")
    return answer.body if answer.code == 422 else None


def test_policy_denies_with_its_message(api: Api, policy: str) -> None:
    status = refused(api, config_map("a"))
    said = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: Say a colour."
    assert status["message"] == f'configmaps "a" is forbidden: {said}'
    assert (status["reason"], causes(status)) == ("Invalid", {"": ""})


def test_message_may_be_an_expression(api: Api, policy: str) -> None:
    assert refused(api, config_map("a", colour="red"))["message"].endswith(
        f"Not red in {api.namespace}"
    )


def test_what_the_policy_allows_is_stored(api: Api, policy: str) -> None:
    api.create("configmaps", config_map("a", colour="blue"))
    change = {"data": {"colour": "red"}}
    answer = api.call("PATCH", api.path("configmaps", "a"), change, "application/merge-patch+json")
    answer.expect(422)
    assert api.get("configmaps", "a")["data"] == {"colour": "blue"}


def test_match_condition_and_namespace_spare_others(api: Api, policy: str) -> None:
    api.create("configmaps", config_map("kube-own"))
    path = api.path("configmaps").replace(api.namespace, "default")
    api.call("POST", path, config_map(f"of-{policy}"), dryRun="All").expect(201)


def test_defaults_of_a_policy_are_filled_in(api: Api, policy: str) -> None:
    spec = api.get(POLICIES, policy)["spec"]
    assert (spec["failurePolicy"], spec["matchConstraints"]["matchPolicy"]) == (
        "Fail",
        "Equivalent",
    )
    assert spec["matchConstraints"]["resourceRules"][0]["scope"] == "*"


def test_access_review_is_answered_and_not_kept(api: Api) -> None:
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}},
    }
    answer = api.create("selfsubjectaccessreviews", asked)
    assert answer["status"]["allowed"] is True
    api.call("GET", api.path("selfsubjectaccessreviews")).expect(405)
