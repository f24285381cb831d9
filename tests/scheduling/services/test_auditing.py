"""That the auditor of limits sees what passes them, be it for a single write."""

from __future__ import annotations

import json

import pytest

from tests.scheduling.auditing import audited, put_under_one_roof
from tests.scheduling.kube import World

Admitted = tuple[str, str, int]
"""Queue, node, GPUs"""

CASES: dict[str, tuple[list[Admitted], str]] = {
    "a-queue-past-its-limit": (
        [("research", "n1", 4), ("research", "n2", 4), ("research", "n1", 1)],
        "research has 9 of 8",
    ),
    "two-queues-past-the-limit-above": (
        [("research", "n1", 6), ("products", "n2", 7)],
        "roof has 13 of 12",
    ),
    "a-node-past-its-capacity": ([("research", "n1", 5), ("products", "n1", 4)], "n1 has 9"),
    "pods-without-a-place": ([("research", "", 1)], "j0 has no place"),
}


@pytest.fixture
def roof(world: World) -> World:
    put_under_one_roof(world, nominal_gpus=6, borrowing={"research": 2, "products": 2}, together=12)
    return world


def admit(world: World, name: str, queue: str, node: str, gpus: int) -> None:
    """As Weir writes it."""
    world.job(name, queue=queue, gpus=gpus)
    placement = json.dumps({node: 1} if node else {})
    notes = {"weir.dev/gpu-class": "h100", "weir.dev/placement": placement}
    world.edit(name, {"metadata": {"annotations": notes}, "spec": {"suspend": False}})


def admit_and_take_back(world: World, admitted: list[Admitted]) -> None:
    for number, case in enumerate(admitted):
        admit(world, f"j{number}", *case)
    world.edit("j0", {"spec": {"suspend": True}})


@pytest.mark.parametrize(("admitted", "complaint"), CASES.values(), ids=CASES.keys())
def test_excess_of_one_write_fails_the_block(
    roof: World, admitted: list[Admitted], complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint), audited(roof):
        admit_and_take_back(roof, admitted)


def test_all_that_is_allowed_passes(roof: World) -> None:
    with audited(roof):
        admit(roof, "a", "research", "n1", 8)
        admit(roof, "b", "products", "n2", 4)


def test_what_is_there_from_the_beginning_counts(roof: World) -> None:
    admit(roof, "a", "research", "n1", 9)
    with pytest.raises(AssertionError, match="research has 9 of 8"), audited(roof):
        pass
