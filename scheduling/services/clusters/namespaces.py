"""What the queues of a namespace ask of it beside GPUs: pod security, and bounds on CPU, memory and pods.

A bound that nobody set follows from the GPUs that the queues may hold: what the nodes with as many have of
it, and on top what the nodes without GPUs have, at least as much as one node; never more than the cluster.
So GPU work finds what comes with its GPUs, and work without GPUs has room beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.cluster.adapters import ClassSpec
from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.picture import compose as picture
from scheduling.cluster.picture.around import NO_DEVICES
from scheduling.cluster.picture.nodes import rows_of, trim_node
from scheduling.cluster.vocabulary import devices, vendors
from scheduling.cluster.vocabulary.devices import Devices
from scheduling.cluster.vocabulary.quantities import mib_below, milli
from scheduling.models import PodSecurity, Queue

Json = dict[str, Any]
Bound = int | None
"""None is unlimited."""
Amounts = tuple[int, ...]
"""Of each of FIELDS."""
FIELDS = ("max_cpus", "max_memory_mib", "max_pods")
"""milli-CPU, MiB, pods: columns of Queue."""
LEVELS = tuple(PodSecurity.values)
"""Each stricter than the one before."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a node has to give; ``gpus`` in milli-GPU by class."""

    has: Amounts
    gpus: Mapping[str, int] = field(default_factory=dict)
    resources: frozenset[str] = frozenset()
    """Of all GPUs that it offers, of a class or not."""


def machines_of(
    nodes: Iterable[Json], classes: Sequence[ClassSpec], counted: Devices = NO_DEVICES
) -> list[Machine]:
    return [_machine(node, classes, counted) for node in nodes]


def machines_in(mirror: Mirror, classes: Sequence[ClassSpec]) -> list[Machine]:
    """The nodes that a mirror holds, once it has seen the cluster."""
    counted = devices.count(*(mirror[name].objects() for name in devices.RESOURCES))
    return machines_of(mirror["nodes"].objects(), classes, counted)


def machines_on(client: Client, classes: Sequence[ClassSpec]) -> list[Machine]:
    """The same from one list of each resource. Raises ApiError."""
    nodes = [trim_node(node) for node in client.get("/api/v1/nodes")["items"]]
    return machines_of(nodes, classes, picture.count_devices(client))


def _machine(node: Json, classes: Sequence[ClassSpec], counted: Devices) -> Machine:
    offers = node["status"].get("allocatable") or {}
    has = (
        milli(offers.get("cpu", 0)),
        mib_below(offers.get("memory", 0)),
        milli(offers.get("pods", 0)) // 1000,
    )
    devices_here = counted.gpus.intersection(counted.offered(node["metadata"]["name"]))
    gpus = {row.gpu_class: row.gpus for row in rows_of(node, (), classes, counted)}
    return Machine(has, gpus, devices_here.union(filter(vendors.is_gpu, offers)))


def security_of(lines: Iterable[Sequence[Queue]]) -> str:
    """The strictest level among queues, each given with all above it: each has that of the nearest that
    sets one."""
    said = (
        next((queue.pod_security for queue in line if queue.pod_security), PodSecurity.BASELINE)
        for line in lines
    )
    return max(said, key=LEVELS.index, default=PodSecurity.BASELINE.value)


def bounds_of(
    by_line: Sequence[tuple[Sequence[Queue], Mapping[str, Bound]]], machines: Sequence[Machine]
) -> tuple[Bound, Bound, Bound]:
    """What all pods of a namespace may request of each of FIELDS.

    ``held`` are its topmost queues, each with all above it and its limit in milli-GPU by class. Nothing is
    derived where no machine is known.
    """
    whole = _sum(machine.has for machine in machines)
    spare = _most((_sum(m.has for m in machines if not m.gpus), *(m.has for m in machines)))
    shares = [_share(limits, machines, whole) for _, limits in by_line]
    found: list[Bound] = []
    for place, name in enumerate(FIELDS):
        bounds = [_least_bound(line, name) for line, _ in by_line]
        derived = [share[place] for share, own in zip(shares, bounds, strict=True) if own is None]
        if derived and not machines:
            found.append(None)
            continue
        more = min(whole[place], sum(derived) + spare[place]) if derived else 0
        found.append(more + sum(own for own in bounds if own is not None))
    cpus, memory_mib, pods = found
    return cpus, memory_mib, pods


def _least_bound(line: Sequence[Queue], name: str) -> Bound:
    """The least that the queue or one above it was given."""
    bounds = (getattr(queue, name) for queue in line)
    return min((most for most in bounds if most is not None), default=None)


def _share(limits: Mapping[str, Bound], machines: Sequence[Machine], whole: Amounts) -> Amounts:
    """What comes with the GPUs within ``limits``, on the nodes that have the most for each GPU."""
    if any(limit is None for limit in limits.values()):
        return whole
    return _sum(_with(name, limit or 0, machines) for name, limit in limits.items())


def _with(gpu_class: str, limit: int, machines: Sequence[Machine]) -> Amounts:
    those = [m for m in machines if m.gpus.get(gpu_class)]
    each = _most(tuple(-(-has * limit // m.gpus[gpu_class]) for has in m.has) for m in those)
    return tuple(map(min, each, _sum(m.has for m in those)))


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    return tuple(map(sum, zip((0,) * len(FIELDS), *amounts, strict=True)))


def _most(amounts: Iterable[Amounts]) -> Amounts:
    return tuple(map(max, zip((0,) * len(FIELDS), (0,) * len(FIELDS), *amounts, strict=True)))
