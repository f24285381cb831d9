"""Which numbers of GPUs are tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.engine.model import MILLI, Node
from scheduling.services.studies.capacity.ladder import changed, ladders, whole
from tests.scheduling.simulation.ahead.test_forward import H100, workload, world


def rungs(nodes: int, **more: object) -> list[tuple[int, int]]:
    (one,) = ladders(world(nodes=nodes), **more)  # type: ignore[arg-type]
    return [(rung.nodes, rung.gpus // MILLI) for rung in one.rungs]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (1, [0, 1, 2, 3, 4]),
        (2, [-1, 0, 1, 2, 3, 4]),
        (16, [-2, -1, 0, 1, 2, 3, 4]),
        (64, [-8, -4, 0, 4, 8, 12, 16]),
    ],
)
def test_ladder_goes_by_nodes_and_keeps_the_last(nodes: int, expected: list[int]) -> None:
    found = rungs(nodes)
    assert [one for one, _ in found] == expected
    assert [gpus for _, gpus in found] == [8 * (nodes + one) for one in expected]


def test_as_it_is_stands_in_every_ladder() -> None:
    assert rungs(16, steps=()) == [(0, 128)]


def test_usual_node_is_the_one_that_most_are_like() -> None:
    snapshot = world(nodes=3)
    small = Node("small", H100, 4 * MILLI)
    (one,) = ladders(replace(snapshot, nodes=(*snapshot.nodes, small)))
    assert (one.node_gpus, one.installed) == (8 * MILLI, 28 * MILLI)


def test_class_without_nodes_has_no_ladder() -> None:
    assert ladders(replace(world(), nodes=())) == ()


def test_node_that_is_down_counts_as_installed() -> None:
    snapshot = world(workload("one"), nodes=2)
    first, second = snapshot.nodes
    template = whole(replace(snapshot, nodes=(first, replace(second, ready=False))))
    assert ladders(template)[0].installed == 16 * MILLI
    assert template.workloads == ()


def test_nothing_changed_is_the_template_itself() -> None:
    template = world(nodes=2)
    assert changed(template, H100, 0) is template
    assert len(changed(template, H100, -1).nodes) == 1
