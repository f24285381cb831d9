"""Pods to nodes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduling.manifests import node_affinity

from .conftest import Cluster


def _nodes_of(cluster: Cluster) -> list[str | None]:
    return sorted(pod["spec"].get("nodeName", "") for pod in cluster.pods())


def _why(cluster: Cluster) -> str:
    conditions = cluster.pods()[0]["status"]["conditions"]
    return str(next(c["message"] for c in conditions if c["type"] == "PodScheduled"))


def test_devices_are_never_overcommitted(cluster: Cluster) -> None:
    cluster.node("n1", gpus=4)
    cluster.job("a", gpus=2, parallelism=3, completions=3)
    cluster.step()
    assert _nodes_of(cluster) == ["", "n1", "n1"]


def test_message_counts_the_nodes_by_what_stands_against_them(cluster: Cluster) -> None:
    cluster.node("n1", gpus=1)
    cluster.node("n2", gpus=1)
    cluster.node("n3", gpus=8, taints=[{"key": "gpu", "value": "x", "effect": "NoSchedule"}])
    cluster.job("a", gpus=2)
    cluster.step()
    assert _why(cluster) == (
        "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: x}, "
        "2 Insufficient nvidia.com/gpu."
    )


def test_waiting_pod_starts_when_room_is_freed(cluster: Cluster) -> None:
    cluster.node("n1", gpus=4)
    cluster.job("a", gpus=4, annotations={"weir.dev/run-seconds": "10"})
    cluster.step()
    cluster.job("b", gpus=4)
    cluster.step(5)
    assert len(cluster.pods("Running")) == 1
    cluster.step(10)
    assert cluster.status("b")["ready"] == 1


def test_fuller_node_is_filled_first(cluster: Cluster) -> None:
    cluster.node("n1", gpus=8)
    cluster.node("n2", gpus=8)
    cluster.job("a", gpus=2, parallelism=3, completions=3)
    cluster.step()
    assert _nodes_of(cluster) == ["n1", "n1", "n1"]


def test_higher_priority_goes_first(cluster: Cluster) -> None:
    cluster.api.create("priorityclasses", {"metadata": {"name": "high"}, "value": 100})
    cluster.job("low", gpus=2)
    cluster.job("high", gpus=2, pod={"priorityClassName": "high"})
    cluster.step()
    cluster.node("n1", gpus=2)
    cluster.step(5)
    assert cluster.status("high")["ready"] == 1
    assert cluster.status("low")["ready"] == 0


@pytest.mark.parametrize(
    ("affinity", "fits"),
    [
        (node_affinity("gpu", "h100", "a100"), True),
        (node_affinity("gpu", "v100"), False),
        (node_affinity("gpu", "h100", operator="NotIn"), False),
        (node_affinity("gpu", operator="Exists"), True),
        (node_affinity("gpu", operator="DoesNotExist"), False),
        (node_affinity("memory", "40", operator="Gt"), True),
        (node_affinity("memory", "40", operator="Lt"), False),
    ],
)
def test_required_affinity_is_respected(cluster: Cluster, affinity: Any, fits: bool) -> None:
    cluster.node("n1")
    cluster.api.patch("nodes", "n1", {"metadata": {"labels": {"gpu": "h100", "memory": "80"}}})
    cluster.job("a", pod={"affinity": affinity})
    cluster.step()
    assert _nodes_of(cluster) == ["n1" if fits else ""]


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_taints_need_a_toleration(cluster: Cluster, toleration: Any, fits: bool) -> None:
    cluster.node("n1", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    cluster.job("a", pod={"tolerations": [toleration]})
    cluster.step()
    assert _nodes_of(cluster) == ["n1" if fits else ""]


def test_cordoned_node_takes_nothing_until_it_is_opened(cluster: Cluster) -> None:
    cluster.node("n1", unschedulable=True)
    cluster.job("a")
    cluster.step()
    assert "1 node(s) were unschedulable" in _why(cluster)
    cluster.api.patch("nodes", "n1", {"spec": {"unschedulable": None}})
    cluster.step()
    assert _nodes_of(cluster) == ["n1"]


def test_gate_holds_a_pod_and_its_removal_frees_it(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", pod={"schedulingGates": [{"name": "weir.dev/gate"}]})
    cluster.step()
    assert "scheduling gates" in _why(cluster)
    name = cluster.pods()[0]["metadata"]["name"]
    cluster.api.patch("pods", name, {"spec": {"schedulingGates": None}})
    cluster.step()
    assert _nodes_of(cluster) == ["n1"]


def test_freed_room_goes_to_the_first_in_order_that_fits(cluster: Cluster) -> None:
    cluster.node("n1", gpus=4)
    cluster.node("n2", gpus=1)
    cluster.job("first", gpus=4, annotations={"weir.dev/run-seconds": "10"})
    cluster.step()
    for name, gpus in (("wide", 8), ("second", 3), ("third", 2)):
        cluster.job(name, gpus=gpus)
    cluster.step(5)
    assert {cluster.status(name)["ready"] for name in ("second", "third")} == {0}
    cluster.step(10)
    assert (cluster.status("second")["ready"], cluster.status("third")["ready"]) == (1, 0)
