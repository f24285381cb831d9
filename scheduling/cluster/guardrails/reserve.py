"""Nodes that take GPU work only: pods of managed namespaces that ask for no GPU are kept off them.

Kubernetes has no way to keep a part of a node's CPU for pods with GPUs, and the scheduler places what comes
first: pods without GPUs that fill the CPU of a GPU node make its GPUs useless. So a MutatingAdmissionPolicy
gives such pods a required node affinity, which the scheduler and the kubelet hold to.

Pods of a DaemonSet are left alone, by whoever makes them: they are there for the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from scheduling.cluster.adapters.cel import gpu_variables
from scheduling.cluster.guardrails import admission
from scheduling.cluster.guardrails.kinds import KINDS
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]
Labels = Mapping[str, str]

NAME = "weir-gpu-nodes"
_OF_DAEMON_SETS = "system:serviceaccount:kube-system:daemon-set-controller"
_AFFINITY = "object.spec.affinity"
_NODE = f"{_AFFINITY}.nodeAffinity"
_REQUIRED = f"{_NODE}.requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = f"{_REQUIRED}.nodeSelectorTerms"
_TYPE = "Object.spec.affinity"
_REQUIRED_TYPE = f"{_TYPE}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_TERM_TYPE = f"{_REQUIRED_TYPE}.nodeSelectorTerms"


def policy(reserved: Sequence[Labels], gpu_resources: Sequence[str]) -> list[Json]:
    """The policy that keeps pods without GPUs off the nodes that carry all of one of ``reserved``, and its
    binding. Nothing where none is reserved."""
    if not reserved:
        return []
    pods = next(kind for kind in KINDS if kind.resource == "pods")
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [rule],
            "namespaceSelector": {"matchLabels": {labels.MANAGED: "true"}},
        },
        "matchConditions": [
            {
                "name": "no-daemon-set",
                "expression": f"request.userInfo.username != '{_OF_DAEMON_SETS}'",
            }
        ],
        "variables": [
            *({"name": n, "expression": e} for n, e in gpu_variables(gpu_resources).items()),
            {"name": "podSpecs", "expression": pods.pod_specs},
            {"name": "asksGpus", "expression": admission.asks_gpus(pods)},
            {"name": "hasTerms", "expression": f"{_there(_REQUIRED)} && size({_TERMS}) > 0"},
        ],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": _patch(_ways_out(reserved))}}
        ],
    }
    binding = {"policyName": NAME}
    return [
        {"apiVersion": admission.API, "kind": kind, "metadata": {"name": NAME}, "spec": spec_}
        for kind, spec_ in (
            ("MutatingAdmissionPolicy", spec),
            ("MutatingAdmissionPolicyBinding", binding),
        )
    ]


def _ways_out(reserved: Sequence[Labels]) -> list[list[tuple[str, str]]]:
    """Labels of which a node must lack all, for each way to carry none of ``reserved`` whole: it is enough to
    lack one label of each."""
    ways = product(*(sorted(labelled.items()) for labelled in reserved))
    return [list(way) for way in dict.fromkeys(tuple(sorted(set(way))) for way in ways)]


def _alone(ways: Sequence[Sequence[tuple[str, str]]]) -> str:
    """The terms of a pod that has none, of which one has to be met: a way out each."""
    return f"[{', '.join(f'{_TERM_TYPE}{{matchExpressions: {_lacks(way)}}}' for way in ways)}]"


def _with_own(ways: Sequence[Sequence[tuple[str, str]]]) -> str:
    """The pod's own terms, each with each way out."""
    return " + ".join(
        f"{_TERMS}.map(t, {_TERM_TYPE}{{"
        f"matchExpressions: {_copied('matchExpressions')} + {_lacks(way)}, "
        f"matchFields: {_copied('matchFields')}}})"
        for way in ways
    )


def _lacks(way: Sequence[tuple[str, str]]) -> str:
    made = f"{_TERM_TYPE}.matchExpressions"
    parts = (
        f"{made}{{key: '{key}', operator: 'NotIn', values: ['{value}']}}" for key, value in way
    )
    return f"[{', '.join(parts)}]"


def _copied(part: str) -> str:
    made = f"{_TERM_TYPE}.{part}{{key: e.key, operator: e.operator, values: has(e.values) ? e.values : []}}"
    return f"(has(t.{part}) ? t.{part}.map(e, {made}) : [])"


def _patch(ways: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Sets the terms at the deepest place that is there."""
    alone = f"{_REQUIRED_TYPE}{{nodeSelectorTerms: {_alone(ways)}}}"
    own = f"{_REQUIRED_TYPE}{{nodeSelectorTerms: {_with_own(ways)}}}"
    node = f"{_TYPE}.nodeAffinity{{requiredDuringSchedulingIgnoredDuringExecution: {alone}}}"
    path = "/spec/affinity"
    required = f"{path}/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    return (
        "variables.asksGpus ? [] : "
        f"!has({_AFFINITY}) ? [{_add(path, f'{_TYPE}{{nodeAffinity: {node}}}')}] : "
        f"!has({_NODE}) ? [{_add(f'{path}/nodeAffinity', node)}] : "
        f"[{_add(required, f'variables.hasTerms ? {own} : {alone}')}]"
    )


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: "{path}", value: {value}}}'


def _there(path: str) -> str:
    """Whether all of ``path`` below the spec of the object is there."""
    parts = path.split(".")
    return " && ".join(f"has({'.'.join(parts[:i])})" for i in range(3, len(parts) + 1))
