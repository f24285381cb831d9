"""ValidatingAdmissionPolicies and access reviews."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from .api import MERGE, Answer, Api, causes, config_map, eventually, pod

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"


def _deny(api: Api, name: str, spec: dict[str, Any]) -> None:
    """What the policy ``spec`` does not allow is refused in the namespace of ``api``."""
    api.create(POLICIES, {"metadata": {"name": name}, "spec": spec})
    here = {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    api.create(BINDINGS, {"metadata": {"name": name}, "spec": binding})


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
            {"name": "named", "expression": "has(object.data) && 'colour' in object.data"}
        ],
        "validations": [
            {"expression": "variables.named", "message": "Say a colour."},
            {
                "expression": "object.data['colour'] != 'red'",
                "messageExpression": "'Not ' + object.data['colour'] + ' in ' + request.namespace",
            },
        ],
    }
    _deny(api, name, spec)
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


@pytest.fixture
def on_subresources(api: Api) -> Iterator[str]:
    """In the test's namespace neither the status of a pod nor its binding says `forged`."""
    name = f"contract-{uuid.uuid4().hex[:10]}"
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [sub]}
        for operation, sub in (("UPDATE", "pods/status"), ("CREATE", "pods/binding"))
    ]
    named = "!has(object.metadata.annotations) || !('forged' in object.metadata.annotations)"
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": named, "message": "Forged."}],
    }
    _deny(api, name, spec)
    api.create("pods", pod("a", schedulerName="by-hand"))
    eventually(lambda: forged(api, "status").code == 422)
    yield name
    api.delete(BINDINGS, name)
    api.delete(POLICIES, name)


def forged(api: Api, sub: str) -> Answer:
    change = {"metadata": {"annotations": {"forged": str(time.monotonic())}}}
    return api.call("PATCH", api.path("pods", "a", sub), change, MERGE)


def test_policy_covers_the_subresources_that_it_names(api: Api, on_subresources: str) -> None:
    status = forged(api, "status").expect(422)
    said = f"ValidatingAdmissionPolicy '{on_subresources}' with binding '{on_subresources}' denied"
    assert status["message"] == f'pods "a" is forbidden: {said} request: Forged.'
    target = {"apiVersion": "v1", "kind": "Node", "name": "contract-node"}
    meta = {"name": "a", "annotations": {"forged": "1"}}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
    refused = api.call("POST", api.path("pods", "a", "binding"), binding).expect(422)
    assert refused["message"].endswith("denied request: Forged.")
    meta["annotations"] = {"honest": "1"}
    api.call("POST", api.path("pods", "a", "binding"), binding).expect(201)


def test_policy_on_subresources_leaves_the_object_itself_alone(
    api: Api, on_subresources: str
) -> None:
    forged(api, "").expect(200)


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
