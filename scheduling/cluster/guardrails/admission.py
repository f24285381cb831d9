"""The rule that GPU work in managed namespaces names a queue and starts suspended, as admission policies.

One policy a kind, because each keeps its pod templates and its switch elsewhere. Only what no other
object controls is judged: pods of a Job, and Jobs of a larger object, follow their owner's turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.cluster import labels

Json = dict[str, Any]

API = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Kind:
    """How admission policies read a kind. ``pod_specs`` and ``waits`` are CEL: the list of its pods'
    specs, and whether it is created waiting; ``remedy`` says how to make it so."""

    name: str
    group: str
    version: str
    resource: str
    pod_specs: str
    waits: str
    remedy: str


SUSPENDED = "has(object.spec.suspend) && object.spec.suspend == true"
SUSPEND = "Set spec.suspend: true"

KINDS: tuple[Kind, ...] = (
    Kind("jobs", "batch", "v1", "jobs", "[object.spec.template.spec]", SUSPENDED, SUSPEND),
)

_NO_CONTROLLER = (
    "!has(object.metadata.ownerReferences) || "
    "!object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)"
)
_QUEUE = (
    "has(object.metadata.labels) && "
    f"(('{labels.QUEUE}' in object.metadata.labels && object.metadata.labels['{labels.QUEUE}'] != '') || "
    f"('{labels.KUEUE_QUEUE}' in object.metadata.labels && "
    f"object.metadata.labels['{labels.KUEUE_QUEUE}'] != ''))"
)
_QUEUES_HERE = (
    "has(namespaceObject.metadata.annotations) && "
    f"'{labels.QUEUES}' in namespaceObject.metadata.annotations "
    f"? ' Queues of this namespace: ' + namespaceObject.metadata.annotations['{labels.QUEUES}'] + '.' : ''"
)
_NAME_ONE = (
    f"'GPU work in namespace ' + request.namespace + ' has to name a queue. Add the label "
    f"{labels.QUEUE}: QUEUE.' + ({_QUEUES_HERE})"
)


def policies(gpu_resources: Sequence[str]) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding for every kind."""
    return [manifest for kind in KINDS for manifest in _policy(kind, gpu_resources)]


def _policy(kind: Kind, gpu_resources: Sequence[str]) -> list[Json]:
    name = f"weir-{kind.name}"
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE"],
        "resources": [kind.resource],
    }
    waits = f"{kind.remedy}: GPU work is created waiting, and Weir starts it when its turn comes."
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [
            {"name": "gpuResources", "expression": _listed(gpu_resources)},
            {"name": "podSpecs", "expression": kind.pod_specs},
        ],
        "matchConditions": [{"name": "no-controller", "expression": _NO_CONTROLLER}],
        "validations": [
            {
                "expression": f"!({_asks_gpus()}) || ({_QUEUE})",
                "messageExpression": _NAME_ONE,
                "message": f"GPU work has to name a queue. Add the label {labels.QUEUE}: QUEUE.",
            },
            {"expression": f"!({_asks_gpus()}) || ({kind.waits})", "message": waits},
        ],
    }
    inside = {"namespaceSelector": {"matchLabels": {labels.MANAGED: "true"}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": inside}
    return [
        {"apiVersion": API, "kind": kind_, "metadata": {"name": name}, "spec": spec_}
        for kind_, spec_ in (
            ("ValidatingAdmissionPolicy", spec),
            ("ValidatingAdmissionPolicyBinding", binding),
        )
    ]


def _asks_gpus() -> str:
    """An extended resource must be in the limits, so those alone are read."""
    containers = " || ".join(
        f"(has(s.{part}) && s.{part}.exists(c, has(c.resources) && has(c.resources.limits) && "
        "c.resources.limits.exists(r, r in variables.gpuResources)))"
        for part in ("containers", "initContainers")
    )
    return f"variables.podSpecs.exists(s, {containers})"


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in sorted(set(names))) + "]"
