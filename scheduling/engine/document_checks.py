"""Whether a document contradicts itself: every fault with its path in the document."""

from __future__ import annotations

from scheduling.engine import model as m
from scheduling.engine.arrays import LEVELS
from scheduling.engine.document_schema import QueueDoc, SnapshotDoc

Fault = tuple[str, str, str]

WHOLE_OR_SHARE = "whole GPUs for each member, or less than 1 for a share"


def faults_of(doc: SnapshotDoc) -> list[Fault]:
    """Names that stand twice or refer to nothing, and states that exclude each other."""
    return [*_doubles(doc), *_references(doc), *_contradictions(doc), *_devices(doc)]


def _doubles(doc: SnapshotDoc) -> list[Fault]:
    faults = []
    for part in ("gpu_classes", "queues", "priority_classes", "workloads"):
        seen: set[str] = set()
        for i, row in enumerate(getattr(doc, part)):
            if row.name in seen:
                faults.append((f"{part}[{i}].name", repr(row.name), "a name that stands once"))
            seen.add(row.name)
    pairs: set[tuple[str, str]] = set()
    for i, node in enumerate(doc.nodes):
        if (node.name, node.gpu_class) in pairs:
            faults.append((f"nodes[{i}].name", repr(node.name), "one row a node and GPU class"))
        pairs.add((node.name, node.gpu_class))
    return faults


def _references(doc: SnapshotDoc) -> list[Fault]:
    classes = {c.name for c in doc.gpu_classes}
    queues = {q.name for q in doc.queues}
    priorities = {p.name for p in doc.priority_classes}
    nodes = {n.name for n in doc.nodes}
    wanted = [
        (f"nodes[{i}].gpu_class", n.gpu_class, classes, "a name of gpu_classes")
        for i, n in enumerate(doc.nodes)
    ]
    for i, queue in enumerate(doc.queues):
        if queue.parent is not None:
            wanted.append((f"queues[{i}].parent", queue.parent, queues, "a name of queues"))
        for part in ("quotas", "usage"):
            wanted += [
                (f"queues[{i}].{part}.{name}", name, classes, "a name of gpu_classes")
                for name in getattr(queue, part)
            ]
    for i, work in enumerate(doc.workloads):
        at = f"workloads[{i}]"
        wanted.append(
            (f"{at}.priority_class", work.priority_class, priorities, "a name of priority_classes")
        )
        if work.gpu_class is not None:
            wanted.append((f"{at}.gpu_class", work.gpu_class, classes, "a name of gpu_classes"))
        wanted += [
            (f"{at}.{part}.{n}", n, nodes, "a name of nodes")
            for part in ("placement", "devices", "leaving_members", "leaving_devices")
            for n in getattr(work, part)
        ]
    return [(path, repr(name), text) for path, name, known, text in wanted if name not in known]


def _contradictions(doc: SnapshotDoc) -> list[Fault]:
    faults = [
        (f"queues[{i}].parent", repr(queue.parent), "a queue that is not below this one")
        for i, queue in enumerate(doc.queues)
        if _below_itself(queue, {q.name: q for q in doc.queues})
    ]
    for i, work in enumerate(doc.workloads):
        at, top = f"workloads[{i}]", work.members.max
        if work.gpus > 1 and work.gpus % 1:
            faults.append((f"{at}.gpus", f"{work.gpus:g}", WHOLE_OR_SHARE))
        if top is not None and top < work.members.min:
            faults.append((f"{at}.members.max", str(top), f"at least min, {work.members.min}"))
        if work.state is m.Phase.RUNNING and work.started is None:
            faults.append((f"{at}.started", "nothing", "a time, because it is running"))
        if work.state is m.Phase.RUNNING and not (work.gpu_class or work.gpu_classes):
            faults.append((f"{at}.gpu_class", "nothing", "the class it runs on"))
        if work.state is m.Phase.PENDING and work.placement and not work.awaits_victims:
            faults.append(
                (f"{at}.placement", str(work.placement), "nothing, because it is pending")
            )
        if work.state is m.Phase.PENDING and work.leaving_members:
            faults.append(
                (
                    f"{at}.leaving_members",
                    str(work.leaving_members),
                    "nothing, because it is pending",
                )
            )
        required, preferred = work.topology.required, work.topology.preferred
        if required in LEVELS and preferred in LEVELS and not _closer(preferred, required):
            faults.append((f"{at}.topology.preferred", preferred, f"a level below {required}"))
    return faults


def _devices(doc: SnapshotDoc) -> list[Fault]:
    """Devices that the node does not have, counted from 0."""
    most: dict[str, float] = {}
    for node in doc.nodes:
        most[node.name] = max(most.get(node.name, 0), node.gpus)
    return [
        (f"workloads[{i}].{part}.{node}", str(device), f"a GPU of {node}, below {most[node]:g}")
        for i, work in enumerate(doc.workloads)
        for part in ("devices", "leaving_devices")
        for node, devices in getattr(work, part).items()
        for device in devices
        if node in most and device >= most[node]
    ]


def _closer(level: str, other: str) -> bool:
    return LEVELS.index(level) > LEVELS.index(other)


def _below_itself(queue: QueueDoc, by_name: dict[str, QueueDoc]) -> bool:
    seen, above = {queue.name}, queue.parent
    while above is not None and above in by_name:
        if above in seen:
            return above == queue.name
        seen.add(above)
        above = by_name[above].parent
    return False
