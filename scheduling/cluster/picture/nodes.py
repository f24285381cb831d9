"""Nodes as they are read: what of each GPU class they offer, and whether new pods may go there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from scheduling.cluster.adapters import ClassSpec, bounds, needs
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.bounds import OWN_TAINTS
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.conditions import (
    Trouble,
    closed_by,
    trim_conditions,
    trim_cordon,
    troubles_of,
    unhealthy,
    without_gpus,
)
from scheduling.cluster.vocabulary.devices import Devices
from scheduling.cluster.vocabulary.quantities import is_of_bytes, mib_below, milli, whole

Json = dict[str, Any]

KEEPS_AWAY = ("NoSchedule", "NoExecute")


class Taint(NamedTuple):
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A machine with its GPUs of one class. GPUs and CPUs in thousandths, less what foreign pods hold
    of CPU and memory; ``foreign_gpus`` apart."""

    name: str
    hostname: str
    labels: Mapping[str, str]
    gpu_class: str
    gpus: int
    cpus: int
    memory_mib: int
    ready: bool
    foreign_gpus: int
    taints: frozenset[Taint] = frozenset()
    """Those that keep new pods away."""
    kept_for: frozenset[Taint] = frozenset()
    """Those of them that only some workloads tolerate: nobody else may use it."""
    troubles: tuple[Trouble, ...] = ()
    """Why it takes no work, or less than it has."""
    beside: Mapping[str, int] = field(default_factory=dict)
    """What it offers of other resources."""
    foreign: Mapping[str, int] = field(default_factory=dict)
    """What pods outside the queues hold of it beside GPUs, CPUs and memory, by the names of ``needs``."""
    foreign_pods: int = 0
    places: int | None = None
    """Pods that it takes; None where it does not say."""


def rows_of(
    node: Json, foreign: Sequence[Json], classes: Sequence[ClassSpec], counted: Devices
) -> list[ObservedNode]:
    """One row a resource that the node offers, of the class that describes the node most closely: the one
    with most labels of those whose labels it carries, then the first of ``classes``."""
    meta, offers = node["metadata"], node["status"].get("allocatable") or {}
    requests = _requests(foreign, counted)
    node_labels = meta.get("labels") or {}
    own = closest(node_labels, classes)
    resources = [c.resource_name for c in classes if own.get(c.resource_name) is c]
    devices_here = counted.offered(meta["name"], resources)
    rows: dict[str, ObservedNode] = {}
    troubles = troubles_of(node)
    beside = pods_of.beside(_offered(offers), resources)
    others = _others(foreign, requests, resources)
    for name in resources:
        offered = milli(offers.get(name, 0)) + devices_here[name]
        if offered <= 0:
            continue
        rows[name] = ObservedNode(
            name=meta["name"],
            hostname=node_labels.get(labels.HOSTNAME, meta["name"]),
            labels=node_labels,
            gpu_class=own[name].name,
            gpus=offered,
            cpus=max(0, milli(offers.get("cpu", 0)) - requests.get("cpu", 0)),
            memory_mib=max(0, mib_below(offers.get("memory", 0)) - requests.get("memory", 0)),
            ready=_is_ready(node),
            foreign_gpus=min(offered, requests.get(name, 0)),
            taints=frozenset(Taint(*taint) for taint in node["spec"].get("taints") or ()),
            troubles=(*troubles, *unhealthy(node, name)),
            beside=beside,
            foreign=others,
            foreign_pods=len(foreign),
            places=whole(str(offers.get("pods") or "")),
        )
    return list(rows.values())


def bare_of(node: Json, classes: Sequence[ClassSpec]) -> list[ObservedNode]:
    """One row a resource of ``classes`` that the node hands out none of though it is known to have it: for
    a node that ``rows_of`` finds nothing on. Of those it counts, else of those it has counted."""
    meta = node["metadata"]
    node_labels = meta.get("labels") or {}
    troubles = [
        (spec.name, trouble)
        for spec in closest(node_labels, classes).values()
        if (trouble := without_gpus(node, spec.resource_name))
    ]
    counted = [(name, trouble) for name, trouble in troubles if trouble.gpus]
    return [
        ObservedNode(
            name=meta["name"],
            hostname=node_labels.get(labels.HOSTNAME, meta["name"]),
            labels=node_labels,
            gpu_class=name,
            gpus=0,
            cpus=0,
            memory_mib=0,
            ready=False,
            foreign_gpus=0,
            troubles=(*troubles_of(node), trouble),
        )
        for name, trouble in counted or troubles
    ]


def closest(
    node_labels: Mapping[str, str], classes: Sequence[ClassSpec]
) -> Mapping[str, ClassSpec]:
    """The class of each resource that describes a node with these labels most closely."""
    matching = (s for s in reversed(classes) if node_labels.items() >= s.node_labels.items())
    return {s.resource_name: s for s in sorted(matching, key=lambda s: len(s.node_labels))}


def closed(
    rows: list[ObservedNode], tolerated: Set[str], texts: Iterable[str] = ()
) -> tuple[ObservedNode, ...]:
    """``rows`` with those not ready whose taints keep all work away, and those kept for some that keep all
    but some away.

    ``tolerated`` are keys that every admission makes its pods tolerate; one that all nodes of a class carry
    its work knows of. ``asked`` are the bounds of all workloads.
    """
    if not any(row.taints for row in rows):
        return tuple(rows)
    usual: dict[str, frozenset[str]] = {}
    for row in rows:
        keys = frozenset(taint.key for taint in row.taints)
        usual[row.gpu_class] = usual.get(row.gpu_class, keys) & keys
    all_tolerations = [
        role.get("tolerations") or () for text in set(texts) for role in bounds.read(text)
    ]
    return tuple(_closed(row, usual[row.gpu_class] | tolerated, all_tolerations) for row in rows)


def _closed(
    row: ObservedNode, known: Set[str], all_tolerations: Iterable[Sequence[Json]]
) -> ObservedNode:
    strange = frozenset(
        taint for taint in row.taints if taint.key not in known or taint.key.startswith(OWN_TAINTS)
    )
    if not strange:
        return row
    shut = replace(row, ready=False, troubles=(*row.troubles, *closed_by(strange)))
    if any(taint.key.startswith(OWN_TAINTS) for taint in strange):
        return shut
    for tolerations in all_tolerations:
        if all(any(tolerates(each, taint) for each in tolerations) for taint in strange):
            causes = closed_by(strange, is_reserved=True)
            return replace(row, kept_for=strange, troubles=(*row.troubles, *causes))
    return shut


def tolerates(toleration: Any, taint: Taint) -> bool:
    """As kube-scheduler reads them: kubernetes.io, "Taints and Tolerations"."""
    if not isinstance(toleration, dict):
        return False
    key, effect = toleration.get("key"), toleration.get("effect")
    if (effect and effect != taint.effect) or (key and key != taint.key):
        return False
    if toleration.get("operator") == "Exists":
        return True
    equal = toleration.get("operator") in (None, "", "Equal")
    return bool(key) and equal and (toleration.get("value") or "") == taint.value


def _requests(pods: Iterable[Json], counted: Devices) -> dict[str, int]:
    total: dict[str, int] = {}
    for pod in pods:
        claims = counted.claims(pod["metadata"].get("namespace", ""))
        for name, amount in pods_of.requests_of(pod["spec"], claims).items():
            total[name] = total.get(name, 0) + int(amount)
    return total


def _others(
    foreign: Sequence[Json], requests: Mapping[str, int], gpus: Sequence[str]
) -> dict[str, int]:
    """What ``foreign`` pods take of their node beside what is added up for CPU and memory."""
    taken = Counter(port for pod in foreign for port in needs.ports(pod["spec"]))
    for name, amount in pods_of.beside(requests, gpus).items():
        taken[needs.name_of(name)] += needs.amount_of(name, amount)
    return dict(taken)


def _offered(allocatable: Json) -> dict[str, int]:
    return {
        name: mib_below(amount) if is_of_bytes(name) else milli(amount)
        for name, amount in allocatable.items()
    }


def _is_ready(node: Json) -> bool:
    """Ready and open to new pods."""
    conditions = node["status"].get("conditions") or []
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and not node["spec"].get("unschedulable")


def trim_node(node: Json) -> Json:
    """A node without what nobody here reads (images and the kubelet's details are most of it)."""
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    return {
        "metadata": {k: meta[k] for k in ("name", "uid", "resourceVersion", "labels") if k in meta},
        "spec": {
            "unschedulable": spec.get("unschedulable", False),
            "cordon": trim_cordon(node),
            "taints": [
                (t["key"], t.get("value") or "", t["effect"])
                for t in spec.get("taints") or ()
                if t["effect"] in KEEPS_AWAY
            ],
        },
        "status": {
            "allocatable": status.get("allocatable") or {},
            "capacity": status.get("capacity") or {},
            "conditions": trim_conditions(status.get("conditions")),
        },
    }
