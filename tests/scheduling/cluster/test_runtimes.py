"""What runtime classes add to the CPU and memory that members take, and where they may run."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters import ClassSpec, Sighting
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.picture.around import Circumstances
from scheduling.cluster.picture.compose import compose
from scheduling.cluster.picture.memo import Memo
from scheduling.cluster.vocabulary import runtimes
from tests.scheduling import manifests
from tests.scheduling.operators import adapter_of

Json = dict[str, Any]
H100 = ClassSpec("h100", "nvidia.com/gpu", {})
CLASSES = (H100,)
KATA = {"metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}}
BARE = {"metadata": {"name": "bare"}}


def spec(**more: Any) -> Json:
    container = {"resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "2", "memory": "1Gi"}}}
    return {"containers": [container], **more}


@pytest.mark.parametrize(
    ("more", "cpu", "memory"),
    [
        ({}, 2000, 1024),
        ({"runtimeClassName": "kata"}, 2250, 1144),
        ({"runtimeClassName": "bare"}, 2000, 1024),
        ({"runtimeClassName": "unheard-of"}, 2000, 1024),
        ({"overhead": {"cpu": "1"}}, 3000, 1024),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "1"}}, 3000, 1024),
        ({"runtimeClassName": "kata", "resources": {"requests": {"cpu": "4"}}}, 4250, 1144),
    ],
)
def test_pod_takes_its_overhead_besides_what_it_asks_for(more: Json, cpu: int, memory: int) -> None:
    asked = pods_of.requests_of(spec(**more), runtimes=runtimes.read([KATA, BARE]))

    assert (asked["cpu"], asked["memory"], asked["nvidia.com/gpu"]) == (cpu, memory, 1000)


def sandboxed(kind: str) -> Json:
    made = manifests.MANIFESTS[kind]("w")
    meta = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-05T09:00:00Z"}
    made["metadata"] |= meta
    _mark(made)
    return made


def _mark(part: Any) -> None:
    """Have every pod template of ``part`` name the class, in place."""
    for value in part.values() if isinstance(part, dict) else part:
        if isinstance(value, dict | list):
            _mark(value)
    if isinstance(part, dict) and "containers" in part:
        part["runtimeClassName"] = "kata"


@pytest.mark.parametrize("kind", sorted(manifests.MANIFESTS.keys() - {"TrainJob"}))
def test_member_of_every_kind_that_has_templates_takes_the_overhead(kind: str) -> None:
    obj = sandboxed(kind)
    known = runtimes.read([KATA])
    seen = adapter_of(kind).observe(obj, (), CLASSES, runtimes=known)

    assert (seen.cpus, seen.memory_mib, seen.gpus) == (250, 120, 1000)


@pytest.mark.parametrize(
    ("selector", "named", "classes"),
    [
        ({}, {}, ("h100", "a100")),
        ({"gpu": "a100"}, {}, ("a100",)),
        ({"gpu": "b200"}, {}, ()),
        ({"enclave": "yes"}, {}, ("h100", "a100")),
        ({"enclave": "yes"}, {"gpu": "h100"}, ("h100",)),
    ],
)
def test_member_runs_on_classes_that_its_runtime_class_allows(
    selector: Json, named: Json, classes: tuple[str, ...]
) -> None:
    specs = [ClassSpec(name, "nvidia.com/gpu", {"gpu": name}) for name in ("h100", "a100")]
    enclave = {"metadata": {"name": "kata"}, "scheduling": {"nodeSelector": selector}}
    obj = sandboxed("Deployment")
    obj["spec"]["template"]["spec"]["nodeSelector"] = named
    seen = adapter_of("Deployment").observe(obj, (), specs, runtimes=runtimes.read([enclave]))

    assert seen.gpu_classes == classes


def training_runtime(name: str, runtime_class: str, namespace: str = "") -> Json:
    pod = {"spec": {"containers": [], "runtimeClassName": runtime_class}}
    jobs = [{"name": "node", "template": {"spec": {"template": pod}}}]
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"metadata": meta, "spec": {"template": {"spec": {"replicatedJobs": jobs}}}}


@pytest.mark.parametrize(
    ("ref", "patched", "cpus"),
    [
        ({"name": "torch"}, "", 250),
        ({"name": "torch", "kind": "ClusterTrainingRuntime"}, "", 250),
        ({"name": "torch", "kind": "TrainingRuntime"}, "", 500),
        ({"name": "unheard-of"}, "", 0),
        ({"name": "torch"}, "large", 500),
    ],
)
def test_trainer_takes_the_overhead_of_the_class_that_its_training_runtime_names(
    ref: Json, patched: str, cpus: int
) -> None:
    job = sandboxed("TrainJob")
    job["spec"]["runtimeRef"] = ref
    if patched:
        spec = training_runtime("", patched)["spec"]
        job["spec"]["runtimePatches"] = [{"manager": "me", "trainingRuntimeSpec": spec}]
    large = {"metadata": {"name": "large"}, "overhead": {"podFixed": {"cpu": "500m"}}}
    training = [training_runtime("torch", "kata"), training_runtime("torch", "large", "default")]
    job["metadata"]["namespace"] = "default"
    known = runtimes.with_training(runtimes.read([KATA, large]), training)
    seen = adapter_of("TrainJob").observe(job, (), CLASSES, runtimes=known)

    assert seen.cpus == cpus


def look(memo: Memo, obj: Json, *classes: Json) -> Sighting:
    around = Circumstances(CLASSES, runtimes=runtimes.read(classes))
    return compose([], [], {"Deployment": [obj]}, around, memo).workloads[0]


def test_changed_class_is_heard_of_although_the_object_stays() -> None:
    memo, obj = Memo(), sandboxed("Deployment")

    assert [look(memo, obj).cpus, look(memo, obj, KATA).cpus, look(memo, obj).cpus] == [0, 250, 0]
    assert look(memo, obj, KATA) is look(memo, obj, KATA)


def test_class_with_a_senseless_overhead_stops_only_who_names_it() -> None:
    broken = {"metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "much"}}}
    other = manifests.deployment("other")
    other["metadata"] |= {"uid": "o", "creationTimestamp": "2026-01-05T09:00:00Z"}
    around = Circumstances(CLASSES, runtimes=runtimes.read([broken]))
    found = compose([], [], {"Deployment": [sandboxed("Deployment"), other]}, around)

    assert {o.name: bool(o.fault) for o in found.workloads} == {"w": True, "other": False}
