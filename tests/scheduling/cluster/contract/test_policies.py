"""Mutating policies, parameters and the functions that policies call."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from .api import Api, config_map, eventually

Json = dict[str, Any]
MUTATING = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
VALIDATING = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
FACTS = (
    r"'a\nb c'.split('\n') == ['a', 'b c']",
    "'a b c'.split(' ', 2) == ['a', 'b c']",
    "'a b'.substring(2) == 'b' && 'abc'.substring(0, 2) == 'ab' && 'ab'.indexOf('x') == -1",
    "' a '.trim() == 'a' && 'ab1'.matches('^[a-z]+[0-9]$') && !'ab'.matches('^b')",
    "[1, 2, 3].sum() == 6 && [1, 3, 2].max() == 3 && [].map(x, int(x)).sum() == 0",
    # Of '5000m' the real server makes no integer here; in kinds it knows it arrives as '5'.
    "quantity('1k').asInteger() == 1000",
    "duration('1h1s').getSeconds() == 3601 && 2 * 3 + 1 == 7 && int('12') == 12",
    "['a', 'b'].filter(x, x != 'a')[0] == 'b' && ['a'].all(x, ',a,'.contains(',' + x + ','))",
    "!(string(object.metadata.name) in ['x']) && has(object['metadata'].name)",
    "!authorizer.group('example.org').resource('none').check('create').allowed() || true",
)


def rules(*operations: str) -> Json:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": ["configmaps"],
    }
    return {"resourceRules": [rule]}


def inside(api: Api) -> Json:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}}


@pytest.fixture
def bind(api: Api) -> Iterator[Any]:
    """Makes a policy and its binding, which are gone after the test."""
    made: list[tuple[str, str]] = []

    def make(kinds: tuple[str, str], spec: Json, **binding: Any) -> str:
        name = f"contract-{uuid.uuid4().hex[:10]}"
        api.create(kinds[0], {"metadata": {"name": name}, "spec": spec})
        body = {"policyName": name, "matchResources": inside(api), **binding}
        api.create(kinds[1], {"metadata": {"name": name}, "spec": body})
        made.extend((kind, name) for kind in kinds)
        return name

    yield make
    for kind, name in reversed(made):
        api.delete(kind, name)


def verdict(api: Api, body: Json) -> str:
    answer = api.call("POST", api.path("configmaps"), body, dryRun="All")
    return str(answer.body["message"]) if answer.code == 422 else ""


@pytest.mark.parametrize("fact", FACTS)
def test_functions_of_policies_mean_the_same(api: Api, bind: Any, fact: str) -> None:
    validations = [
        {"expression": f"object.metadata.name != 'probe' || !({fact})", "message": "It is so."}
    ]
    spec = {"matchConstraints": rules("CREATE"), "validations": validations}
    bind(VALIDATING, spec, validationActions=["Deny"])
    said = eventually(lambda: verdict(api, config_map("probe")))
    assert said.endswith("denied request: It is so.")


def test_mutating_policy_patches_what_is_created(api: Api, bind: Any) -> None:
    patch = (
        "(has(object.metadata.annotations) ? [] : "
        '[JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) + '
        '[JSONPatch{op: "add", path: "/metadata/annotations/by~1whom", value: request.userInfo.username}]'
    )
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": rules("CREATE"),
        "matchConditions": [{"name": "one", "expression": "object.metadata.name != 'other'"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    bind(MUTATING, spec)

    def notes(name: str) -> Any:
        answer = api.call("POST", api.path("configmaps"), config_map(name), dryRun="All")
        return answer.expect(201)["metadata"].get("annotations")

    assert set(eventually(lambda: notes("one"))) == {"by/whom"}
    assert notes("other") is None


@pytest.mark.parametrize("absent", ["Allow", "Deny"])
def test_parameters_are_found_in_the_namespace_of_the_request(
    api: Api, bind: Any, absent: str
) -> None:
    """Of a kind that nothing else reads: a server stops following one when its last reader goes."""
    validations = [
        {
            "expression": "!(object.metadata.name in params.metadata.annotations)",
            "message": "Taken.",
        }
    ]
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ServiceAccount"},
        "matchConstraints": rules("CREATE"),
        "validations": validations,
    }
    reference = {"name": "limits", "parameterNotFoundAction": absent}
    if absent == "Deny":
        bind(VALIDATING, spec, validationActions=["Deny"], paramRef=reference)
        said = eventually(lambda: verdict(api, config_map("a")))
        assert "no params found for policy binding with `Deny` parameterNotFoundAction" in said
        return
    spec["paramKind"] = {"apiVersion": "v1", "kind": "ResourceQuota"}
    meta = {"name": "limits", "annotations": {"a": "1"}}
    api.create("resourcequotas", {"metadata": meta, "spec": {"hard": {"pods": "9"}}})
    bind(VALIDATING, spec, validationActions=["Deny"], paramRef=reference)
    assert eventually(lambda: verdict(api, config_map("a"))).endswith("Taken.")
    assert verdict(api, config_map("b")) == ""


def test_deletion_is_judged_by_what_stood_there(api: Api, bind: Any) -> None:
    validations = [{"expression": "oldObject.metadata.name != 'kept'", "message": "It stays."}]
    spec = {"matchConstraints": rules("DELETE"), "validations": validations}
    bind(VALIDATING, spec, validationActions=["Deny"])
    for name in ("kept", "other"):
        api.create("configmaps", config_map(name))
    path = api.path("configmaps", "kept")
    refused = eventually(lambda: api.call("DELETE", path, dryRun="All").code == 422)
    assert refused
    api.call("DELETE", api.path("configmaps", "other")).expect(200)
