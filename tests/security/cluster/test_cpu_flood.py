"""CPU-only work that fills GPU nodes: their GPUs would be of no use to anybody."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.guardrails import reserve
from scheduling.models import GpuClass, Guardrail, Queue, State
from scheduling.services.clusters.add import reserve as keep
from tests.scheduling.kube import eventually
from tests.scheduling.services.guardrails.lab import Lab, Pass

Json = dict[str, Any]
KEPT = {"key": "gpu", "operator": "NotIn", "values": ["h100"]}


def pod(name: str = "flood", *, gpus: int = 0, cpu: str = "90", **spec: Any) -> Json:
    resources: Json = {"requests": {"cpu": cpu}}
    if gpus:
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "work", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def terms(lab: Lab, body: Json) -> Any:
    """The node selector terms that the API server gives the pod."""
    path = f"{lab.home}/pods"
    made = lab.kube.request("POST", path, query={"dryRun": "All"}, body=body)
    affinity = (made["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms")


@pytest.fixture
def reserved(lab: Lab, guarded: Pass) -> None:
    """The nodes of h100 take GPU work only, and the API server knows."""
    keep(GpuClass.objects.get(), {})
    Queue.objects.filter(name="research").update(max_cpus=1_000_000)
    guarded()
    found = Guardrail.objects.get(kind="MutatingAdmissionPolicy", name=reserve.NAME)
    assert found.standing == "in_step", found.detail
    eventually(lambda: terms(lab, pod()))


def affine(*found: Json) -> Json:
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(found)}}
    return {"nodeAffinity": node}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.real
def test_pod_without_gpus_is_kept_off_reserved_nodes(lab: Lab, reserved: None) -> None:
    assert terms(lab, pod()) == [{"matchExpressions": [KEPT]}]


@pytest.mark.real
def test_no_affinity_of_ones_own_opens_them(lab: Lab, reserved: None) -> None:
    own = [
        {"matchExpressions": [expression("gpu", "In", "h100")]},
        {"matchExpressions": [expression("a", "Exists"), expression("b", "NotIn", "x", "y")]},
        {"matchFields": [expression("metadata.name", "In", "n1")]},
    ]
    anti = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert terms(lab, pod(affinity={**affine(*own), **anti})) == [
        {"matchExpressions": [expression("gpu", "In", "h100"), KEPT]},
        {"matchExpressions": [expression("a", "Exists"), expression("b", "NotIn", "x", "y"), KEPT]},
        {"matchExpressions": [KEPT], "matchFields": [expression("metadata.name", "In", "n1")]},
    ]
    assert terms(lab, pod(affinity=anti)) == [{"matchExpressions": [KEPT]}]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": []}
    liked = pod(affinity={"nodeAffinity": preferred})
    assert terms(lab, liked) == [{"matchExpressions": [KEPT]}]


@pytest.mark.real
def test_pod_with_gpus_is_left_as_it_is(lab: Lab, reserved: None) -> None:
    gated = pod(gpus=1, schedulingGates=[{"name": "weir.dev/queue"}])
    gated["metadata"]["labels"] = {"weir.dev/queue": "research"}
    assert terms(lab, gated) is None


@pytest.mark.real
def test_gang_starts_whoever_floods_the_cluster_with_cpu_work(lab: Lab, reserved: None) -> None:
    for number in range(2):
        lab.kube.create(f"{lab.home}/pods", pod(f"flood-{number}", cpu="90"))
    gang = lab.manifest("gang", gpus=4, pods=2)
    gang["metadata"]["namespace"] = lab.namespace
    container = gang["spec"]["template"]["spec"]["containers"][0]
    container["resources"].setdefault("requests", {})["cpu"] = "32"
    lab.kube.create(f"/apis/batch/v1/namespaces/{lab.namespace}/jobs", gang)
    lab.cycles_until(lambda: lab.row("gang").state == State.RUNNING)
    flood = lab.kube.get(f"{lab.home}/pods")["items"]
    assert not any(
        p["spec"].get("nodeName") for p in flood if p["metadata"]["name"].startswith("flood")
    )


@pytest.mark.real
def test_reserve_that_is_given_up_opens_the_nodes(lab: Lab, reserved: None, guarded: Pass) -> None:
    keep(GpuClass.objects.get(), None)
    guarded()
    eventually(lambda: terms(lab, pod()) is None)


def test_nothing_is_reserved_unless_somebody_says_so(lab: Lab, guarded: Pass) -> None:
    result = guarded()
    assert not any(f.name == reserve.NAME for f in result.findings)


def test_part_of_a_class_is_reserved_by_a_label_of_its_nodes(lab: Lab) -> None:
    assert keep(GpuClass.objects.get(), {"pool": "train"}).reserved_labels == {"pool": "train"}


def test_nodes_of_several_labels_are_left_by_lacking_one_of_them() -> None:
    ways = reserve._ways_out([{"gpu": "h100", "pool": "a"}, {"gpu": "a100"}])
    assert ways == [[("gpu", "a100"), ("gpu", "h100")], [("gpu", "a100"), ("pool", "a")]]
