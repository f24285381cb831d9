"""The rule that GPU work in managed namespaces names a queue and starts suspended, as admission policies.

One policy a kind, because each keeps its pod templates and its switch elsewhere. Only what no other
object controls is judged: pods of a Job, and Jobs of a larger object, follow their owner's turn. So the
kinds that would carry GPU pods past the queues are judged as well: those that cannot wait are refused.

An update, be it of the status, is judged by what it changes: it may neither make GPU work of other work,
nor take the queue from GPU work, nor change that of work which runs. Whatever else is done to work that
stood there before is taken.

A policy cannot look up the template that a ResourceClaim is made from: whoever claims devices counts as
GPU work. Whoever asks for zero of a resource does not ask for it.
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
    ``remedy`` says how to make it so. One without ``waits`` has no way to, and may not ask for GPUs:
    ``remedy`` says what to use. ``resources``, where given, is the one place that states GPUs;
    ``meta`` holds the labels.
    """

    resource: str
    group: str
    version: str
    pod_specs: str
    waits: str
    remedy: str
    resources: str = ""
    meta: str = "object.metadata"

    @property
    def written_by(self) -> list[str]:
        """Resources whose update may change its metadata: with the status of Kubernetes' own kinds too, not
        with that of custom ones, whose groups have dots."""
        own = [] if "." in self.group else [f"{self.resource}/status"]
        return [self.resource, *own]


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
"""Kinds that are queued."""

_CRON = "object.spec.jobTemplate"
CARRIERS: tuple[Kind, ...] = (
    Kind(
        "cronjobs",
        "batch",
        "v1",
        f"[{_CRON}.spec.template.spec]",
        f"has({_CRON}.spec.suspend) && {_CRON}.spec.suspend == true",
        "Set spec.jobTemplate.spec.suspend: true",
        meta=f"{_CRON}.metadata",
    ),
    *(
        Kind(
            resource, group, "v1", _TEMPLATE, "", f"GPU work cannot wait in {what}. Use {instead}."
        )
        for resource, group, what, instead in (
            ("statefulsets", "apps", "a StatefulSet", "a Deployment or a LeaderWorkerSet"),
            ("replicasets", "apps", "a ReplicaSet", "a Deployment"),
            ("replicationcontrollers", "", "a ReplicationController", "a Deployment"),
            ("daemonsets", "apps", "a DaemonSet", "a Job of its own for each node"),
        )
    ),
)
"""Kinds that are not queued and make pods or Jobs which could be."""

_NO_CONTROLLER = (
    "!has(object.metadata.ownerReferences) || "
    "!object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)"
)
_STANDS = "!has(object.metadata.deletionTimestamp)"
_LABELS, _LABELS_BEFORE = "object.metadata.labels", "oldObject.metadata.labels"
_JUDGED = (
    "!has(request.subResource) || request.subResource != 'status' || "
    f"has({_LABELS}) != has({_LABELS_BEFORE}) || (has({_LABELS}) && {_LABELS} != {_LABELS_BEFORE})"
)
"""Of what is judged a status brings labels alone, and statuses are written all the time."""
_FIXED = "The queue of GPU work that runs cannot be changed. Stop it first, or make it anew."
_QUEUES_HERE = (
    "has(namespaceObject.metadata.annotations) && "
    f"'{labels.QUEUES}' in namespaceObject.metadata.annotations "
    f"? ' Queues of this namespace: ' + namespaceObject.metadata.annotations['{labels.QUEUES}'] + '.' : ''"
)


def policies(gpu_resources: Sequence[str]) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding for every kind."""
    return [part for kind in (*KINDS, *CARRIERS) for part in _policy(kind, gpu_resources)]


def _policy(kind: Kind, gpu_resources: Sequence[str]) -> list[Json]:
    name = f"weir-{kind.resource}"
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": kind.written_by,
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [
            {"name": "gpuResources", "expression": _listed(gpu_resources)},
            {"name": "podSpecs", "expression": kind.pod_specs},
            {"name": "asksGpus", "expression": _asks_gpus(kind)},
            {"name": "podSpecsBefore", "expression": _before(kind.pod_specs)},
            {
                "name": "askedGpus",
                "expression": f"request.operation == 'UPDATE' && ({_before(_asks_gpus(kind))})",
            },
        ],
        "matchConditions": [
            {"name": "judged", "expression": _JUDGED},
            {"name": "no-controller", "expression": _NO_CONTROLLER},
            {"name": "stands", "expression": _STANDS},
        ],
        "validations": _validations(kind),
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


def _validations(kind: Kind) -> list[Json]:
    if not kind.waits:
        expression = "!variables.asksGpus || variables.askedGpus"
        return [{"expression": expression, "message": kind.remedy}]
    place = "" if kind.meta == "object.metadata" else f" in {kind.meta.removeprefix('object.')}"
    label = f"Add the label {labels.QUEUE}: QUEUE{place}."
    named = f"'GPU work in namespace ' + request.namespace + ' has to name a queue. {label}'"
    waiting = f"{kind.remedy}: GPU work is created waiting, and Weir starts it when its turn comes."
    names, queue = _names_a_queue(kind.meta), _queue(kind.meta)
    unnamed = f"(variables.askedGpus && !({_before(names)}))"
    stays = f"!({names}) || {unnamed} || ({kind.waits}) || ({_before(kind.waits)})"
    return [
        {
            "expression": f"!variables.asksGpus || ({names}) || {unnamed}",
            "messageExpression": f"{named} + ({_QUEUES_HERE})",
            "message": f"GPU work has to name a queue. {label}",
        },
        {
            "expression": f"!variables.asksGpus || ({kind.waits}) || variables.askedGpus",
            "message": waiting,
        },
        {
            "expression": f"!variables.askedGpus || {stays} || {queue} == {_before(queue)}",
            "message": _FIXED,
        },
    ]


def _before(expression: str) -> str:
    """``expression`` on what stood there before an update."""
    return expression.replace("object.", "oldObject.").replace(
        "variables.podSpecs", "variables.podSpecsBefore"
    )


def _names_a_queue(meta: str) -> str:
    either = f"{_carries(meta, labels.QUEUE)} || {_carries(meta, labels.KUEUE_QUEUE)}"
    return f"has({meta}) && has({meta}.labels) && ({either})"


def _queue(meta: str) -> str:
    """The queue that is named, where one is."""
    ours, kueues = (f"{meta}.labels['{name}']" for name in (labels.QUEUE, labels.KUEUE_QUEUE))
    return f"({_carries(meta, labels.QUEUE)} ? {ours} : {kueues})"


def _carries(meta: str, label: str) -> str:
    return f"('{label}' in {meta}.labels && {meta}.labels['{label}'] != '')"


def _asks_gpus(kind: Kind) -> str:
    """An extended resource must be in the limits, so of containers those alone are read."""
    if kind.resources:
        parts = kind.resources.split(".")
        there = [f"has({'.'.join(parts[:i])})" for i in range(3, len(parts) + 1)]
        return " && ".join([*there, _bounds_gpus(kind.resources)])
    containers = " || ".join(
        f"(has(s.{part}) && s.{part}.exists(c, has(c.resources) && {_bounds_gpus('c.resources')}))"
        for part in ("containers", "initContainers")
    )
    claims = "(has(s.resourceClaims) && size(s.resourceClaims) > 0)"
    return f"variables.podSpecs.exists(s, {claims} || {containers})"


def _bounds_gpus(resources: str) -> str:
    limits = f"{resources}.limits"
    some = f"r in variables.gpuResources && string({limits}[r]) != '0'"
    return f"has({limits}) && {limits}.exists(r, {some})"


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in sorted(set(names))) + "]"
