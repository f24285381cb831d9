"""Priority: no pod evicts what others run by a class that is none of Weir's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.scheduling.kube import eventually
from tests.scheduling.manifests import MANIFESTS, template
from tests.scheduling.operators import install
from tests.scheduling.services.guardrails.lab import CLASSES, Lab, Pass, job

from .people import Member

Json = dict[str, Any]
CRITICAL = ["system-node-critical", "system-cluster-critical"]


def cpu_job(lab: Lab, **spec: Any) -> Json:
    body = job(lab, queue="", gpus=0, suspend=False)
    body["spec"]["template"]["spec"] |= spec
    return body


def cpu_pod(lab: Lab, **spec: Any) -> Json:
    meta = {"name": "p", "namespace": lab.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template(0)["spec"] | spec}


@pytest.mark.parametrize("name", CRITICAL)
def test_cpu_only_job_with_a_system_priority_is_refused(ann: Member, name: str) -> None:
    said = ann.tries(cpu_job(ann.lab, priorityClassName=name))
    assert f"Work here does not run with the priority class {name}." in said
    assert f"Leave priorityClassName out, or use one of {ann.lab.priority}" in said


@pytest.mark.parametrize("name", CRITICAL)
def test_pod_by_itself_with_a_system_priority_is_refused(ann: Member, name: str) -> None:
    assert f"the priority class {name}." in ann.tries(cpu_pod(ann.lab, priorityClassName=name))


def test_class_that_others_made_is_refused(ann: Member) -> None:
    foreign = f"theirs-{ann.lab.namespace}"
    ann.lab.kube.create(CLASSES, {"metadata": {"name": foreign}, "value": 900_000_000})
    assert f"priority class {foreign}." in ann.tries(cpu_job(ann.lab, priorityClassName=foreign))
    ann.lab.kube.delete(f"{CLASSES}/{foreign}")


def test_class_of_weir_is_taken_and_one_beside_the_label_is_not(ann: Member) -> None:
    gpu_job = job(ann.lab)
    gpu_job["spec"]["template"]["spec"]["priorityClassName"] = ann.lab.priority
    assert ann.tries(gpu_job) == ""
    gpu_job["metadata"]["labels"]["weir.dev/priority-class"] = ann.lab.priority
    assert ann.tries(gpu_job) == ""
    gpu_job["metadata"]["labels"]["weir.dev/priority-class"] = "other"
    assert "the label weir.dev/priority-class, where there is one, says which" in ann.tries(gpu_job)


def test_label_of_a_job_that_names_its_class_may_change_later(ann: Member) -> None:
    body = job(ann.lab)
    body["spec"]["template"]["spec"]["priorityClassName"] = ann.lab.priority
    # The API server takes the list of classes up when it takes up the policy.
    eventually(lambda: ann.tries(body) == "")
    assert ann.creates(body) == ""
    label = {"metadata": {"labels": {"weir.dev/priority-class": "low"}}}
    assert ann.edits(f"{ann.path(body)}/w", label) == ""


def test_priority_cannot_be_raised_in_a_second_step(ann: Member) -> None:
    body = job(ann.lab, queue="", gpus=0)
    body |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    body["spec"] = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "work"}},
        "template": template(0),
    }
    assert ann.creates(body) == ""
    raised = {"spec": {"template": {"spec": {"priorityClassName": CRITICAL[0]}}}}
    assert f"the priority class {CRITICAL[0]}." in ann.edits(f"{ann.path(body)}/w", raised)
    body["spec"]["template"]["spec"]["priorityClassName"] = CRITICAL[1]
    assert f"the priority class {CRITICAL[1]}." in ann.applies(body, force="true")


def _patched(spec: Json) -> list[Json]:
    pods: Json = {"spec": {}}
    part = {"name": "node", "template": {"spec": {"template": pods}}}
    runtime = {"template": {"spec": {"replicatedJobs": [part]}}}
    spec["runtimePatches"] = [{"manager": "ann", "trainingRuntimeSpec": runtime}]
    return [pods]


def _ray(spec: Json) -> list[Json]:
    return [spec["headGroupSpec"]["template"], spec["workerGroupSpecs"][0]["template"]]


def _ray_job(spec: Json) -> list[Json]:
    spec["submitterPodTemplate"] = template(0)
    return [spec["submitterPodTemplate"], *_ray(spec["rayClusterSpec"])]


def _leader_worker(spec: Json) -> list[Json]:
    own = spec["leaderWorkerTemplate"]
    own["leaderTemplate"] = template(0)
    return [own["leaderTemplate"], own["workerTemplate"]]


TEMPLATES: dict[str, Callable[[Json], list[Json]]] = {
    "JobSet": lambda spec: [job["template"]["spec"]["template"] for job in spec["replicatedJobs"]],
    "PyTorchJob": lambda spec: [role["template"] for role in spec["pytorchReplicaSpecs"].values()],
    "PaddleJob": lambda spec: [role["template"] for role in spec["paddleReplicaSpecs"].values()],
    "MPIJob": lambda spec: [role["template"] for role in spec["mpiReplicaSpecs"].values()],
    "TrainJob": _patched,
    "RayJob": _ray_job,
    "RayCluster": _ray,
    "LeaderWorkerSet": _leader_worker,
    "Deployment": lambda spec: [spec["template"]],
}
"""Kind -> every pod template in a spec, those of helpers too."""


def test_no_template_of_any_kind_names_a_system_priority_or_a_node(
    lab: Lab, guarded: Pass, ann: Member
) -> None:
    install(lab.kube)
    for kind in sorted(MANIFESTS):
        # A policy is taken up for a kind a moment after its definition.
        eventually(lambda kind=kind: "nodeName" in ann.tries(_with(lab, kind, 0, *NODE)))
        assert ann.tries(_with(lab, kind, 0)) == "", kind
        for place in range(len(TEMPLATES[kind](MANIFESTS[kind]("w")["spec"]))):
            for field, said in ((CLASS, "priority class"), (NODE, "Leave nodeName out.")):
                assert said in ann.tries(_with(lab, kind, place, *field)), (kind, place, field)


CLASS, NODE = ("priorityClassName", CRITICAL[0]), ("nodeName", "n1")


def _with(lab: Lab, kind: str, place: int, field: str = "", value: str = "") -> Json:
    """Work of ``kind`` whose template at ``place`` has ``field``."""
    body = MANIFESTS[kind]("w")
    body["metadata"]["namespace"] = lab.namespace
    if field:
        TEMPLATES[kind](body["spec"])[place]["spec"][field] = value
    return body
