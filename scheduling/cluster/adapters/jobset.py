"""JobSet (jobset.x-k8s.io): several replicated Jobs that start and stop as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from scheduling.cluster.adapters import stages
from scheduling.cluster.adapters.cel import SUSPEND, count, gpus_of, policy_kind
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.adapters.sizing import count_of
from scheduling.cluster.vocabulary.quantities import natural

Json = dict[str, Any]

JOBS = "object.spec.replicatedJobs"


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
    policy = policy_kind(
        kind,
        plural,
        api_version,
        pods=f"{JOBS}.map(job, job.template.spec.template.spec)",
        waits=SUSPEND,
        gpus=f"{JOBS}.map(job, {count('job.replicas', 1)} * "
        f"{count('job.template.spec.parallelism', 1)} * "
        f"{gpus_of('job.template.spec.template.spec')}).sum()",
    )

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
