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
    """How admission policies read a kind, in CEL.

    ``pod_specs`` is the list of its pods' specs, ``waits`` whether it is created waiting, and
    ``remedy`` says how to make it so. ``resources``, where given, is the one place that states GPUs.
    """

    resource: str
    group: str
    version: str
    pod_specs: str
    waits: str
    remedy: str
    resources: str = ""


SUSPEND = ("has(object.spec.suspend) && object.spec.suspend == true", "Set spec.suspend: true")
RUN_POLICY = (
    "has(object.spec.runPolicy) && has(object.spec.runPolicy.suspend) && "
    "object.spec.runPolicy.suspend == true",
    "Set spec.runPolicy.suspend: true",
)
NO_REPLICAS = (
    "has(object.spec.replicas) && object.spec.replicas == 0",
    f"Set spec.replicas: 0 and the annotation {labels.REPLICAS}: COUNT",
)
GATED = (
    "has(object.spec.schedulingGates) && "
    f"object.spec.schedulingGates.exists(g, g.name == '{labels.GATE}')",
    f"Add the scheduling gate {labels.GATE} to spec.schedulingGates",
)


def _ray(spec: str) -> str:
    """Pod specs of the Ray cluster at ``spec``: its head's and its groups'."""
    groups = f"{spec}.workerGroupSpecs"
    workers = f"(has({groups}) ? {groups}.map(g, g.template.spec) : [])"
    return f"[{spec}.headGroupSpec.template.spec] + {workers}"


def _replica_specs(field: str) -> str:
    """Pod specs of a map from role to replicas and template."""
    return f"has({field}) ? {field}.map(role, {field}[role].template.spec) : []"


_RAY_JOB = "object.spec.rayClusterSpec"
_GROUP = "object.spec.leaderWorkerTemplate"
_TEMPLATE = "[object.spec.template.spec]"
KINDS: tuple[Kind, ...] = (
    Kind("jobs", "batch", "v1", _TEMPLATE, *SUSPEND),
    Kind("pods", "", "v1", "[object.spec]", *GATED),
    Kind("deployments", "apps", "v1", _TEMPLATE, *NO_REPLICAS),
    Kind(
        "jobsets",
        "jobset.x-k8s.io",
        "v1alpha2",
        "object.spec.replicatedJobs.map(job, job.template.spec.template.spec)",
        *SUSPEND,
    ),
    Kind(
        "pytorchjobs",
        "kubeflow.org",
        "v1",
        _replica_specs("object.spec.pytorchReplicaSpecs"),
        *RUN_POLICY,
    ),
    Kind(
        "mpijobs",
        "kubeflow.org",
        "v2beta1",
        _replica_specs("object.spec.mpiReplicaSpecs"),
        *RUN_POLICY,
    ),
    Kind(
        "trainjobs",
        "trainer.kubeflow.org",
        "v1alpha1",
        "[]",
        *SUSPEND,
        resources="object.spec.trainer.resourcesPerNode",
    ),
    Kind("rayjobs", "ray.io", "v1", f"has({_RAY_JOB}) ? {_ray(_RAY_JOB)} : []", *SUSPEND),
    Kind("rayclusters", "ray.io", "v1", _ray("object.spec"), *SUSPEND),
    Kind(
        "leaderworkersets",
        "leaderworkerset.x-k8s.io",
        "v1",
        f"[{_GROUP}.workerTemplate.spec] + "
        f"(has({_GROUP}.leaderTemplate) ? [{_GROUP}.leaderTemplate.spec] : [])",
        *NO_REPLICAS,
    ),
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
    name = f"weir-{kind.resource}"
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
            {"name": "asksGpus", "expression": _asks_gpus(kind)},
        ],
        "matchConditions": [{"name": "no-controller", "expression": _NO_CONTROLLER}],
        "validations": [
            {
                "expression": f"!variables.asksGpus || ({_QUEUE})",
                "messageExpression": _NAME_ONE,
                "message": f"GPU work has to name a queue. Add the label {labels.QUEUE}: QUEUE.",
            },
            {"expression": f"!variables.asksGpus || ({kind.waits})", "message": waits},
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


def _asks_gpus(kind: Kind) -> str:
    """An extended resource must be in the limits, so of containers those alone are read."""
    wanted = "exists(r, r in variables.gpuResources)"
    if kind.resources:
        parts = kind.resources.split(".")
        there = [f"has({'.'.join(parts[:i])})" for i in range(3, len(parts) + 1)]
        limits = f"has({kind.resources}.limits) && {kind.resources}.limits.{wanted}"
        return " && ".join([*there, limits])
    containers = " || ".join(
        f"(has(s.{part}) && s.{part}.exists(c, has(c.resources) && has(c.resources.limits) && "
        f"c.resources.limits.{wanted}))"
        for part in ("containers", "initContainers")
    )
    return f"variables.podSpecs.exists(s, {containers})"


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in sorted(set(names))) + "]"
