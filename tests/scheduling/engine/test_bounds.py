"""What a cycle leaves undone because its searches are bounded, and who is told so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from scheduling.engine import (
    Action,
    Decision,
    GpuClass,
    Node,
    Phase,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Snapshot,
    Workload,
    encode,
    plan,
    plan_frame,
)
from scheduling.engine.eviction.search import MOST_STRETCHED
from tests.scheduling.engine.evolve import apply, let_leave

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
TWO = {"g": Quota(nominal=2000)}


def _neighbours(number: int) -> tuple[list[Node], list[Queue], list[Workload]]:
    """A queue that lends two scattered GPUs of its share, beside the one that is owed them."""
    lender, owner = f"lender{number:02}", f"owner{number:02}"
    nodes = [Node(f"n{number:02}{k}", gpu_class="g", gpus=3000) for k in "ab"]
    asks = Workload(
        name=f"mine{number:02}",
        queue=owner,
        priority_class="train",
        gpus=2000,
        submitted=NOW - timedelta(minutes=30),
    )
    runs = [
        replace(
            asks,
            name=f"lent{node.name}",
            queue=lender,
            submitted=NOW - timedelta(hours=2),
            phase=Phase.RUNNING,
            started=NOW - timedelta(hours=1),
            gpu_class="g",
            placement={node.name: 1},
        )
        for node in nodes
    ]
    return nodes, [Queue(lender, quotas=TWO), Queue(owner, quotas=TWO)], [asks, *runs]


def _street(length: int) -> Snapshot:
    parts = [_neighbours(number) for number in range(length)]
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("g"),),
        nodes=tuple(node for nodes, _, _ in parts for node in nodes),
        queues=tuple(queue for _, queues, _ in parts for queue in queues),
        priority_classes=(PriorityClass("train", value=50),),
        workloads=tuple(work for _, _, works in parts for work in works),
    )


def _waiting(snapshot: Snapshot) -> Iterator[Decision]:
    asked = {work.name for work in snapshot.workloads if work.name.startswith("mine")}
    for line in plan(snapshot).decisions:
        if line.workload in asked and line.action is Action.WAIT:
            yield line


def test_workload_beyond_the_bound_of_searches_is_told_that_none_was_made_for_it() -> None:
    (left,) = _waiting(_street(MOST_STRETCHED + 1))

    assert left.reason is Reason.FRAGMENTED
    assert left.numbers["searches"] == MOST_STRETCHED
    assert left.sentence.endswith(
        "No wider search for room was made: this cycle had made its 32 before."
    )


def test_workload_beyond_the_bound_of_searches_gets_its_room_in_the_next_cycle() -> None:
    street = _street(MOST_STRETCHED + 1)

    after = let_leave(apply(street, plan(street)))

    assert list(_waiting(after)) == []


def test_workload_within_the_bound_is_told_nothing_of_it() -> None:
    assert list(_waiting(_street(MOST_STRETCHED))) == []


def test_fewer_nodes_than_classes_leave_a_place_on_the_heap_for_each_block() -> None:
    snapshot = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("f"), GpuClass("g")),
        nodes=(Node("n1", gpu_class="g", gpus=1000),),
        queues=(),
        priority_classes=(),
        workloads=(),
    )

    frame = encode(snapshot)
    plan_frame(frame)

    blocks = frame.buffers.candidates.blocks

    assert blocks.open.size > 1
    for places in (blocks.heap.node, blocks.heap.position, blocks.heap.cost):
        assert places.size >= blocks.open.size
