"""Whether what a document says to run can sit where it says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from scheduling.engine import model as m
from scheduling.engine.document.schema import NodeDoc, SnapshotDoc, WorkloadDoc

Seat = tuple[str, str | None]
"""Of a node and a GPU class."""


def faults_of_places(doc: SnapshotDoc) -> Iterator[m.Fault]:
    """Nodes that hold more than they have, work that runs nowhere, and GPUs counted twice."""
    usage = held_by_seat(doc.workloads)
    for i, node in enumerate(doc.nodes):
        yield from _node(f"nodes[{i}]", node, usage[node.name, node.gpu_class])
    yield from _claims(doc)
    for i, work in enumerate(doc.workloads):
        yield from _members(f"workloads[{i}]", work)
        yield from _seated(f"workloads[{i}]", work)
    yield from _shared(doc)


def _milli(gpus: float) -> int:
    return round(gpus * m.MILLI)


def held_by_seat(works: Iterable[WorkloadDoc]) -> Mapping[Seat, int]:
    """Milli-GPU that ``works`` hold by node and class; 0 where none does."""
    usage: dict[Seat, int] = defaultdict(int)
    for work in works:
        if work.state is m.Phase.RUNNING:
            for part in (work.placement, work.leaving_members):
                for node, members in part.items():
                    usage[node, _class_of(work)] += members * _milli(work.gpus)
    return usage


def kept_by_seat(works: Iterable[WorkloadDoc]) -> Mapping[Seat, int]:
    """The same once what leaves is gone, with what claims keep."""
    claims: dict[Seat, int] = defaultdict(int)
    for work in works:
        if work.awaits_victims or (work.state is m.Phase.RUNNING and not work.leaving):
            for node, members in work.placement.items():
                claims[node, _class_of(work)] += members * _milli(work.gpus)
    return claims


def _claims(doc: SnapshotDoc) -> Iterator[m.Fault]:
    """Claims to the seats of others, who stay."""
    claims, rows = kept_by_seat(doc.workloads), {(n.name, n.gpu_class): n for n in doc.nodes}
    for i, work in enumerate(doc.workloads):
        for name in work.placement if work.awaits_victims else ():
            node = rows.get((name, work.gpu_class or ""))
            if node and not node.overfull and is_overfull(node, claims[node.name, node.gpu_class]):
                yield m.Fault(
                    f"workloads[{i}].placement.{name}", "seats of others, who stay",
                    f"seats that are free on {name} once who leaves is gone",
                    "take the claim out; 'overfull: true' where a node lost GPUs in use",
                )  # fmt: skip


def _class_of(work: WorkloadDoc) -> str | None:
    return work.gpu_class or next(iter(work.gpu_classes), None)


def is_overfull(node: NodeDoc, usage: int) -> bool:
    """Whether ``held`` milli-GPU of workloads are more than other pods leave of ``node``."""
    return usage + _milli(node.foreign_gpus) > _milli(node.gpus)


def is_misplaced(work: WorkloadDoc) -> bool:
    """Whether it runs with other members in places than it has."""
    return any(True for _ in _members("", work))


def _node(at: str, node: NodeDoc, usage: int) -> Iterator[m.Fault]:
    if node.foreign_gpus > node.gpus:
        yield m.Fault(
            f"{at}.foreign_gpus", f"{node.foreign_gpus:g}",
            f"at most the {node.gpus:g} GPUs that {node.name} has",
            "correct it, or the node's gpus",
        )  # fmt: skip
    elif is_overfull(node, usage) and not node.overfull:
        holding = usage + _milli(node.foreign_gpus)
        yield m.Fault(
            f"{at}.gpus", f"{node.gpus:g}",
            f"the {holding / m.MILLI:g} GPUs that are held on {node.name}",
            "correct it or a placement; 'overfull: true' where a node lost GPUs in use",
        )  # fmt: skip


def _members(at: str, work: WorkloadDoc) -> Iterator[m.Fault]:
    """One that leaves, or a stale gang, holds what it holds; any other has its members in their places."""
    if work.state is not m.Phase.RUNNING or work.misplaced:
        return
    placed, least, most = sum(work.placement.values()), work.members.min, _most(work)
    either = "correct it; 'misplaced: true' where a cluster really has it so"
    if not placed and not work.leaving and work.stale_since is None:
        yield m.Fault(
            f"{at}.placement", "nothing", "the nodes that it sits on, because it is running",
            f"write the members by node, or 'state: pending'; {either}",
        )  # fmt: skip
    elif placed > most:
        yield m.Fault(f"{at}.placement", f"{placed} members", f"at most {most}", either)
    elif placed < least and not work.leaving and work.stale_since is None:
        yield m.Fault(f"{at}.placement", f"{placed} members", f"at least {least}", either)


def _most(work: WorkloadDoc) -> int:
    return work.members.max or work.members.min


def _seated(at: str, work: WorkloadDoc) -> Iterator[m.Fault]:
    """Each member sits on one GPU at most."""
    for part, places in (("devices", "placement"), ("leaving_devices", "leaving_members")):
        for node, devices in getattr(work, part).items():
            members = getattr(work, places).get(node, 0)
            if len(devices) > members and not work.awaits_victims:
                yield m.Fault(
                    f"{at}.{part}.{node}", f"{len(devices)} GPUs",
                    f"one for each of the {members} members there", f"correct it or {places}",
                )  # fmt: skip


def _shared(doc: SnapshotDoc) -> Iterator[m.Fault]:
    """GPUs of which more is held than all."""
    usage: dict[tuple[Seat, int], int] = defaultdict(int)
    for i, work in enumerate(doc.workloads):
        if work.state is not m.Phase.RUNNING or work.gpus >= 1:
            continue
        for part in ("devices", "leaving_devices"):
            for node, devices in getattr(work, part).items():
                for device in devices:
                    seat = (node, _class_of(work)), device
                    usage[seat] += _milli(work.gpus)
                    if usage[seat] > m.MILLI:
                        yield m.Fault(
                            f"workloads[{i}].{part}.{node}", str(device),
                            f"a GPU with {work.gpus:g} of it free", "correct it",
                        )  # fmt: skip
