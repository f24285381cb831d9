"""What a cycle writes of nodes."""

from __future__ import annotations

import pytest

from scheduling.models import Node, State
from tests.scheduling.kube import World

GPU = "nvidia.com/gpu"


def offer(world: World, allocatable: str, capacity: str) -> None:
    """What the kubelet of n1 says of its GPUs."""
    status = {"allocatable": {GPU: allocatable}, "capacity": {GPU: capacity}}
    world.kube.patch("/api/v1/nodes/n1/status", {"status": status})


def codes(name: str) -> list[str]:
    return [trouble["code"] for trouble in Node.objects.get(name=name).troubles]


def test_cordon_of_a_node_is_kept_until_it_is_lifted(world: World) -> None:
    world.cycle()
    assert codes("n1") == []

    world.kube.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}})
    world.cycle()
    assert codes("n1") == ["cordoned"]
    assert codes("n2") == []

    world.kube.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": False}})
    world.cycle()
    assert codes("n1") == []


@pytest.mark.parametrize("capacity", ["8", "0"], ids=["all unhealthy", "plugin gone"])
def test_node_that_hands_out_no_gpu_stays_with_those_it_has_until_it_does(
    world: World, capacity: str
) -> None:
    world.cycle()
    for _ in range(2):
        offer(world, "0", capacity)
        world.cycle()
        row = Node.objects.get(name="n1")
        assert (row.gpus, row.ready, codes("n1")) == (8000, False, ["no_gpus"])

    offer(world, "8", "8")
    world.cycle()
    row = Node.objects.get(name="n1")
    assert (row.gpus, row.ready, codes("n1")) == (8000, True, [])


def test_node_that_hands_out_no_gpu_says_so_while_work_is_still_on_it(world: World) -> None:
    world.job("w1", gpus=5)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    [name] = world.row("w1").placement
    world.kube.patch(
        f"/api/v1/nodes/{name}/status",
        {"status": {"allocatable": {GPU: "0"}, "capacity": {GPU: "0"}}},
    )
    world.cycle()
    row = Node.objects.get(name=name)
    assert (row.gpus, row.allocated_gpus, row.ready) == (8000, 5000, False)
    assert codes(name) == ["no_gpus"]
