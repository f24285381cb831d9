"""Worlds whose gangs keep so many members at a time inside one domain."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from scheduling.engine import (
    GpuClass,
    Members,
    Node,
    Policy,
    Queue,
    Quota,
    Snapshot,
    Topology,
    Workload,
    plan,
)
from scheduling.engine.model import Segment
from tests.scheduling.engine.evolve import apply, let_leave, wait
from tests.scheduling.engine.worlds import NOW, PRIORITIES


@st.composite
def segmented(draw: st.DrawFn) -> Snapshot:
    """A world in the middle of its work: some came first, then others."""
    count = draw(st.integers(3, 8))
    queues = tuple(
        Queue(name, quotas={"h100": Quota(1000 * draw(st.integers(0, 8 * count)))})
        for name in ("a", "b")
    )
    start = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(draw(_node(i)) for i in range(count)),
        queues=queues,
        priority_classes=PRIORITIES,
        workloads=tuple(draw(_gang(f"w{i}")) for i in range(draw(st.integers(1, 5)))),
        policy=Policy(
            max_moves=draw(st.sampled_from([0, 3])),
            placement=draw(st.sampled_from(["pack", "pack", "spread"])),
        ),
    )
    start = let_leave(apply(start, plan(start)))
    start = wait(start, draw(st.sampled_from([0, 100, 4000])))
    late = (draw(_gang(f"x{i}")) for i in range(draw(st.integers(0, 4))))
    return replace(
        start,
        workloads=(
            *start.workloads,
            *(replace(w, submitted=start.now - timedelta(seconds=5)) for w in late),
        ),
    )


@st.composite
def _node(draw: st.DrawFn, i: int) -> Node:
    rack = draw(st.sampled_from(["r1", "r2", "r3", ""]))
    names = {"block": "b2" if rack == "r3" else "b1", "rack": rack} if rack else {}
    return Node(f"n{i}", "h100", draw(st.sampled_from([4000, 8000])), topology=names)


@st.composite
def _gang(draw: st.DrawFn, name: str) -> Workload:
    size = draw(st.sampled_from([1, 2, 2, 3, 4]))
    least = size * draw(st.integers(1, 2))
    most = least + size * draw(st.sampled_from([0, 0, 1, 2]))
    level = draw(st.sampled_from(["rack", "rack", "node", "block"]))
    is_firm = draw(st.sampled_from([True, True, False]))
    around = draw(st.sampled_from([None, None, "block", level]))
    return Workload(
        name=name,
        queue=draw(st.sampled_from(["a", "b"])),
        priority_class=draw(st.sampled_from(PRIORITIES)).name,
        submitted=NOW - timedelta(seconds=draw(st.integers(0, 5000))),
        gpus=draw(st.sampled_from([500, 1000, 2000, 4000])),
        members=Members(least, most),
        elastic=most > least,
        gpu_classes=("h100",),
        topology=Topology(
            required=around if draw(st.booleans()) else None,
            preferred=None,
            segment=Segment(size, level if is_firm else None, None if is_firm else level),
        ),
    )
