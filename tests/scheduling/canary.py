"""Waiting until an API server goes by the admission policies that it was given, and by none that it lost.

It takes policies and bindings up by a watch of each, in the order of their writes, about once a second. So
once it acts by a policy and a binding that were written last, it acts by all before them.
"""

from __future__ import annotations

import secrets
from typing import Any

from scheduling.cluster.connection.client import Client, InvalidError
from tests.scheduling.kube import eventually

Json = dict[str, Any]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TAKEN_UP_S = 60.0


def wait_until_taken_up(client: Client) -> None:
    """Return once every policy written or deleted so far is in force or gone."""
    name = f"canary-{secrets.token_hex(4)}"
    made = [*_validating(name), *_mutating(name)]
    for path, body in made:
        client.create(path, body)
    try:
        eventually(lambda: _is_refused(client, name), TAKEN_UP_S)
        eventually(lambda: _is_labelled(client, f"{name}-other", name), TAKEN_UP_S)
    finally:
        for path, body in reversed(made):
            client.delete(f"{path}/{body['metadata']['name']}")


def _validating(name: str) -> list[tuple[str, Json]]:
    """Refuses the config map of that name."""
    rule = {"expression": f"object.metadata.name != '{name}'", "message": name}
    return _pair("Validating", name, {"validations": [rule]}, {"validationActions": ["Deny"]})


def _mutating(name: str) -> list[tuple[str, Json]]:
    """Labels another config map, which no rule refuses."""
    label = f"[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'{name}': 'seen'}}}}]"
    change = {"patchType": "JSONPatch", "jsonPatch": {"expression": label}}
    only = {"name": "own", "expression": f"object.metadata.name == '{name}-other'"}
    spec = {"mutations": [change], "matchConditions": [only], "reinvocationPolicy": "Never"}
    return _pair("Mutating", name, spec, {})


def _pair(kind: str, name: str, spec: Json, binding: Json) -> list[tuple[str, Json]]:
    """A policy about config maps and its binding, with the paths where they are created."""
    about = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    rules = {"resourceRules": [{**about, "resources": ["configmaps"]}]}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    plural = f"{ADMISSION}/{kind.lower()}admissionpolic"
    policy = {"failurePolicy": "Ignore", "matchConstraints": rules, **spec}
    return [
        (f"{plural}ies", {**head, "kind": f"{kind}AdmissionPolicy", "spec": policy}),
        (
            f"{plural}ybindings",
            {
                **head,
                "kind": f"{kind}AdmissionPolicyBinding",
                "spec": {"policyName": name, **binding},
            },
        ),
    ]


def _try(client: Client, name: str) -> Any:
    """What the server would make of a config map of that name."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return client.request("POST", CONFIG_MAPS, query={"dryRun": "All"}, body=body)


def _is_refused(client: Client, name: str) -> bool:
    try:
        _try(client, name)
    except InvalidError:
        return True
    return False


def _is_labelled(client: Client, name: str, label: str) -> bool:
    return label in (_try(client, name)["metadata"].get("labels") or {})
