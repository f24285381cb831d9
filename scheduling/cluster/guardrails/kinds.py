"""The kinds that admission policies judge, and how CEL reads each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.cluster.vocabulary import labels, vendors


@dataclass(frozen=True, slots=True)
class Kind:
    """How admission policies read a kind, in CEL.

    ``pod_specs`` is the list of its pods' specs, ``waits`` whether it is created waiting, and
    ``remedy`` says how to make it so. One without ``waits`` has no way to, and may not ask for GPUs:
    ``remedy`` says what to use. ``gpus`` counts those of all its pods together, and ``limit_s`` is the
    field that bounds its run time in seconds, where it has one. ``meta`` holds labels and annotations.
    """

    name: str
    resource: str
    group: str
    version: str
    pod_specs: str
    waits: str
    remedy: str
    gpus: str = "0"
    limit_s: str = ""
    resources: tuple[str, ...] = ()
    """Places besides pod specs that state what its pods ask for."""
    patches: str = ""
    """Whether POD holds for the spec ``s`` of any of the pods that it patches."""
    meta: str = "object.metadata"

    @property
    def written_by(self) -> list[str]:
        """Resources whose update may change its metadata: with the status of Kubernetes' own kinds too, not
        with that of custom ones, whose groups have dots."""
        own = [] if "." in self.group else [f"{self.resource}/status"]
        return [self.resource, *own]

    @property
    def qualified(self) -> str:
        """What an owner reference tells it by: its group (of the core its version) and name."""
        return f"{self.group or self.version}/{self.name}"

    def any_pod(self, condition: str) -> str:
        """Whether ``condition`` holds for the spec ``s`` of any of its pods."""
        own = f"variables.podSpecs.exists(s, {condition})"
        return f"({own} || {self.patches.replace('POD', condition)})" if self.patches else own


def is_there(path: str, root: str) -> str:
    """Whether every part of ``path`` below ``root`` is there."""
    parts, known = path.split("."), root.count(".") + 1
    return " && ".join(f"has({'.'.join(parts[:i])})" for i in range(known + 1, len(parts) + 1))


def is_noted(meta: str, note: str) -> str:
    """Whether ``meta`` has an annotation of that name which says something."""
    notes = f"{meta}.annotations"
    return f"(has({meta}) && has({notes}) && '{note}' in {notes} && {notes}['{note}'] != '')"


def _count(path: str, default: int) -> str:
    """The whole number at ``path``, at least 0."""
    return f"[has({path}) ? int({path}) : {default}, 0].max()"


IS_GPU = "(r in variables.gpuResources || (r.contains('/') && r.matches(variables.gpuShape)))"
"""Whether ``r`` is a resource of a GPU class, or called as GPUs are."""


def gpu_variables(resources: Sequence[str]) -> dict[str, str]:
    """The variables that IS_GPU reads; ``resources`` are those of GPU classes."""
    return {"gpuResources": listed(resources), "gpuShape": f"'{vendors.shape()}'"}


def listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in sorted(set(names))) + "]"


def _limits(resources: str) -> str:
    """GPUs that the limits in ``resources`` allow."""
    limits = f"{resources}.limits"
    each = f"quantity(string({limits}[r])).asInteger()"
    return f"(has({limits}) ? {limits}.filter(r, {IS_GPU}).map(r, {each}).sum() : 0)"


def _gpus_of(spec: str) -> str:
    """GPUs of a pod: init containers run before the others, those that are restarted always beside them."""
    own = f"(has(c.resources) ? {_limits('c.resources')} : 0)"
    always = "(has(c.restartPolicy) && c.restartPolicy == 'Always')"
    first = f"{spec}.initContainers"
    main = f"(has({spec}.containers) ? {spec}.containers.map(c, {own}).sum() : 0)"
    before = f"([0] + {first}.filter(c, !{always}).map(c, {own})).max()"
    beside = f"{first}.filter(c, {always}).map(c, {own}).sum()"
    return f"(has({first}) ? {beside} + [{main}, {before}].max() : {main})"


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


def _ray_gpus(spec: str) -> str:
    """A group is as large as its autoscaler may make it."""
    groups, bounds = f"{spec}.workerGroupSpecs", ("replicas", "minReplicas", "maxReplicas")
    most = f"[{', '.join(_count(f'g.{bound}', 0) for bound in bounds)}].max()"
    each = f"{most} * {_count('g.numOfHosts', 1)} * {_gpus_of('g.template.spec')}"
    workers = f"(has({groups}) ? {groups}.map(g, {each}).sum() : 0)"
    return f"({_gpus_of(f'{spec}.headGroupSpec.template.spec')} + {workers})"


def _replica_specs(field: str) -> str:
    """Pod specs of a map from role to replicas and template."""
    return f"has({field}) ? {field}.map(role, {field}[role].template.spec) : []"


def _replica_gpus(field: str) -> str:
    role = f"{field}[role]"
    each = f"{_count(f'{role}.replicas', 1)} * {_gpus_of(f'{role}.template.spec')}"
    return f"(has({field}) ? {field}.map(role, {each}).sum() : 0)"


def _replicas() -> str:
    """Those it has, or asks for while it waits."""
    notes = "object.metadata.annotations"
    noted = f"{is_noted('object.metadata', labels.REPLICAS)} && {notes}['{labels.REPLICAS}']"
    waiting = f"{noted}.matches('^[0-9]{{1,9}}$') ? int({notes}['{labels.REPLICAS}']) : 0"
    return f"[{_count('object.spec.replicas', 1)}, {waiting}].max()"


_JOB_SET = "object.spec.replicatedJobs"
_RAY_JOB, _SUBMITTER = "object.spec.rayClusterSpec", "object.spec.submitterPodTemplate"
_AUTOSCALER = "autoscalerOptions.resources"
_GROUP, _LEADER = (
    "object.spec.leaderWorkerTemplate",
    "object.spec.leaderWorkerTemplate.leaderTemplate",
)
_WORKER = f"{_GROUP}.workerTemplate.spec"
_NODE = "object.spec.trainer.resourcesPerNode"
_PATCHED = "j.template.spec.template.spec"
_RUNTIME = "p.trainingRuntimeSpec.template.spec.replicatedJobs"
_TEMPLATE, _TEMPLATES = "object.spec.template.spec", "[object.spec.template.spec]"
_DEADLINE = "object.spec.activeDeadlineSeconds"
_RUN_DEADLINE = "object.spec.runPolicy.activeDeadlineSeconds"
KINDS: tuple[Kind, ...] = (
    Kind(
        "Job",
        "jobs",
        "batch",
        "v1",
        _TEMPLATES,
        *SUSPEND,
        gpus=f"{_count('object.spec.parallelism', 1)} * {_gpus_of(_TEMPLATE)}",
        limit_s=_DEADLINE,
    ),
    Kind(
        "Pod",
        "pods",
        "",
        "v1",
        "[object.spec]",
        *GATED,
        gpus=_gpus_of("object.spec"),
        limit_s=_DEADLINE,
    ),
    Kind(
        "Deployment",
        "deployments",
        "apps",
        "v1",
        _TEMPLATES,
        *NO_REPLICAS,
        gpus=f"{_replicas()} * {_gpus_of(_TEMPLATE)}",
    ),
    Kind(
        "JobSet",
        "jobsets",
        "jobset.x-k8s.io",
        "v1alpha2",
        f"{_JOB_SET}.map(job, job.template.spec.template.spec)",
        *SUSPEND,
        gpus=f"{_JOB_SET}.map(job, {_count('job.replicas', 1)} * "
        f"{_count('job.template.spec.parallelism', 1)} * "
        f"{_gpus_of('job.template.spec.template.spec')}).sum()",
    ),
    Kind(
        "PyTorchJob",
        "pytorchjobs",
        "kubeflow.org",
        "v1",
        _replica_specs("object.spec.pytorchReplicaSpecs"),
        *RUN_POLICY,
        gpus=_replica_gpus("object.spec.pytorchReplicaSpecs"),
        limit_s=_RUN_DEADLINE,
    ),
    Kind(
        "PaddleJob",
        "paddlejobs",
        "kubeflow.org",
        "v1",
        _replica_specs("object.spec.paddleReplicaSpecs"),
        *RUN_POLICY,
        gpus=_replica_gpus("object.spec.paddleReplicaSpecs"),
        limit_s=_RUN_DEADLINE,
    ),
    Kind(
        "MPIJob",
        "mpijobs",
        "kubeflow.org",
        "v2beta1",
        _replica_specs("object.spec.mpiReplicaSpecs"),
        *RUN_POLICY,
        gpus=_replica_gpus("object.spec.mpiReplicaSpecs"),
        limit_s=_RUN_DEADLINE,
    ),
    Kind(
        "TrainJob",
        "trainjobs",
        "trainer.kubeflow.org",
        "v1alpha1",
        "[]",
        *SUSPEND,
        gpus=f"({is_there(_NODE, 'object.spec')} ? "
        f"{_count('object.spec.trainer.numNodes', 1)} * {_limits(_NODE)} : 0)",
        limit_s=_DEADLINE,
        resources=(_NODE,),
        patches="(has(object.spec.runtimePatches) && object.spec.runtimePatches.exists(p, "
        f"{is_there(_RUNTIME, 'p')} && {_RUNTIME}.exists(j, "
        f"{is_there(_PATCHED, 'j')} && [{_PATCHED}].exists(s, POD))))",
    ),
    Kind(
        "RayJob",
        "rayjobs",
        "ray.io",
        "v1",
        f"(has({_RAY_JOB}) ? {_ray(_RAY_JOB)} : []) + "
        f"(has({_SUBMITTER}) ? [{_SUBMITTER}.spec] : [])",
        *SUSPEND,
        gpus=f"(has({_RAY_JOB}) ? {_ray_gpus(_RAY_JOB)} : 0) + "
        f"(has({_SUBMITTER}) ? {_gpus_of(f'{_SUBMITTER}.spec')} : 0)",
        limit_s=_DEADLINE,
        resources=(f"{_RAY_JOB}.{_AUTOSCALER}",),
    ),
    Kind(
        "RayCluster",
        "rayclusters",
        "ray.io",
        "v1",
        _ray("object.spec"),
        *SUSPEND,
        gpus=_ray_gpus("object.spec"),
        resources=(f"object.spec.{_AUTOSCALER}",),
    ),
    Kind(
        "LeaderWorkerSet",
        "leaderworkersets",
        "leaderworkerset.x-k8s.io",
        "v1",
        f"[{_WORKER}] + (has({_LEADER}) ? [{_LEADER}.spec] : [])",
        *NO_REPLICAS,
        gpus=f"{_replicas()} * ((has({_LEADER}) ? {_gpus_of(f'{_LEADER}.spec')} : "
        f"{_gpus_of(_WORKER)}) + [{_count(f'{_GROUP}.size', 1)} - 1, 0].max() * {_gpus_of(_WORKER)})",
    ),
)
"""Kinds that are queued."""

_CRON = "object.spec.jobTemplate"
CARRIERS: tuple[Kind, ...] = (
    Kind(
        "CronJob",
        "cronjobs",
        "batch",
        "v1",
        f"[{_CRON}.spec.template.spec]",
        f"has({_CRON}.spec.suspend) && {_CRON}.spec.suspend == true",
        "Set spec.jobTemplate.spec.suspend: true",
        gpus=f"{_count(f'{_CRON}.spec.parallelism', 1)} * {_gpus_of(f'{_CRON}.spec.template.spec')}",
        limit_s=f"{_CRON}.spec.activeDeadlineSeconds",
        meta=f"{_CRON}.metadata",
    ),
    *(
        Kind(
            name,
            f"{name.lower()}s",
            group,
            "v1",
            _TEMPLATES,
            "",
            f"GPU work cannot wait in a {name}. Use {instead}.",
        )
        for name, group, instead in (
            ("StatefulSet", "apps", "a Deployment or a LeaderWorkerSet"),
            ("ReplicaSet", "apps", "a Deployment"),
            ("ReplicationController", "", "a Deployment"),
            ("DaemonSet", "apps", "a Job of its own for each node"),
        )
    ),
)
"""Kinds that are not queued and make pods or Jobs which could be."""
