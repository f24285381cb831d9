"""Searches for victims on more nodes than one block holds: who is cheapest, wherever it sits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from scheduling.engine import (
    Action,
    GpuClass,
    Members,
    Node,
    Phase,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Workload,
    plan,
)
from scheduling.engine.state.nodes import BLOCK_SIZE

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
NODES = 3 * BLOCK_SIZE + 1


def full(shorter: Mapping[int, int], gang: tuple[int, ...] = (), asks: int = 1) -> Snapshot:
    """One GPU on each node. A borrower's jobs run everywhere, since an hour but where ``shorter`` says since
    how many seconds, and as one gang on the nodes of ``gang``; a gang of ``asks`` members is owed GPUs.
    """
    runs = [
        _running(f"job{n:03}", [n], shorter.get(n, 3600)) for n in range(NODES) if n not in gang
    ]
    if gang:
        runs.append(_running("gang", gang, shorter.get(gang[0], 3600)))
    waiting = Workload(
        "owed", queue="owner", priority_class="p", submitted=NOW, members=Members(asks, asks)
    )
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(Node(_name(n), "h100", 1000) for n in range(NODES)),
        queues=(Queue("borrower"), Queue("owner", quotas={"h100": Quota(1000 * NODES)})),
        priority_classes=(PriorityClass("p", 50),),
        workloads=(*runs, waiting),
    )


def _running(name: str, nodes: list[int] | tuple[int, ...], for_s: int) -> Workload:
    return Workload(
        name,
        queue="borrower",
        priority_class="p",
        submitted=NOW - timedelta(hours=2),
        members=Members(len(nodes), len(nodes)),
        phase=Phase.RUNNING,
        started=NOW - timedelta(seconds=for_s),
        gpu_class="h100",
        placement={_name(n): 1 for n in nodes},
    )


def _name(n: int) -> str:
    return f"n{n:03}"


def evicted(snapshot: Snapshot) -> set[str]:
    return {d.workload for d in plan(snapshot).decisions if d.action is Action.EVICT}


def test_cheapest_victim_on_the_last_node_leaves() -> None:
    assert evicted(full({NODES - 1: 60})) == {f"job{NODES - 1:03}"}


def test_equal_victims_leave_from_the_lowest_node_on() -> None:
    assert evicted(full({}, asks=3)) == {"job000", "job001", "job002"}


def test_cheapest_victims_of_several_blocks_leave_together() -> None:
    cheap = {5: 60, BLOCK_SIZE + 5: 30, 2 * BLOCK_SIZE + 5: 90}

    assert evicted(full(cheap, asks=3)) == {f"job{n:03}" for n in cheap}


def test_gang_across_blocks_gives_all_its_seats_before_another_is_looked_for() -> None:
    gang = (7, 2 * BLOCK_SIZE)

    assert evicted(full({7: 60}, gang, asks=2)) == {"gang"}
