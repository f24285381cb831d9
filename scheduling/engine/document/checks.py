"""Whether a document contradicts itself: every fault with its path in the document."""

from __future__ import annotations

from collections.abc import Iterator

from scheduling.engine import model as m
from scheduling.engine.document.places import faults_of_places
from scheduling.engine.document.schema import SnapshotDoc, WorkloadDoc
from scheduling.engine.model import NODE_LEVEL, Fault
from scheduling.engine.validate import Named, doubles, faults_of_levels, loops, named_by_parts

MOST_LEVELS = 64
MOST_IN_ALL = 2_000_000
"""GPUs of all nodes; the planner keeps a few numbers for each."""
MOST_LOOKS = 1_000_000_000
"""Members times GPUs of the largest node: for each member a plan looks through the GPUs of a node. So many
take it seconds, and a few bytes could ask for a hundred times as many."""
RENAME = "rename or take out one of them"
WHOLE_OR_SHARE = "whole GPUs for each member, or less than 1 for a share"


def faults_of(doc: SnapshotDoc) -> list[Fault]:
    """Names that stand twice or refer to nothing, and states that exclude each other."""
    levels = [*doc.topology_levels, NODE_LEVEL]
    faults = [
        *(Fault(*found, RENAME) for found in (*doubles(doc), *faults_of_levels(levels))),
        *_references(doc),
        *_tree(doc),
        *_sizes(doc),
        *_members(doc),
        *(
            fault
            for i, work in enumerate(doc.workloads)
            for fault in _contradictions(f"workloads[{i}]", work, levels)
        ),
        *_devices(doc),
    ]
    # Placement makes sense once the names do.
    return faults or list(faults_of_places(doc))


def _references(doc: SnapshotDoc) -> list[Fault]:
    return [
        Fault(path, repr(name), text, f"use {_some(known)}, or add it there")
        for path, name, known, text in (
            *named_by_parts(doc),
            *_named_by_sets(doc),
            *_named_by_work(doc),
        )
        if name not in known
    ]


def _named_by_sets(doc: SnapshotDoc) -> Iterator[Named]:
    nodes = {n.name for n in doc.nodes}
    for i, one in enumerate(doc.node_sets):
        for k, name in enumerate(one.nodes):
            yield f"node_sets[{i}].nodes[{k}]", name, nodes, "a name of nodes"


def _named_by_work(doc: SnapshotDoc) -> Iterator[Named]:
    nodes = {n.name for n in doc.nodes}
    works = {w.name for w in doc.workloads}
    beside = {name for node in doc.nodes for name in node.beside}
    lists = {
        "node_set": "node_sets",
        "priority_class": "priority_classes",
        "gpu_class": "gpu_classes",
    }
    there = {part: {row.name for row in getattr(doc, rows)} for part, rows in lists.items()}
    for i, work in enumerate(doc.workloads):
        at = f"workloads[{i}]"
        for name in work.beside if doc.nodes else ():
            yield f"{at}.beside.{name}", name, beside, "a name that a node states beside its GPUs"
        for part, rows in lists.items():
            if (name := getattr(work, part)) is not None:
                yield f"{at}.{part}", name, there[part], f"a name of {rows}"
        for part in ("placement", "devices", "leaving_members", "leaving_devices"):
            for name in getattr(work, part):
                yield f"{at}.{part}.{name}", name, nodes, "a name of nodes"
        for k, name in enumerate(work.victims):
            yield f"{at}.victims[{k}]", name, works, "a name of workloads"


def _some(names: set[str]) -> str:
    """The first of ``names``."""
    return "one of " + ", ".join(map(repr, sorted(names)[:5])) if names else "a name of your own"


def _tree(doc: SnapshotDoc) -> Iterator[Fault]:
    """Queues that are above themselves, or below too many."""
    looping = list(loops(doc))
    yield from (Fault(*one, "name another one, or none for the top") for one in looping)
    parents = {queue.name: queue.parent for queue in doc.queues}
    for i, queue in enumerate(() if looping else doc.queues):
        if _levels(queue.name, parents) > MOST_LEVELS:
            at, expectation = f"queues[{i}].parent", f"at most {MOST_LEVELS} levels of queues"
            yield Fault(at, repr(queue.parent), expectation, "take levels out")
            return


def _levels(name: str, parents: dict[str, str | None]) -> int:
    """Of the queues from the top down to ``name``; one too many is counted no further."""
    levels, at = 0, parents.get(name)
    while at is not None and levels < MOST_LEVELS:
        levels, at = levels + 1, parents.get(at)
    return levels + 1


def _sizes(doc: SnapshotDoc) -> Iterator[Fault]:
    """GPUs too many to keep a place for each."""
    gpus = 0.0
    for i, node in enumerate(doc.nodes):
        gpus += node.gpus
        if gpus > MOST_IN_ALL:
            yield Fault(
                f"nodes[{i}].gpus", f"{round(gpus):,} with the nodes before it",
                f"at most {MOST_IN_ALL:,}", "leave nodes out",
            )  # fmt: skip
            return


def _members(doc: SnapshotDoc) -> Iterator[Fault]:
    """Members too many to look for a place for each."""
    largest = max((node.gpus for node in doc.nodes), default=0)
    members = 0
    for i, work in enumerate(doc.workloads):
        members += max(work.members.min, work.members.max or 0)
        if members * largest > MOST_LOOKS:
            yield Fault(
                f"workloads[{i}].members", f"{members:,} with the workloads before it",
                f"at most {int(MOST_LOOKS / largest):,} where a node has {largest:,g} GPUs",
                "have fewer members of more GPUs, or smaller nodes",
            )  # fmt: skip
            return


def _contradictions(at: str, work: WorkloadDoc, levels: list[str]) -> Iterator[Fault]:
    top, predicted = work.members.max, work.predicted_s
    if work.gpus > 1 and work.gpus % 1:
        yield Fault(f"{at}.gpus", f"{work.gpus:g}", WHOLE_OR_SHARE, "round it")
    if top is not None and top < work.members.min:
        yield Fault(
            f"{at}.members.max",
            str(top),
            f"at least min, {work.members.min}",
            "correct one of them",
        )
    if predicted and predicted.p90 < predicted.p50:
        yield Fault(
            f"{at}.predicted_s.p90", f"{predicted.p90:g}", f"at least p50, {predicted.p50:g}",
            "correct one of them",
        )  # fmt: skip
    required, preferred = work.topology.required, work.topology.preferred
    if required in levels and preferred in levels[: levels.index(required) + 1]:
        yield Fault(
            f"{at}.topology.preferred",
            str(preferred),
            f"a level below {required}",
            "name one, or none",
        )
    if work.topology.segment and not work.roles:
        yield from _segments(f"{at}.topology", work, levels)
    yield from _running(at, work) if work.state is m.Phase.RUNNING else _pending(at, work)
    yield from _without_claim(at, work)


def _segments(at: str, work: WorkloadDoc, levels: list[str]) -> Iterator[Fault]:
    """Segments that the gang cannot consist of, or that no level narrow enough keeps together."""
    topology, one = work.topology, work.topology.segment
    if one is None:
        return
    if (one.required is None) == (one.preferred is None):
        found = "neither" if one.required is None else "both"
        remedy = "name the level once, as one of them"
        yield Fault(f"{at}.segment", found, "a level that is required or preferred", remedy)
    for many in sorted({work.members.min, work.members.max or work.members.min}):
        if many % one.members:
            yield Fault(
                f"{at}.segment.members", str(one.members), f"a divisor of its {many} members",
                "correct one of them: a gang consists of whole segments",
            )  # fmt: skip
    level, kind = (one.required, "required") if one.required else (one.preferred, "preferred")
    for around in (topology.required, topology.preferred):
        if level in levels and around in levels[levels.index(level) + 1 :]:
            yield Fault(
                f"{at}.segment.{kind}", str(level), f"{around}, or a level below it",
                "name one, or none for the whole gang",
            )  # fmt: skip


def _running(at: str, work: WorkloadDoc) -> Iterator[Fault]:
    if work.started is None:
        yield Fault(f"{at}.started", "nothing", "a time, because it is running", "write it there")
    if not (work.gpu_class or work.gpu_classes):
        yield Fault(f"{at}.gpu_class", "nothing", "the class it runs on", "write it there")


def _pending(at: str, work: WorkloadDoc) -> Iterator[Fault]:
    if work.awaits_victims and not (work.placement and work.gpu_class):
        yield Fault(
            f"{at}.placement", "nothing", "the seats that it claims, and their gpu_class",
            "write the members by node, or take 'awaits_victims' out",
        )  # fmt: skip
    for part in ("placement", "leaving_members"):
        found = getattr(work, part)
        if found and not (part == "placement" and work.awaits_victims):
            yield Fault(
                f"{at}.{part}", str(found), "nothing, because it is pending",
                "take it out, or write 'state: running'",
            )  # fmt: skip


def _without_claim(at: str, work: WorkloadDoc) -> Iterator[Fault]:
    for part in ("victims", "claimed_since", "room_due"):
        if getattr(work, part) and not work.awaits_victims:
            yield Fault(
                f"{at}.{part}", str(getattr(work, part)), "nothing, because it claims no room",
                "take it out, or write 'awaits_victims: true'",
            )  # fmt: skip


def _devices(doc: SnapshotDoc) -> list[Fault]:
    """Devices that the node does not have, counted from 0."""
    most: dict[str, float] = {}
    for node in doc.nodes:
        most[node.name] = max(most.get(node.name, 0), node.gpus)
    return [
        Fault(
            f"workloads[{i}].{part}.{node}", str(device), f"a GPU of {node}, below {most[node]:g}",
            "correct it: GPUs count from 0",
        )
        for i, work in enumerate(doc.workloads)
        for part in ("devices", "leaving_devices")
        for node, devices in getattr(work, part).items()
        for device in devices
        if node in most and device >= most[node]
    ]  # fmt: skip
