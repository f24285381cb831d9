"""RayCluster and RayJob (ray.io, KubeRay): a head and groups of workers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from scheduling.cluster.adapters.cel import DEADLINE, SUSPEND, count, gpus_of, policy_kind
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.adapters.sizing import count_of
from scheduling.cluster.vocabulary.quantities import instant, natural

Json = dict[str, Any]

CLUSTER, SUBMITTER = "object.spec.rayClusterSpec", "object.spec.submitterPodTemplate"
AUTOSCALER = "autoscalerOptions.resources"


def _pods_of(spec: str) -> str:
    """Pod specs of the Ray cluster at ``spec``: its head's and its groups'."""
    groups = f"{spec}.workerGroupSpecs"
    workers = f"(has({groups}) ? {groups}.map(g, g.template.spec) : [])"
    return f"[{spec}.headGroupSpec.template.spec] + {workers}"


def _gpus_in(spec: str) -> str:
    """A group is as large as its autoscaler may make it."""
    groups, bounds = f"{spec}.workerGroupSpecs", ("replicas", "minReplicas", "maxReplicas")
    most = f"[{', '.join(count(f'g.{bound}', 0) for bound in bounds)}].max()"
    each = f"{most} * {count('g.numOfHosts', 1)} * {gpus_of('g.template.spec')}"
    workers = f"(has({groups}) ? {groups}.map(g, {each}).sum() : 0)"
    return f"({gpus_of(f'{spec}.headGroupSpec.template.spec')} + {workers})"


class RayClusterAdapter(RoleAdapter):
    """A single group of workers grows and shrinks between its minimum and maximum. Under Ray's own
    autoscaler, which would size it past us, it is planned whole at its maximum."""

    kind = "RayCluster"
    api_version = "ray.io/v1"
    plural = "rayclusters"
    pod_label = "ray.io/cluster"
    controller = "ray.io/kuberay-operator"
    swaps_resources = True
    ends: ClassVar = {}
    policy = policy_kind(
        kind, plural, api_version, pods=_pods_of("object.spec"), waits=SUSPEND,
        gpus=_gpus_in("object.spec"), resources=(f"object.spec.{AUTOSCALER}",),
    )  # fmt: skip

    def roles(self, obj: Json) -> list[Role]:
        spec = self.cluster_spec(obj)
        groups = spec.get("workerGroupSpecs") or []
        workers = [_group(group, autoscaled=_is_autoscaled(spec)) for group in groups]
        return [*workers, Role("head", 1, spec["headGroupSpec"]["template"])]

    def cluster_spec(self, obj: Json) -> Json:
        spec: Json = obj["spec"]
        return spec

    def helpers(self, obj: Json) -> list[Json]:
        """Ray's own autoscaler is a container more in the head's pod."""
        options = self.cluster_spec(obj).get("autoscalerOptions")
        return [{"containers": [options]}] if options else []


class RayJobAdapter(RayClusterAdapter):
    """Makes a RayCluster and a pod that submits the job to it; suspending it deletes both."""

    kind = "RayJob"
    plural = "rayjobs"
    pod_label = "ray.io/originated-from-cr-name"
    makes_queued = True
    has_helpers = True
    policy = policy_kind(
        kind,
        plural,
        RayClusterAdapter.api_version,
        pods=f"(has({CLUSTER}) ? {_pods_of(CLUSTER)} : []) + "
        f"(has({SUBMITTER}) ? [{SUBMITTER}.spec] : [])",
        waits=SUSPEND,
        gpus=f"(has({CLUSTER}) ? {_gpus_in(CLUSTER)} : 0) + "
        f"(has({SUBMITTER}) ? {gpus_of(f'{SUBMITTER}.spec')} : 0)",
        limit_s=DEADLINE,
        resources=(f"{CLUSTER}.{AUTOSCALER}",),
    )

    def cluster_spec(self, obj: Json) -> Json:
        spec = obj["spec"].get("rayClusterSpec")
        if not spec:
            raise ValueError(
                "It runs on a cluster that stands already. Queue that cluster instead."
            )
        own: Json = spec
        return own

    def time_limit_s(self, obj: Json) -> int | None:
        return natural(obj["spec"].get("activeDeadlineSeconds"))

    def helpers(self, obj: Json) -> list[Json]:
        submitter = obj["spec"].get("submitterPodTemplate") or {}
        return [*super().helpers(obj), *([submitter["spec"]] if submitter.get("spec") else [])]

    def outcome(self, obj: Json) -> tuple[str, datetime | None]:
        status = obj.get("status") or {}
        ended = instant(status.get("endTime"))
        deployment, job = status.get("jobDeploymentStatus"), status.get("jobStatus")
        if deployment == "Complete":
            return ("succeeded" if job in ("SUCCEEDED", "", None) else "failed"), ended
        return ("failed", ended) if deployment == "Failed" else ("", None)

    def failure_words(self, obj: Json) -> tuple[str, str]:
        status = obj.get("status") or {}
        return str(status.get("reason") or ""), str(status.get("message") or "")


def _is_autoscaled(spec: Json) -> bool:
    return bool(spec.get("enableInTreeAutoscaling"))


def _group(group: Json, *, autoscaled: bool) -> Role:
    """KubeRay runs as many hosts for each replica as ``numOfHosts`` says, all or none."""
    hosts = count_of(group.get("numOfHosts")) or 1
    lowest, highest = count_of(group.get("minReplicas"), 0), natural(group.get("maxReplicas"))
    replicas = count_of(group.get("replicas"), 0) or lowest
    if autoscaled and highest is not None:
        return _autoscaled(group, hosts, lowest, highest)
    role = Role(group.get("groupName", "workers"), replicas * hosts, group["template"])
    role.restore = lambda count: group.update(replicas=max(1, count // hosts))
    if hosts == 1 and highest is not None:
        role.lowest, role.highest = lowest, highest
        role.resize = lambda count: group.update(replicas=count)
    return role


def _autoscaled(group: Json, hosts: int, lowest: int, highest: int) -> Role:
    """As large as Ray may make it; no more than its minimum has to be there."""

    def restore(count: int) -> None:
        most = max(1, count // hosts)
        for bound in ("minReplicas", "replicas", "maxReplicas"):
            group[bound] = min(most, int(group.get(bound) or 0))

    name, most = group.get("groupName", "workers"), highest * hosts
    spare = max(0, most - lowest * hosts)
    return Role(name, most, group["template"], restore=restore, spare=spare)
