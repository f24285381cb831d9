"""Deployment and LeaderWorkerSet: work without a suspend field waits with no replicas.

How many it wants is kept in ``weir.dev/replicas`` meanwhile.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, ClassVar

from scheduling.cluster.adapters import notes
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.cel import TEMPLATE, count, gpus_of, is_noted, policy_kind
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.adapters.sizing import count_of
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import whole

Json = dict[str, Any]

NONE_WANTED = "It asks for no replicas. Set spec.replicas, or the annotation weir.dev/replicas."


NO_REPLICAS = (
    "has(object.spec.replicas) && object.spec.replicas == 0",
    f"Set spec.replicas: 0 and the annotation {labels.REPLICAS}: COUNT",
)
GROUP = "object.spec.leaderWorkerTemplate"
LEADER, WORKER = f"{GROUP}.leaderTemplate", f"{GROUP}.workerTemplate.spec"


def _replicas() -> str:
    """Those it has, or asks for while it waits."""
    notes = "object.metadata.annotations"
    noted = f"{is_noted('object.metadata', labels.REPLICAS)} && {notes}['{labels.REPLICAS}']"
    waiting = f"{noted}.matches('^[0-9]{{1,9}}$') ? int({notes}['{labels.REPLICAS}']) : 0"
    return f"[{count('object.spec.replicas', 1)}, {waiting}].max()"


class ReplicasAdapter(RoleAdapter):
    """Suspended is who has no replicas."""

    ends: ClassVar = {}

    def is_suspended(self, obj: Json) -> bool:
        return obj["spec"].get("replicas") == 0

    def set_suspended(self, obj: Json, suspended: bool) -> None:
        said = obj["metadata"].setdefault("annotations", {})
        now = count_of(obj["spec"].get("replicas"))
        if suspended:
            if now:
                said[labels.REPLICAS] = str(now)
            obj["spec"]["replicas"] = 0
        else:
            obj["spec"]["replicas"] = now or self.wanted(obj)

    def wanted(self, obj: Json) -> int:
        """Replicas at full size, whether it waits or not."""
        now = count_of(obj["spec"].get("replicas"))
        return now or whole(notes.of(obj).get(labels.REPLICAS)) or 0

    def fault(self, obj: Json, amounts: Set[int]) -> str:
        return super().fault(obj, amounts) if self.wanted(obj) else NONE_WANTED


class DeploymentAdapter(ReplicasAdapter):
    """Its template may be edited at any time; without replicas that starts nothing."""

    kind = "Deployment"
    api_version = "apps/v1"
    plural = "deployments"
    swaps_resources = True
    policy = policy_kind(
        kind, plural, api_version, pods=f"[{TEMPLATE}]", waits=NO_REPLICAS,
        gpus=f"{_replicas()} * {gpus_of(TEMPLATE)}",
    )  # fmt: skip

    def roles(self, obj: Json) -> list[Role]:
        def resize(members: int) -> None:
            if self.is_suspended(obj):
                obj["metadata"]["annotations"][labels.REPLICAS] = str(members)
            else:
                obj["spec"]["replicas"] = members

        return [Role("replica", self.wanted(obj), obj["spec"]["template"], resize)]

    def owner_name(self, pod: Json) -> str | None:
        """Its pods belong to a replica set, which is named after it and the template's hash."""
        owner = pods_of.owner_of(pod)
        hashed = (pod["metadata"].get("labels") or {}).get("pod-template-hash")
        if owner.get("kind") != "ReplicaSet" or not hashed:
            return None
        return str(owner["name"]).removesuffix(f"-{hashed}")


class LeaderWorkerSetAdapter(ReplicasAdapter):
    """Each replica is a leader and its workers, ``size`` pods in all; whole groups, so never resized."""

    kind = "LeaderWorkerSet"
    api_version = "leaderworkerset.x-k8s.io/v1"
    plural = "leaderworkersets"
    pod_label = "leaderworkerset.sigs.k8s.io/name"
    swaps_resources = True
    policy = policy_kind(
        kind,
        plural,
        api_version,
        pods=f"[{WORKER}] + (has({LEADER}) ? [{LEADER}.spec] : [])",
        waits=NO_REPLICAS,
        gpus=f"{_replicas()} * ((has({LEADER}) ? {gpus_of(f'{LEADER}.spec')} : "
        f"{gpus_of(WORKER)}) + [{count(f'{GROUP}.size', 1)} - 1, 0].max() * {gpus_of(WORKER)})",
    )

    def roles(self, obj: Json) -> list[Role]:
        own, groups = obj["spec"]["leaderWorkerTemplate"], self.wanted(obj)
        workers = (count_of(own.get("size")) or 1) - 1
        leader = own.get("leaderTemplate")
        each = {"worker": workers} if leader else {"worker": workers + 1}
        templates = {"worker": own["workerTemplate"]}
        if leader:
            each["leader"], templates["leader"] = 1, leader

        def role(name: str) -> Role:
            def restore(count: int) -> None:
                obj["spec"]["replicas"] = max(1, count // each[name])

            return Role(name, groups * each[name], templates[name], restore=restore)

        return [role(name) for name in each]

    def owner_name(self, pod: Json) -> str | None:
        name: str | None = (pod["metadata"].get("labels") or {}).get(
            "leaderworkerset.sigs.k8s.io/name"
        )
        return name
