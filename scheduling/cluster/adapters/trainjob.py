"""TrainJob (trainer.kubeflow.org): a runtime's template, filled in by what the job says of its trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from scheduling.cluster.adapters import stages, steering
from scheduling.cluster.adapters.base import Admission
from scheduling.cluster.adapters.cel import (
    DEADLINE,
    SUSPEND,
    count,
    is_there,
    limits_of,
    policy_kind,
)
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.adapters.sizing import count_of
from scheduling.cluster.vocabulary import runtimes
from scheduling.cluster.vocabulary.quantities import natural
from scheduling.cluster.vocabulary.runtimes import TRAINER

Json = dict[str, Any]

MANAGER = "weir.dev/engine"
"""Our own entry among the runtime patches, which are keyed by who wrote them."""
OVERRIDES = "podTemplateOverrides"
VAGUE = (
    "It leaves the size of its nodes to the runtime, which cannot be planned. Set"
    " spec.trainer.numNodes and spec.trainer.resourcesPerNode."
)


NODE = "object.spec.trainer.resourcesPerNode"
PATCHED = "j.template.spec.template.spec"
RUNTIME = "p.trainingRuntimeSpec.template.spec.replicatedJobs"


class TrainJobAdapter(RoleAdapter):
    kind = "TrainJob"
    api_version = "trainer.kubeflow.org/v1alpha1"
    plural = "trainjobs"
    pod_label = "jobset.sigs.k8s.io/jobset-name"
    makes_queued = True
    controller = "trainer.kubeflow.org/trainjob-controller"
    has_helpers = True
    policy = policy_kind(
        kind,
        plural,
        api_version,
        pods="[]",
        waits=SUSPEND,
        gpus=f"({is_there(NODE, 'object.spec')} ? "
        f"{count('object.spec.trainer.numNodes', 1)} * {limits_of(NODE)} : 0)",
        limit_s=DEADLINE,
        resources=(NODE,),
        patches="(has(object.spec.runtimePatches) && object.spec.runtimePatches.exists(p, "
        f"{is_there(RUNTIME, 'p')} && {RUNTIME}.exists(j, "
        f"{is_there(PATCHED, 'j')} && [{PATCHED}].exists(s, POD))))",
    )

    def roles(self, obj: Json) -> list[Role]:
        trainer = obj["spec"].get("trainer") or {}
        pod = {"containers": [{"resources": trainer.get("resourcesPerNode") or {}}]}
        count = count_of(trainer.get("numNodes")) or 1
        return [Role(TRAINER, count, {"spec": pod}, runtime=_runtime_class(obj))]

    def time_limit_s(self, obj: Json) -> int | None:
        return natural(obj["spec"].get("activeDeadlineSeconds"))

    def helpers(self, obj: Json) -> list[Json]:
        """What the job writes over its runtime's templates, by either way that versions of it have."""
        patched = [
            job["template"]["spec"]["template"].get("spec") or {}
            for patch in _of_others(obj)
            for job in _jobs_of(patch)
            if (job.get("template") or {}).get("spec", {}).get("template")
        ]
        return [*patched, *(o.get("spec") or {} for o in obj["spec"].get(OVERRIDES) or [])]

    def later(self, obj: Json, parts: Sequence[Json]) -> Mapping[str, bool]:
        """The runtime says what its trainer starts after, and the JobSet that is made of it."""
        made = next((part for part in parts if "replicatedJobs" in part["spec"]), None)
        return stages.later(made) if made else {}

    def fault(self, obj: Json, amounts: Set[int]) -> str:
        trainer = obj["spec"].get("trainer") or {}
        return "" if "numNodes" in trainer and "resourcesPerNode" in trainer else VAGUE

    def steer(
        self, new: Json, role: Role, original: Json, admission: Admission, *, fixed: bool
    ) -> None:
        """The runtime's own rules stay; ours are one patch of it."""
        pod: Json = {}
        steering.to_hosts(pod, original, admission, fixed=fixed)
        steering.tolerate(pod, original, admission.gpu_class)
        job = {"name": TRAINER, "template": {"spec": {"template": {"spec": pod}}}}
        ours = {
            "manager": MANAGER,
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
        }
        new["spec"]["runtimePatches"] = [*_of_others(new), ours]

    def give_back(self, new: Json, role: Role, original: Json) -> None:
        if others := _of_others(new):
            new["spec"]["runtimePatches"] = others
        else:
            new["spec"].pop("runtimePatches", None)


def _runtime_class(obj: Json) -> str:
    """The runtime class that a patch names, else the training runtime, which knows its own."""
    for patch in _of_others(obj):
        if name := runtimes.class_named(patch.get("trainingRuntimeSpec") or {}):
            return name
    named = obj["spec"].get("runtimeRef") or {}
    is_own = named.get("kind") == "TrainingRuntime"
    namespace = obj["metadata"].get("namespace", "") if is_own else ""
    return runtimes.reference(namespace, str(named.get("name", "")))


def _jobs_of(patch: Json) -> list[Json]:
    runtime = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
    jobs: list[Json] = (runtime.get("spec") or {}).get("replicatedJobs") or []
    return jobs


def _of_others(obj: Json) -> list[Json]:
    patches = obj["spec"].get("runtimePatches") or []
    return [patch for patch in patches if patch.get("manager") != MANAGER]
