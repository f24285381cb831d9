"""Whether a snapshot contradicts itself: every fault with its path."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from scheduling.engine import model as m

Fault = tuple[str, str, str]


def check(snapshot: m.Snapshot, known: Container[int] = ()) -> None:
    """Raise SnapshotError with every fault of ``snapshot``.

    A workload of an unknown queue or GPU class is no fault: it waits with that reason. ``known`` are the
    addresses of workloads that were right beside the same names: only their places are looked at.
    """
    faults = [
        *doubles(snapshot),
        *faults_of_levels(snapshot.levels),
        *(
            (path, repr(name), text)
            for path, name, known_names, text in named_by_parts(snapshot)
            if name not in known_names
        ),
        *_amounts(snapshot),
        *_node_sets(snapshot),
        *loops(snapshot),
        *_workloads(snapshot, known),
    ]
    if faults:
        raise m.SnapshotError(faults)


def doubles(parts: Any) -> Iterator[Fault]:
    """Names that stand twice in a list of ``parts``, a snapshot or its document."""
    for part in ("gpu_classes", "queues", "priority_classes", "workloads", "node_sets"):
        yield from _doubles(part, [row.name for row in getattr(parts, part)])
    seen: set[tuple[str, str]] = set()
    for i, node in enumerate(parts.nodes):
        if (node.name, node.gpu_class) in seen:
            yield f"nodes[{i}].name", repr(node.name), "one row a node and GPU class"
        seen.add((node.name, node.gpu_class))


def _doubles(part: str, names: Sequence[str]) -> Iterator[Fault]:
    seen: set[str] = set(names)
    if len(seen) == len(names) and "" not in seen:
        return
    seen.clear()
    for i, name in enumerate(names):
        if name in seen or not name:
            yield f"{part}[{i}].name", repr(name), "a name that stands once"
        seen.add(name)


def faults_of_levels(levels: Sequence[str]) -> Iterator[Fault]:
    """``levels`` are those of ``Snapshot.levels``."""
    for i, name in enumerate(levels[:-1]):
        if not name or levels.index(name) < i or name == levels[-1]:
            yield f"topology_levels[{i}]", repr(name), f"a name that stands once, not {levels[-1]}"


Named = tuple[str, str, set[str], str]
"""Where a name stands, the name, those that there are, and what it should be."""


def named_by_parts(parts: Any) -> Iterator[Named]:
    """What nodes and queues of a snapshot, or of its document, name."""
    classes, queues = {c.name for c in parts.gpu_classes}, {q.name for q in parts.queues}
    for i, node in enumerate(parts.nodes):
        yield f"nodes[{i}].gpu_class", node.gpu_class, classes, "a name of gpu_classes"
    for i, queue in enumerate(parts.queues):
        if queue.parent is not None:
            yield f"queues[{i}].parent", queue.parent, queues, "a name of queues"
        for part in ("quotas", "usage"):
            for name in getattr(queue, part):
                yield f"queues[{i}].{part}.{name}", name, classes, "a name of gpu_classes"


def _amounts(snapshot: m.Snapshot) -> Iterator[Fault]:
    for i, node in enumerate(snapshot.nodes):
        if node.gpus < 0:
            yield f"nodes[{i}].gpus", str(node.gpus), "zero or more"
    for i, queue in enumerate(snapshot.queues):
        for name, quota in queue.quotas.items():
            for field in ("nominal", "borrowing_limit", "lending_limit", "weight"):
                value = getattr(quota, field)
                if value is not None and value < 0:
                    yield f"queues[{i}].quotas.{name}.{field}", str(value), "zero or more"


def _node_sets(snapshot: m.Snapshot) -> Iterator[Fault]:
    names = {n.name for n in snapshot.nodes}
    for i, one in enumerate(snapshot.node_sets):
        for name in sorted(one.nodes - names):
            yield f"node_sets[{i}].nodes", repr(name), "a name of nodes"


def loops(parts: Any) -> Iterator[Fault]:
    """Queues of a snapshot, or of its document, that are above themselves."""
    looping = _in_loops({queue.name: queue.parent for queue in parts.queues})
    for i, queue in enumerate(parts.queues):
        if queue.name in looping:
            yield f"queues[{i}].parent", repr(queue.parent), "a queue that is not below this one"


def _in_loops(parents: Mapping[str, str | None]) -> set[str]:
    """The names that are above themselves, by what is right above each name."""
    looping: set[str] = set()
    seen: set[str] = set()
    for name in parents:
        way: list[str] = []
        at: str | None = name
        while at is not None and at in parents and at not in seen:
            seen.add(at)
            way.append(at)
            at = parents[at]
        if at in way:
            looping.update(way[way.index(at) :])
    return looping


def _workloads(snapshot: m.Snapshot, known: Container[int]) -> Iterator[Fault]:
    priorities = {p.name for p in snapshot.priority_classes}
    classes = {c.name for c in snapshot.gpu_classes}
    nodes = {(n.name, n.gpu_class) for n in snapshot.nodes}
    sets = {None, *(s.name for s in snapshot.node_sets)}
    running = m.Phase.RUNNING
    # Of thousands that wait as before there is nothing to say: they do not get as far as the loop.
    suspects = [
        (i, work)
        for i, work in enumerate(snapshot.workloads)
        if work.phase is running or work.awaits_victims or id(work) not in known
    ]
    for i, work in suspects:
        if id(work) not in known:
            yield from _wishes(f"workloads[{i}]", work, priorities, snapshot.levels)
            if work.node_set not in sets:
                yield f"workloads[{i}].node_set", repr(work.node_set), "a name of node_sets"
        if work.phase is running or (work.awaits_victims and work.placement):
            yield from _running(f"workloads[{i}]", work, classes, nodes)


def _wishes(
    at: str, work: m.Workload, priorities: set[str], levels: Sequence[str]
) -> Iterator[Fault]:
    if work.priority_class not in priorities:
        yield f"{at}.priority_class", repr(work.priority_class), "a name of priority_classes"
    if not 1 <= work.members.min <= work.members.max:
        found = f"min {work.members.min}, max {work.members.max}"
        yield f"{at}.members", found, "1 <= min <= max"
    if work.gpus < 0:
        yield f"{at}.gpus", str(work.gpus), "zero or more"
    segment = work.topology.segment or m.Segment(0)
    for kind, level in (
        ("required", work.topology.required),
        ("preferred", work.topology.preferred),
        ("segment.required", segment.required),
        ("segment.preferred", segment.preferred),
    ):
        if level is not None and level not in levels:
            yield f"{at}.topology.{kind}", repr(level), f"one of {', '.join(levels)}"


def _running(
    at: str, work: m.Workload, classes: set[str], nodes: set[tuple[str, str]]
) -> Iterator[Fault]:
    kind = work.gpu_class or (work.gpu_classes[0] if work.gpu_classes else "")
    if kind not in classes:
        yield f"{at}.gpu_class", repr(kind), "the GPU class it runs on, a name of gpu_classes"
        return
    for part in ("placement", "leaving_members"):
        for name in getattr(work, part):
            if (name, kind) not in nodes:
                yield f"{at}.{part}.{name}", repr(name), f"a node of {kind}"
