"""What a cycle writes of nodes."""

from __future__ import annotations

from scheduling.models import Node
from tests.scheduling.kube import World


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
