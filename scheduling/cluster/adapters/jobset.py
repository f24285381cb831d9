"""JobSet (jobset.x-k8s.io): several replicated Jobs that start and stop as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from scheduling.cluster.adapters import stages
from scheduling.cluster.adapters.roles import Role, RoleAdapter
from scheduling.cluster.adapters.sizing import count_of
from scheduling.cluster.vocabulary.quantities import natural

Json = dict[str, Any]


class JobSetAdapter(RoleAdapter):
    """While it is suspended its webhook lets node selectors and tolerations be edited, and no more."""

    kind = "JobSet"
    api_version = "jobset.x-k8s.io/v1alpha2"
    plural = "jobsets"
    controller = "jobset.sigs.k8s.io/jobset-controller"
    pod_label = "jobset.sigs.k8s.io/jobset-name"
    makes_queued = True
    takes_affinity = False
    ends: ClassVar = {"Completed": "succeeded", "Failed": "failed"}

    def roles(self, obj: Json) -> list[Role]:
        return [
            Role(job["name"], _pods(job), job["template"]["spec"]["template"])
            for job in obj["spec"].get("replicatedJobs") or []
        ]

    def later(self, obj: Json, parts: Sequence[Json]) -> Mapping[str, bool]:
        return stages.later(obj)


def _pods(job: Json) -> int:
    spec = job["template"]["spec"]
    pods, completions = count_of(spec.get("parallelism")), natural(spec.get("completions"))
    return count_of(job.get("replicas")) * (min(pods, completions) if completions else pods)
