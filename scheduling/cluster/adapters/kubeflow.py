"""PyTorchJob, PaddleJob and MPIJob (kubeflow.org): replica specs by role, suspended by their run policy."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, ClassVar

from scheduling.cluster.adapters.cel import PolicyKind, count, gpus_of, policy_kind
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.adapters.sizing import count_of
from scheduling.cluster.vocabulary.quantities import natural

Json = dict[str, Any]

STRANGE = "It has a role {role}, which its kind does not know. Make its pods part of {known}."


RUN_POLICY = (
    "has(object.spec.runPolicy) && has(object.spec.runPolicy.suspend) && "
    "object.spec.runPolicy.suspend == true",
    "Set spec.runPolicy.suspend: true",
)


def _policy(name: str, resource: str, api_version: str, replica_specs: str) -> PolicyKind:
    """How policies read a kind of ``ReplicaSpecsAdapter``."""
    field = f"object.spec.{replica_specs}"
    return policy_kind(
        name, resource, api_version, pods=_replica_specs(field), waits=RUN_POLICY,
        gpus=_replica_gpus(field), limit_s="object.spec.runPolicy.activeDeadlineSeconds",
    )  # fmt: skip


def _replica_specs(field: str) -> str:
    """Pod specs of a map from role to replicas and template."""
    return f"has({field}) ? {field}.map(role, {field}[role].template.spec) : []"


def _replica_gpus(field: str) -> str:
    role = f"{field}[role]"
    each = f"{count(f'{role}.replicas', 1)} * {gpus_of(f'{role}.template.spec')}"
    return f"(has({field}) ? {field}.map(role, {each}).sum() : 0)"


class ReplicaSpecsAdapter(RoleAdapter):
    """``replica_specs`` maps a role to its replicas and pod template, in ``order`` of importance."""

    replica_specs: str
    order: tuple[str, ...]
    ends: ClassVar = {"Succeeded": "succeeded", "Failed": "failed"}
    swaps_resources = True

    def roles(self, obj: Json) -> list[Role]:
        specs: Json = obj["spec"].get(self.replica_specs) or {}
        names = [*(name for name in self.order if name in specs), *self._strange(obj)]
        return [self._role(obj["spec"], name, specs[name]) for name in names]

    def _strange(self, obj: Json) -> list[str]:
        """Roles that the kind does not have. Some versions of its operator make pods of them all the same."""
        specs = obj["spec"].get(self.replica_specs) or {}
        return sorted(name for name in specs if name not in self.order)

    def fault(self, obj: Json, amounts: Set[int]) -> str:
        known = " and ".join(self.order)
        strange = (STRANGE.format(role=str(name)[:63], known=known) for name in self._strange(obj))
        return next(strange, super().fault(obj, amounts))

    def _role(self, spec: Json, name: str, own: Json) -> Role:
        return Role(
            name,
            count_of(own.get("replicas")),
            own["template"],
            restore=lambda count: own.update(replicas=count),
        )

    def is_suspended(self, obj: Json) -> bool:
        return bool((obj["spec"].get("runPolicy") or {}).get("suspend"))

    def set_suspended(self, obj: Json, suspended: bool) -> None:
        obj["spec"].setdefault("runPolicy", {})["suspend"] = suspended

    def managed_by(self, obj: Json) -> str:
        return str((obj["spec"].get("runPolicy") or {}).get("managedBy") or "")

    def time_limit_s(self, obj: Json) -> int | None:
        return natural((obj["spec"].get("runPolicy") or {}).get("activeDeadlineSeconds"))


class PyTorchJobAdapter(ReplicaSpecsAdapter):
    """Its workers grow and shrink where an elastic policy bounds them."""

    kind = "PyTorchJob"
    api_version = "kubeflow.org/v1"
    plural = "pytorchjobs"
    pod_label = "training.kubeflow.org/job-name"
    makes_queued = True
    controller = "kubeflow.org/training-operator"
    replica_specs = "pytorchReplicaSpecs"
    policy = _policy(kind, plural, api_version, replica_specs)
    order = ("Worker", "Master")

    def _role(self, spec: Json, name: str, own: Json) -> Role:
        role = super()._role(spec, name, own)
        bounds = spec.get("elasticPolicy") or {}
        if name == "Worker" and "maxReplicas" in bounds:
            role.lowest = count_of(bounds.get("minReplicas"))
            role.highest = count_of(bounds["maxReplicas"])
            role.resize, role.restore = role.restore, None
        return role


class PaddleJobAdapter(ReplicaSpecsAdapter):
    """A gang of the size that it was made with: its elastic policy is left to its operator."""

    kind = "PaddleJob"
    api_version = "kubeflow.org/v1"
    plural = "paddlejobs"
    pod_label = "training.kubeflow.org/job-name"
    makes_queued = True
    controller = "kubeflow.org/training-operator"
    replica_specs = "paddleReplicaSpecs"
    order = ("Worker", "Master")
    policy = _policy(kind, plural, api_version, replica_specs)


class MPIJobAdapter(ReplicaSpecsAdapter):
    """The launcher commonly has no GPU and comes along with its workers."""

    kind = "MPIJob"
    api_version = "kubeflow.org/v2beta1"
    plural = "mpijobs"
    pod_label = "training.kubeflow.org/job-name"
    makes_queued = True
    controller = "kubeflow.org/mpi-operator"
    replica_specs = "mpiReplicaSpecs"
    policy = _policy(kind, plural, api_version, replica_specs)
    order = ("Worker", "Launcher")
