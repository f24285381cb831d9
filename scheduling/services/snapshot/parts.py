"""Work that somebody else started may run on nodes of several GPU classes; the engine plans it on one.

What it holds in another class is shown beside it as work of its queue that nobody can displace alone, so
that the limits of that class hold too. It goes when the workload goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from scheduling.cluster.adapters import ClassSpec, Sighting
from scheduling.cluster.picture.compose import Picture, Seat
from scheduling.engine import model as m
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot.situations import (
    Situation,
    WorkloadFacts,
    class_of,
    held_by,
    placement_of,
)

BESIDE = m.PriorityClass("(beside its workload)", value=0, preemptible=False)

Parts = Mapping[str, Mapping[str, int]]
"""Class -> node -> members."""


class Classes:
    """Which class a node's devices of one resource belong to."""

    def __init__(self, seats: Set[Seat], specs: Iterable[ClassSpec]) -> None:
        self._seats = seats
        self._alike: dict[str, list[str]] = {}
        """Class -> all that count the same resource."""
        names: dict[str, list[str]] = {}
        for spec in specs:
            self._alike[spec.name] = names.setdefault(spec.resource_name, [])
            self._alike[spec.name].append(spec.name)

    def apart(self, placement: Mapping[str, int], gpu_class: str | None) -> Parts:
        """What of ``placement`` is on nodes of other classes; nothing where none of it is on its own."""
        strange = [node for node in placement if (node, gpu_class) not in self._seats]
        parts: dict[str, dict[str, int]] = {}
        for node in strange if len(strange) < len(placement) else ():
            for name in self._alike[gpu_class or ""]:
                if (node, name) in self._seats:
                    parts.setdefault(name, {})[node] = placement[node]
        return parts


def parts_of(
    workloads: Iterable[Sighting],
    picture: Picture,
    known: Mapping[str, WorkloadFacts],
    rows: PolicyRows,
) -> dict[str, Parts]:
    """What each of ``workloads`` holds in other classes than its own, by uid."""
    classes = Classes(picture.seats, rows.class_specs)
    found: dict[str, Parts] = {}
    for observed in workloads:
        what = known[observed.uid]
        if observed.gpus and what.situation in (Situation.HOLDING, Situation.LEAVING):
            parts = classes.apart(
                held_by(observed, what), class_of(observed, picture.class_by_node)
            )
            if parts:
                found[observed.uid] = parts
    return found


def divide(work: m.Workload, observed: Sighting, parts: Parts) -> list[m.Workload]:
    """``work`` with the members that its class holds, at the size it has, and the others beside it."""
    gone = {node for placement in parts.values() for node in placement}
    placement = {node: count for node, count in work.placement.items() if node not in gone}
    beside = replace(
        work, priority_class=BESIDE.name, gpu_classes=(), topology=m.Topology(), stale_since=None
    )
    found = [_sized(work, placement)]
    for name, there in sorted(parts.items()):
        found.append(
            replace(_sized(beside, there), name=f"{observed.key} (on {name})", gpu_class=name)
        )
    return found


def _sized(work: m.Workload, placement: Mapping[str, int]) -> m.Workload:
    members = sum(placement.values())
    return replace(
        work, placement=placement, members=m.Members(members, members), roles=(), elastic=False
    )


def strange_gpus(
    workloads: Iterable[Sighting], picture: Picture, parts: Mapping[str, Parts]
) -> dict[Seat, int]:
    """Milli-GPU that ``workloads`` hold on nodes which are not of their class (any more), where nothing
    else says that they are taken: a label was changed, a class removed."""
    seats, class_by_node = picture.seats, picture.class_by_node
    usage: dict[Seat, int] = {}
    for observed in workloads:
        if observed.uid in parts:
            continue
        gpu_class = class_of(observed, class_by_node) if observed.placement else None
        for node, members in observed.placement.items():
            if (node, gpu_class) not in seats and node in class_by_node:
                seat = node, class_by_node[node]
                usage[seat] = usage.get(seat, 0) + observed.gpus * members
    return usage


def vanished_nodes(
    workloads: Iterable[Sighting],
    picture: Picture,
    known: Mapping[str, WorkloadFacts],
    parts: Mapping[str, Parts],
) -> list[m.Node]:
    """Nodes that are gone, or of another class now, and that ``workloads`` are still admitted to, as
    nodes that are down.

    Its quota stays its own until it is evicted: else others would be let in past the limits.
    """
    usage: dict[Seat, list[int]] = {}
    for observed in workloads:
        holds = known[observed.uid].situation is Situation.HOLDING
        if not (holds and observed.gpu_class and observed.gpus):
            continue
        apart = {node for placement in parts.get(observed.uid, {}).values() for node in placement}
        for node, members in placement_of(observed).items():
            if (node, observed.gpu_class) not in picture.seats and node not in apart:
                room = usage.setdefault((node, observed.gpu_class), [0, 0, 0])
                amounts = (observed.gpus, observed.cpus, observed.memory_mib)
                room[:] = [had + members * more for had, more in zip(room, amounts, strict=True)]
    return [
        m.Node(name, gpu_class, gpus, cpus, mib, ready=False, outage=m.Outage.GONE)
        for (name, gpu_class), (gpus, cpus, mib) in sorted(usage.items())
    ]
