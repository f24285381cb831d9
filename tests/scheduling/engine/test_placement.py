"""Laws of placement: topology is kept, names decide nothing but ties, the demand mix is what is stated."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import (
    Action,
    GpuClass,
    Members,
    Node,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    SnapshotError,
    Topology,
    Workload,
    WorkloadType,
    plan,
)

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
LEVELS = (None, "block", "rack", "node")


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Node, ...]:
    """Up to 9 nodes in racks inside blocks, some without labels."""
    nodes = []
    for i in range(draw(st.integers(1, 9))):
        rack = draw(st.sampled_from(["", "b1/r1", "b1/r2", "b2/r3"]))
        topology = {"block": rack[:2], "rack": rack} if rack else {}
        gpus, cpus = draw(st.integers(0, 4)), draw(st.sampled_from([None, 2000, 5000]))
        nodes.append(Node(f"n{i}", "gpu", 1000 * gpus, cpus, topology=topology))
    return tuple(nodes)


@st.composite
def gangs(draw: st.DrawFn) -> Workload:
    """A gang with any pair of levels that makes sense."""
    required = draw(st.sampled_from(LEVELS))
    below = LEVELS[LEVELS.index(required) + 1 :] if required else LEVELS[1:]
    preferred = draw(st.sampled_from([None, *below]))
    members = draw(st.integers(1, 6))
    return Workload(
        "gang", "q", draw(st.sampled_from(["train", "serve"])), NOW,
        gpus=draw(st.sampled_from([500, 1000, 2000])), cpus=draw(st.sampled_from([0, 1000, 2000])),
        members=Members(draw(st.integers(1, members)), members),
        topology=Topology(required, preferred),
    )  # fmt: skip


def world_of(nodes: tuple[Node, ...], *workloads: Workload) -> Snapshot:
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("gpu"),),
        nodes=nodes,
        queues=(Queue("q", quotas={"gpu": Quota(1_000_000)}),),
        priority_classes=(
            PriorityClass("serve", type=WorkloadType.INFERENCE),
            PriorityClass("train"),
        ),
        workloads=workloads,
    )


def fits(node: Node, work: Workload) -> int:
    """Members of ``work`` on the empty node, by definition."""
    whole = node.gpus // 1000
    slots = node.gpus // work.gpus if work.gpus >= 1000 else whole * (1000 // work.gpus)
    if node.cpus is not None and work.cpus:
        slots = min(slots, node.cpus // work.cpus)
    return slots


def domains(nodes: tuple[Node, ...], level: str, work: Workload) -> Counter[str]:
    """Members that fit by domain; a node without the label is a domain of its own."""
    found: Counter[str] = Counter()
    for node in nodes:
        label = node.name if level == "node" else node.topology.get(level, node.name)
        found[label] += fits(node, work)
    return found


def used(nodes: tuple[Node, ...], level: str, placement: object) -> set[str]:
    assert isinstance(placement, dict)
    labels = {n.name: n.name if level == "node" else n.topology.get(level, n.name) for n in nodes}
    return {labels[name] for name in placement}


@given(clusters(), gangs())
def test_gang_alone_starts_exactly_where_its_required_level_has_room(
    nodes: tuple[Node, ...], gang: Workload
) -> None:
    [decision] = plan(world_of(nodes, gang)).decisions

    level = gang.topology.required
    room = domains(nodes, level, gang) if level else {"": sum(fits(n, gang) for n in nodes)}
    most = min(gang.members.max, max(room.values(), default=0))
    if most < gang.members.min:
        assert decision.action is Action.WAIT
        return
    assert (decision.action, decision.members) == (Action.ADMIT, most)
    for node in nodes:
        assert decision.placement.get(node.name, 0) <= fits(node, gang)
    if level:
        assert len(used(nodes, level, decision.placement)) == 1


@given(clusters(), gangs())
def test_gang_stays_in_one_preferred_domain_wherever_one_takes_it(
    nodes: tuple[Node, ...], gang: Workload
) -> None:
    [decision] = plan(world_of(nodes, gang)).decisions

    level = gang.topology.preferred
    if decision.action is not Action.ADMIT or level in (None, "node"):
        return
    assert level is not None
    if max(domains(nodes, level, gang).values()) >= decision.members:
        assert len(used(nodes, level, decision.placement)) == 1


@given(clusters(), gangs(), st.permutations(range(9)))
def test_names_of_nodes_decide_nothing_but_ties(
    nodes: tuple[Node, ...], gang: Workload, names: list[int]
) -> None:
    alone = replace(gang, members=Members(1, 1), topology=Topology())
    renamed = tuple(replace(node, name=f"n{names[i]}", topology={}) for i, node in enumerate(nodes))
    nodes = tuple(replace(node, topology={}) for node in nodes)

    [first] = plan(world_of(nodes, alone)).decisions
    [second] = plan(world_of(renamed, alone)).decisions

    assert first.action == second.action
    sizes = [{n.name: n.gpus for n in cluster} for cluster in (nodes, renamed)]
    for_first = sorted(sizes[0][name] for name in first.placement)
    assert for_first == sorted(sizes[1][name] for name in second.placement)


@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_inference_members_are_spread_as_evenly_as_nodes_allow(members: int) -> None:
    nodes = tuple(Node(f"n{i}", "gpu", 8000) for i in range(3))
    served = Workload("w", "q", "serve", NOW, members=Members(members, members))

    [decision] = plan(world_of(nodes, served)).decisions

    counts = sorted([decision.placement.get(n.name, 0) for n in nodes])
    assert counts[-1] - counts[0] <= 1


def _renamed(snapshot: Snapshot, names: dict[str, str], around: str = "") -> Snapshot:
    """``snapshot`` with other names of its levels, and with ``around`` one that holds all nodes."""
    new: dict[str | None, str | None] = {None: None, "node": "node", **names}
    wide = {around: "all"} if around else {}
    return replace(
        snapshot,
        topology_levels=(*wide, *(names[level] for level in snapshot.topology_levels)),
        nodes=tuple(
            replace(n, topology=wide | {names[k]: v for k, v in n.topology.items()})
            for n in snapshot.nodes
        ),
        workloads=tuple(
            replace(w, topology=Topology(new[w.topology.required], new[w.topology.preferred]))
            for w in snapshot.workloads
        ),
    )


@given(clusters(), gangs(), st.sampled_from(["", "region"]))
def test_names_of_levels_and_one_around_them_all_decide_nothing(
    nodes: tuple[Node, ...], gang: Workload, around: str
) -> None:
    usual = world_of(nodes, gang)

    other = _renamed(usual, {"block": "zone", "rack": "cloud.example/pod"}, around)

    assert plan(other).decisions[0].placement == plan(usual).decisions[0].placement


@pytest.mark.parametrize(
    ("levels", "path"),
    [
        (("zone", "zone"), "topology_levels[1]"),
        (("zone", "node"), "topology_levels[1]"),
        (("", "rack"), "topology_levels[0]"),
    ],
)
def test_levels_that_cannot_be_told_apart_are_refused_with_their_path(
    levels: tuple[str, ...], path: str
) -> None:
    with pytest.raises(SnapshotError, match=re.escape(path)):
        plan(replace(world_of(()), topology_levels=levels))


def test_gang_that_requires_a_level_the_snapshot_does_not_name_is_refused() -> None:
    gang = Workload("gang", "q", "train", NOW, topology=Topology("rack"))

    with pytest.raises(SnapshotError, match="one of zone, node"):
        plan(replace(world_of((), gang), topology_levels=("zone",)))
