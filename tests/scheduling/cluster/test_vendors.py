"""One table says what GPUs are called: a row more, and policies, adapters and nodes know its vendor."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters import ClassSpec, fitting
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.guardrails import NamespaceRail, Rails, manifests
from scheduling.cluster.metrics import PodUse, Prometheus, read
from scheduling.cluster.picture.nodes import trim_node
from scheduling.cluster.vocabulary import vendors
from scheduling.cluster.vocabulary.devices import count
from scheduling.cluster.vocabulary.vendors import Metrics, Vendor
from scheduling.services.clusters.namespaces import machines_of
from scheduling.services.clusters.naming import name_for, product_label
from tests.scheduling.cluster.metrics.test_reading import series, serving, vector
from tests.scheduling.kube import node

ACME = Vendor(
    "acme",
    resources=("acme[.]example/tensor",),
    partitions=("acme[.]example/slice-.+",),
    drivers=("tensor[.]acme[.]example",),
    product=("acme.example/model",),
    metrics=Metrics(("acme_busy",), "acme_used", "acme_free", "acme_watts", ("board",)),
    brands=("acme",),
    tool="acme-smi",
)


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendors, "VENDORS", (*vendors.VENDORS, ACME))


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-3g.20gb",
        "nvidia.com/mig-1g.5gb.shared",
        "nvidia.com/GA102GL_A10",
        "amd.com/gpu",
        "amd.com/cpx_nps4",
        "amd.com/spx_nps1",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        "huawei.com/Ascend910",
        "mthreads.com/vgpu",
        "k8s.amazonaws.com/vgpu",
        "example.com/gpu",
        "deviceclass.resource.kubernetes.io/gpu.nvidia.com",
    ],
)
def test_name_that_is_shaped_as_a_gpu_is_one(name: str) -> None:
    assert vendors.is_gpu(name)


@pytest.mark.parametrize(
    "name",
    ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "rdma/hca", "nvidia.com/hostdev",
     "example.com/gpus-are-nice/no", "gpu", "amd.com/npu"],
)  # fmt: skip
def test_name_that_is_not_is_none(name: str) -> None:
    assert not vendors.is_gpu(name)


def test_part_of_a_gpu_is_told_from_a_whole_one() -> None:
    names = ["nvidia.com/mig-3g.20gb", "nvidia.com/gpu.shared", "amd.com/cpx_nps4"]
    assert all(map(vendors.is_partition, names))
    assert not any(map(vendors.is_partition, ["nvidia.com/gpu", "amd.com/gpu"]))


def test_row_more_is_in_every_policy_that_knows_gpus(acme: None) -> None:
    made = manifests(Rails(namespaces=(NamespaceRail("lab", ("research",)),)))
    variables = [v for body in made for v in body.get("spec", {}).get("variables", ())]
    shapes = [v["expression"] for v in variables if v["name"] == "gpuShape"]
    assert shapes
    assert all("acme[.]example/tensor" in shape for shape in shapes)


def test_row_more_is_gpu_work_to_adapters(acme: None) -> None:
    asks = pods_of.requests_of(pod("acme.example/slice-2"))
    assert fitting.gpu_resources(asks, ["nvidia.com/gpu"]) == ["acme.example/slice-2"]
    assert "acme.example/slice-2" in fitting.fault({0}, [asks], [()], ["nvidia.com/gpu"])


def test_row_more_is_seen_on_nodes(acme: None) -> None:
    held = node("n1")
    held["status"]["allocatable"] |= {"acme.example/tensor": "4"}
    held["metadata"]["labels"] |= {"acme.example/model": "T1"}
    [machine] = machines_of([trim_node(held)], [])
    assert "acme.example/tensor" in machine.resources
    assert product_label(held["metadata"]["labels"]) == {"acme.example/model": "T1"}


def test_row_more_names_classes_and_its_tool(acme: None) -> None:
    assert name_for("acme.example/tensor", {"acme.example/model": "ACME-T1-80GB"}) == "t1-80gb"
    assert "acme-smi" in vendors.tools()


def test_moore_threads_names_its_classes_after_the_product() -> None:
    labels = {"mthreads.com/product": "S4000", "mthreads.com/memory-mb": "49152"}
    known = product_label(labels)
    assert known == {"mthreads.com/product": "S4000"}
    assert name_for("mthreads.com/vgpu", known) == "s4000"


def test_row_more_is_measured_by_its_exporter(acme: None) -> None:
    answers = {
        "acme_busy": vector(series(0.5, board="a")),
        "acme_used": vector(series(100, board="a")),
        "acme_free": vector(series(300, board="a")),
        "acme_watts": vector(series(70, board="a")),
    }
    with serving(answers) as url:
        assert read(Prometheus(url)) == {("team", "train-0"): PodUse(1, 0.5, 100.0, 400.0, 70.0)}


def test_amd_is_measured_in_hundredths() -> None:
    with serving({"gpu_gfx_activity": vector(series(40, gpu_id="3"))}) as url:
        assert read(Prometheus(url))["team", "train-0"].activity == 0.4


def test_derived_name_of_a_class_with_another_counts_as_that() -> None:
    devices = count([device_class("gpu.nvidia.com", "nvidia.com/gpu")], [], [])
    asks = pods_of.requests_of(
        pod("deviceclass.resource.kubernetes.io/gpu.nvidia.com", 8), devices.claims("lab")
    )
    assert asks == {"nvidia.com/gpu": 8000}
    spec = ClassSpec("h100", "nvidia.com/gpu", {})
    own: Any = {"selector": {}, "terms": []}
    assert fitting.fitting_classes(asks, own, [spec], "", swaps=False) == ("h100",)


def test_network_card_beside_gpus_of_a_class_is_no_second_gpu() -> None:
    asks = {"nvidia.com/gpu": 8000, "deviceclass.resource.kubernetes.io/nic": 1000}
    assert fitting.gpu_resources(asks, ["nvidia.com/gpu"]) == ["nvidia.com/gpu"]


def pod(resource: str, amount: int = 1) -> Any:
    return {"containers": [{"resources": {"limits": {resource: str(amount)}}}]}


def device_class(name: str, resource: str) -> Any:
    return {"metadata": {"name": name}, "spec": {"extendedResourceName": resource}}
