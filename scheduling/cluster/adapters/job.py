"""batch/v1 Job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduling.cluster.adapters.cel import DEADLINE, SUSPEND, TEMPLATE, count, gpus_of, policy_kind
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.adapters.sizing import count_of
from scheduling.cluster.vocabulary.quantities import natural
from scheduling.cluster.vocabulary.sharing import SharedParts

Json = dict[str, Any]

PODS = SharedParts()
LABELS = SharedParts()


class JobAdapter(RoleAdapter):
    """Its templates take an affinity and other resources while it is suspended and its pods are gone
    (Kubernetes 1.36, KEP-5440)."""

    kind = "Job"
    api_version = "batch/v1"
    plural = "jobs"
    controller = "kubernetes.io/job-controller"
    swaps_resources = True
    policy = policy_kind(
        kind, plural, api_version, pods=f"[{TEMPLATE}]", waits=SUSPEND, limit_s=DEADLINE,
        gpus=f"{count('object.spec.parallelism', 1)} * {gpus_of(TEMPLATE)}",
    )  # fmt: skip

    def trim(self, obj: Json) -> Json:
        obj = super().trim(obj)
        template = obj["spec"]["template"]
        template["spec"] = PODS.one(template["spec"])
        if said := obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = LABELS.one(said)
        return obj

    def time_limit_s(self, obj: Json) -> int | None:
        return natural(obj["spec"].get("activeDeadlineSeconds"))

    def roles(self, obj: Json) -> list[Role]:
        spec = obj["spec"]
        pods, completions = count_of(spec.get("parallelism")), natural(spec.get("completions"))
        # No more pods than completions ever run at once.
        count = min(pods, completions) if completions else pods

        def resize(members: int) -> None:
            spec["parallelism"] = members
            if spec.get("completionMode") == "Indexed" and completions == pods:
                spec["completions"] = members

        return [Role("pod", count, spec["template"], resize)]

    def done(self, obj: Json, pods: Sequence[Json]) -> int:
        """Members that a Job with completions is past: pods that are done may be gone already."""
        completions = obj["spec"].get("completions")
        if not completions:
            return 0
        left = int(completions) - int((obj.get("status") or {}).get("succeeded") or 0)
        return max(0, self.roles(obj)[0].count - left)

    def unsettled(self, obj: Json) -> int:
        """Until its controller has seen the suspension, pods may still come, and the template is fixed."""
        status = obj.get("status") or {}
        if not self.is_suspended(obj):
            return 0
        seen = any(
            c["type"] == "Suspended" and c["status"] == "True"
            for c in status.get("conditions") or []
        )
        return max(int(status.get("active") or 0), int(bool(status.get("startTime")) and not seen))
