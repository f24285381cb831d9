"""GPUs that are held where the holder's class has no node, or none any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduling.cluster.adapters import Observed
from scheduling.cluster.picture.compose import Picture, Seat
from scheduling.engine import model as m
from scheduling.services.snapshot.parts import Parts
from scheduling.services.snapshot.situations import Known, Situation, class_of, placement_of


def strange_gpus(
    workloads: Iterable[Observed], picture: Picture, parts: Mapping[str, Parts]
) -> dict[Seat, int]:
    """Milli-GPU that ``workloads`` hold on nodes which are not of their class (any more), where nothing
    else says that they are taken: a label was changed, a class removed."""
    seats, class_by_node = picture.seats, picture.class_by_node
    held: dict[Seat, int] = {}
    for observed in workloads:
        if observed.uid in parts:
            continue
        gpu_class = class_of(observed, class_by_node) if observed.placement else None
        for node, members in observed.placement.items():
            if (node, gpu_class) not in seats and node in class_by_node:
                seat = node, class_by_node[node]
                held[seat] = held.get(seat, 0) + observed.gpus * members
    return held


def vanished_nodes(
    workloads: Iterable[Observed],
    picture: Picture,
    known: Mapping[str, Known],
    parts: Mapping[str, Parts],
) -> list[m.Node]:
    """Nodes that are gone, or of another class now, and that ``workloads`` are still admitted to, as
    nodes that are down.

    Its quota stays its own until it is evicted: else others would be let in past the limits.
    """
    held: dict[Seat, list[int]] = {}
    for observed in workloads:
        holds = known[observed.uid].situation is Situation.HOLDING
        if not (holds and observed.gpu_class and observed.gpus):
            continue
        apart = {node for placement in parts.get(observed.uid, {}).values() for node in placement}
        for node, members in placement_of(observed).items():
            if (node, observed.gpu_class) not in picture.seats and node not in apart:
                room = held.setdefault((node, observed.gpu_class), [0, 0, 0])
                amounts = (observed.gpus, observed.cpus, observed.memory_mib)
                room[:] = [had + members * more for had, more in zip(room, amounts, strict=True)]
    return [
        m.Node(name, gpu_class, gpus, cpus, mib, ready=False, outage=m.Outage.GONE)
        for (name, gpu_class), (gpus, cpus, mib) in sorted(held.items())
    ]
