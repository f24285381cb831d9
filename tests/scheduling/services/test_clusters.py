"""How a cluster comes under Weir."""

from __future__ import annotations

import pytest

from scheduling.models import Cluster, ClusterMode, GpuClass, Sharing
from scheduling.services.clusters import add as clusters
from scheduling.services.errors import ServiceError
from scheduling.services.queues.rows import engine_policy, load
from tests.scheduling.kube import World, node


def test_added_cluster_is_observed_and_has_a_root(db: None) -> None:
    made = clusters.add("fra1", kubeconfig="/etc/kube/config", context="fra1")

    assert made.mode == ClusterMode.OBSERVE
    assert made.queues.get().is_root


def test_added_cluster_is_planned_by_promise(db: None) -> None:
    cluster = clusters.add("fra1")
    assert engine_policy(load(cluster, at=cluster.now())).sharing is Sharing.PROMISE


@pytest.mark.parametrize("name", ["Not A Name", ""])
def test_bad_name_is_refused(db: None, name: str) -> None:
    with pytest.raises(ServiceError) as refused:
        clusters.add(name)
    assert refused.value.field == "name"


def test_taken_name_is_refused(db: None) -> None:
    clusters.add("fra1")
    with pytest.raises(ServiceError):
        clusters.add("fra1")


def test_mode_is_set_and_kept_in_history(db: None) -> None:
    cluster = clusters.add("fra1")

    assert clusters.set_mode(cluster, ClusterMode.ENFORCE)
    assert not clusters.set_mode(cluster, ClusterMode.ENFORCE)
    assert [h.mode for h in cluster.history.order_by("history_id")] == ["observe", "enforce"]
    assert Cluster.objects.get().revision == 1


def test_classes_are_found_by_resource_and_product(world: World) -> None:
    GpuClass.objects.all().delete()
    world.kube.delete("/api/v1/nodes/n2")
    product = "nvidia.com/gpu.product"
    world.kube.patch(
        "/api/v1/nodes/n1", {"metadata": {"labels": {product: "NVIDIA-H100-80GB-HBM3"}}}
    )
    sliced = node("s1", **{product: "NVIDIA-A100-SXM4-80GB"})
    sliced["status"]["allocatable"] = {"nvidia.com/mig-1g.10gb": "7", "cpu": "8"}
    world.kube.create("/api/v1/nodes", sliced)

    made = {c.name: (c.resource_name, c.node_labels) for c in clusters.find_classes(world.cluster)}
    assert made == {
        "h100-80gb-hbm3": ("nvidia.com/gpu", {product: "NVIDIA-H100-80GB-HBM3"}),
        "a100-sxm4-80gb-mig-1g.10gb": (
            "nvidia.com/mig-1g.10gb",
            {product: "NVIDIA-A100-SXM4-80GB"},
        ),
    }
    assert clusters.find_classes(world.cluster) == []
