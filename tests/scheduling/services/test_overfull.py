"""A node that holds more than it has: a device failed, or somebody bound a pod past the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.engine import Planner
from scheduling.models import Node, State
from scheduling.services.snapshot import build as snapshots
from tests.scheduling.kube import JOBS, World, eventually

PODS = "/api/v1/namespaces/default/pods"


def offer(world: World, **amounts: str) -> None:
    """What the kubelet of ``n1`` says that it has from now on."""
    names = {"gpus": "nvidia.com/gpu"}
    found = {names.get(name, name): amount for name, amount in amounts.items()}
    world.kube.patch(
        "/api/v1/nodes/n1/status", {"status": {"allocatable": found, "capacity": found}}
    )


def bound(name: str, node: str, *, gpus: int, cpu: str = "1") -> Any:
    """A pod outside the queues that names its node."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"cpu": cpu}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "work", "resources": resources}],
        },
    }


@pytest.fixture
def full(world: World) -> Any:
    """``n1`` and ``n2`` hold 8 of 8 GPUs."""
    for name, queue in (("one", "research"), ("two", "products")):
        world.job(name, gpus=8, queue=queue)
    world.cycles_until(lambda: {world.row(n).state for n in ("one", "two")} == {State.RUNNING})
    yield world
    offer(world, gpus="8", cpu="96")


def settled(world: World) -> None:
    """Cycles go on, and nobody is told of room that is not there."""
    world.job("next", gpus=1)
    for _ in range(3):
        world.cycle()
    assert world.read("next")["spec"]["suspend"]
    for node in Node.objects.all():
        assert node.gpus >= 0
        assert 0 <= node.foreign_gpus <= node.gpus
    snapshot = snapshots.live(world.cluster)
    assert all(0 <= node.foreign_gpus <= node.gpus for node in snapshot.nodes)
    assert all(node.cpus >= 0 and node.memory_mib >= 0 for node in snapshot.nodes)
    assert not any(d.workload == "default/next" for d in Planner().plan(snapshot).acts)


def test_devices_that_failed_under_work_are_not_given_out(full: World) -> None:
    offer(full, gpus="3")
    settled(full)


def test_node_without_any_device_left_is_not_given_out(full: World) -> None:
    offer(full, gpus="0")
    settled(full)


def test_node_with_less_cpu_than_it_holds_is_not_given_out(full: World) -> None:
    full.kube.delete(f"{JOBS}/one", {"propagationPolicy": "Background"})
    full.cycles_until(lambda: full.row("one").state == State.FINISHED)
    offer(full, cpu="0")
    job = full.manifest("next", gpus=1)
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    full.kube.create(JOBS, job)
    full.cycle()
    full.cycle()
    assert "n1" not in full.row("next").placement


def test_pod_that_named_its_node_takes_nothing_twice(full: World) -> None:
    """A kubelet refuses it, unless it is faster than the devices are counted."""
    full.kube.create(PODS, bound("foreign", "n1", gpus=8, cpu="200"))
    eventually(lambda: full.kube.get(f"{PODS}/foreign"))
    settled(full)
    full.kube.delete(f"{PODS}/foreign", {"gracePeriodSeconds": 0})
