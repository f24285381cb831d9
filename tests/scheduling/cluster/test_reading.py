"""What people write in odd places and odd ways is read as Kubernetes means it, or refused with a reason."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.vocabulary import labels
from tests.scheduling import manifests
from tests.scheduling.cluster.test_adapters import CLASSES, admitted, first_pod, observe, stored
from tests.scheduling.operators import adapter_of

Json = dict[str, Any]
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


def a_job() -> Json:
    spec = {"suspend": True, "parallelism": 2, "completions": 2, "template": manifests.template(1)}
    meta = {"name": "w", "namespace": "default", "labels": {labels.QUEUE: "research"}}
    return stored({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})


def a_pod() -> Json:
    spec = {**manifests.template(1)["spec"], "schedulingGates": [{"name": labels.GATE}]}
    meta = {"name": "w", "namespace": "default", "labels": {labels.QUEUE: "research"}}
    return stored({"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}})


def read(kind: str, edit: Any = None, **notes: str) -> Sighting:
    obj = a_job() if kind == "Job" else stored(deepcopy(manifests.MANIFESTS[kind]("w")))
    obj["metadata"].setdefault("annotations", {}).update(notes)
    if edit is not None:
        edit(obj)
    return observe(obj)


def resources(**limits: Any) -> Json:
    amounts = {"gpu": GPU, "mig": MIG}
    return {"limits": {amounts.get(name, name): amount for name, amount in limits.items()}}


@pytest.mark.parametrize(
    ("written", "gpus"),
    [("1k", 1_000_000), ("64000m", 64_000), ("6.4e1", 64_000), ("64.0", 64_000), (64, 64_000)],
)
def test_quantity_is_read_however_it_is_written(written: Any, gpus: int) -> None:
    job = a_job()
    first_pod(job)["containers"][0]["resources"] = resources(gpu=written)
    assert observe(job).gpus == gpus


@pytest.mark.parametrize("part", ["init", "sidecar", "overhead", "pod", "requests", "limits"])
def test_gpus_count_wherever_a_pod_asks_for_them(part: str) -> None:
    job = a_job()
    pod = first_pod(job)
    container = {"name": "c", "image": "i", "resources": {}}
    pod["containers"] = [container]
    if part == "init":
        pod["initContainers"] = [{**container, "resources": resources(gpu=64)}]
    elif part == "sidecar":
        pod["initContainers"] = [
            {**container, "resources": resources(gpu=64), "restartPolicy": "Always"}
        ]
    elif part == "overhead":
        pod["overhead"] = {GPU: "64"}
    elif part == "pod":
        pod["resources"] = resources(gpu=64)
    elif part == "requests":
        container["resources"] = {"requests": {GPU: "64"}}
    else:
        container["resources"] = {"requests": {GPU: "0"}, "limits": {GPU: "64"}}
    assert observe(job).gpus == 64_000


def test_zero_of_one_gpu_resource_hides_no_other() -> None:
    job = a_job()
    first_pod(job)["containers"][0]["resources"] = resources(gpu=0, mig=64)
    seen = observe(job)
    assert (seen.gpus, seen.gpu_classes) == (64_000, ("mig",))


@pytest.mark.parametrize("other", [MIG, "amd.com/gpu"])
@pytest.mark.parametrize("kind", ["Job", "PodGroup"])
def test_pod_that_asks_for_gpus_of_two_resources_is_refused(kind: str, other: str) -> None:
    amounts = {"limits": {GPU: "1", other: "64"}}
    if kind == "Job":
        job = a_job()
        first_pod(job)["containers"][0]["resources"] = amounts
        seen = observe(job)
    else:
        pod = a_pod()
        pod["spec"]["containers"][0]["resources"] = amounts
        seen = adapter_of("PodGroup").observe(pod, [pod], CLASSES)
    assert "GPUs of several resources" in seen.fault


@pytest.mark.parametrize("amount", ["-64", "1e999999999", "NaN", "6 4", "1e", "0x40"])
def test_amount_that_is_none_is_refused(amount: str) -> None:
    job = a_job()
    first_pod(job)["containers"].append({"name": "b", "resources": resources(gpu=amount)})
    with pytest.raises(ValueError, match=r"amount|quantity"):
        observe(job)


def test_fraction_of_a_gpu_is_never_read_as_none() -> None:
    job = a_job()
    first_pod(job)["containers"][0]["resources"] = resources(gpu="0.0001")
    assert "whole" in observe(job).fault


def set_in(obj: Json, path: str, value: Any) -> None:
    *steps, last = path.split(".")
    for step in steps:
        obj = obj[int(step)] if step.isdigit() else obj[step]
    obj[last] = value


COUNTS = [
    ("Job", "spec.parallelism"),
    ("Job", "spec.completions"),
    ("JobSet", "spec.replicatedJobs.1.replicas"),
    ("JobSet", "spec.replicatedJobs.1.template.spec.parallelism"),
    ("PyTorchJob", "spec.pytorchReplicaSpecs.Worker.replicas"),
    ("PaddleJob", "spec.paddleReplicaSpecs.Worker.replicas"),
    ("MPIJob", "spec.mpiReplicaSpecs.Worker.replicas"),
    ("TrainJob", "spec.trainer.numNodes"),
    ("RayCluster", "spec.workerGroupSpecs.0.replicas"),
    ("RayCluster", "spec.workerGroupSpecs.0.maxReplicas"),
    ("RayCluster", "spec.workerGroupSpecs.0.numOfHosts"),
    ("LeaderWorkerSet", "spec.leaderWorkerTemplate.size"),
    ("LeaderWorkerSet", "spec.replicas"),
    ("Deployment", "spec.replicas"),
]


@pytest.mark.parametrize("count", [-64, "64", 6.4, True])
@pytest.mark.parametrize(("kind", "path"), COUNTS)
def test_number_of_pods_that_is_none_is_refused(kind: str, path: str, count: Any) -> None:
    with pytest.raises(ValueError, match="number of"):
        read(kind, lambda obj: set_in(obj, path, count))


def test_unknown_role_of_a_pytorch_job_counts_and_is_refused() -> None:
    def hide(obj: Json) -> None:
        roles = obj["spec"]["pytorchReplicaSpecs"]
        roles["Evaluator"] = {"replicas": 62, "template": deepcopy(roles["Worker"]["template"])}

    seen = read("PyTorchJob", hide)
    assert seen.max_members == 64
    assert "Evaluator" in seen.fault


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("RayJob", "spec.submitterPodTemplate"),
        ("RayJob", "spec.rayClusterSpec.autoscalerOptions"),
        ("RayCluster", "spec.autoscalerOptions"),
    ],
)
def test_gpus_of_a_pod_that_is_no_member_are_refused(kind: str, path: str) -> None:
    more = manifests.template(64)
    if path.endswith("Options"):
        more = {"resources": resources(gpu=64)}
    seen = read(kind, lambda obj: set_in(obj, path, more))
    assert "no member" in seen.fault


@pytest.mark.parametrize("kind", sorted(manifests.MANIFESTS))
def test_template_says_which_priority_classes_its_pods_are_made_with(kind: str) -> None:
    adapter = adapter_of(kind)
    obj = stored(deepcopy(manifests.MANIFESTS[kind]("w")))
    roles = adapter.roles(obj)  # type: ignore[attr-defined]
    if kind == "TrainJob":
        patch = {"template": {"spec": {"template": {"spec": {"priorityClassName": "x"}}}}}
        spec = {"template": {"spec": {"replicatedJobs": [{"name": "node", **patch}]}}}
        obj["spec"]["runtimePatches"] = [{"manager": "me", "trainingRuntimeSpec": spec}]
    else:
        roles[-1].pod["priorityClassName"] = "x"
    obj["metadata"]["labels"][labels.PRIORITY_CLASS] = "research"
    assert observe(obj).pod_priority_classes == ("x",)


def test_submitter_of_a_ray_job_says_its_priority_class_too() -> None:
    submitter = manifests.template(0, priorityClassName="system-node-critical")
    seen = read("RayJob", lambda obj: set_in(obj, "spec.submitterPodTemplate", submitter))
    assert seen.pod_priority_classes == ("system-node-critical",)


@pytest.mark.parametrize("kind", sorted(manifests.MANIFESTS))
def test_run_time_limit_may_be_written_on_any_kind(kind: str) -> None:
    assert read(kind).run_time_limit_s is None
    assert read(kind, **{labels.RUN_TIME_LIMIT: "1h30m"}).run_time_limit_s == 5400
    assert read(kind, **{labels.RUN_TIME_LIMIT: "soon"}).run_time_limit_s is None


@pytest.mark.parametrize("kind", ["JobSet", "RayCluster", "LeaderWorkerSet", "Deployment"])
def test_field_that_the_kind_does_not_have_limits_no_run(kind: str) -> None:
    seen = read(kind, lambda obj: obj["spec"].update(activeDeadlineSeconds=60))
    assert seen.run_time_limit_s is None


@pytest.mark.parametrize(("note", "least"), [("30m", 1800), ("2h", 3600)])
def test_least_of_field_and_annotation_counts(note: str, least: int) -> None:
    def limited(obj: Json) -> None:
        obj["spec"]["activeDeadlineSeconds"] = 3600

    assert read("RayJob", limited, **{labels.RUN_TIME_LIMIT: note}).run_time_limit_s == least


def test_limit_that_is_no_number_of_seconds_is_refused() -> None:
    with pytest.raises(ValueError, match="number of"):
        read("RayJob", lambda obj: obj["spec"].update(activeDeadlineSeconds=-1))


@pytest.mark.parametrize("kind", ["JobSet", "Deployment"])
def test_limit_of_an_admission_outlives_its_edit(kind: str) -> None:
    obj = stored(deepcopy(manifests.MANIFESTS[kind]("w")))
    obj["metadata"].setdefault("annotations", {})[labels.RUN_TIME_LIMIT] = "1h"
    running = admitted(obj)
    running["metadata"]["annotations"].pop(labels.RUN_TIME_LIMIT)
    seen = observe(running)
    assert seen.run_time_limit_s is None
    assert seen.stops_after_s == 3600
