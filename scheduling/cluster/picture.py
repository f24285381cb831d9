"""The mirror read as one picture: nodes, workloads, and what pods outside the queues hold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.adapters import ADAPTERS, Adapter, ClassSpec, Observed
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.client import Client, NotFoundError
from scheduling.cluster.kinship import Kinship
from scheduling.cluster.mirror import Mirror
from scheduling.cluster.quantities import mib_below, milli

Json = dict[str, Any]

log = logging.getLogger(__name__)


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
    topology: Mapping[str, str]
    ready: bool
    foreign_gpus: int


@dataclass(frozen=True, slots=True)
class Orphans:
    """Pods whose object was deleted: they are going, and hold their GPUs until they are gone."""

    namespace: str
    name: str
    gpus: int
    placement: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Picture:
    workloads: tuple[Observed, ...]
    nodes: tuple[ObservedNode, ...]
    orphans: tuple[Orphans, ...] = ()
    departed: Mapping[str, Observed] = field(default_factory=dict)
    """uid -> the last that was seen of objects that are gone."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """uid -> why the object's demand cannot be understood."""


def resources(
    adapters: Iterable[Adapter] = ADAPTERS,
) -> dict[str, tuple[str, Callable[[Json], Json]]]:
    """What a mirror has to hold for a picture."""
    held: dict[str, tuple[str, Callable[[Json], Json]]] = {
        "nodes": ("/api/v1/nodes", trim_node),
        "pods": ("/api/v1/pods", pods_of.trim),
    }
    return held | {a.kind: (a.list_path, a.trim) for a in adapters}


OPTIONAL = frozenset(a.kind for a in ADAPTERS) - {"Job"}
"""Kinds that a cluster may lack: their definitions are added by others."""


def take(
    mirror: Mirror, classes: Sequence[ClassSpec], *, awaited: Container[str] = frozenset()
) -> Picture:
    """The picture that ``mirror`` holds now; ``awaited`` are uids whose end is of interest."""
    picture = compose(
        mirror["nodes"].objects(),
        mirror["pods"].objects(),
        {a.kind: mirror[a.kind].objects() for a in ADAPTERS},
        classes,
    )
    departed = {a.kind: mirror[a.kind].departed(awaited) for a in ADAPTERS}
    owned: dict[str, list[Json]] = {
        obj["metadata"]["uid"]: [] for found in departed.values() for obj in found
    }
    last, _ = _observe(departed, owned, classes)
    return replace(picture, departed={observed.uid: observed for observed in last})


def fetch(client: Client, classes: Sequence[ClassSpec]) -> Picture:
    """The same picture from one list of each resource, for a process without a mirror."""
    held = {name: _list(client, path, trim) for name, (path, trim) in resources().items()}
    return compose(held["nodes"], held["pods"], {a.kind: held[a.kind] for a in ADAPTERS}, classes)


def _list(client: Client, path: str, trim: Callable[[Json], Json]) -> list[Json]:
    """Everything at ``path``; nothing where the cluster does not serve the kind."""
    found: list[Json] = []
    query: dict[str, str | int] = {"limit": 500}
    while True:
        try:
            page = client.get(path, **query)
        except NotFoundError:
            return []
        found += [trim(obj) for obj in page.get("items") or []]
        token = page["metadata"].get("continue")
        if not token:
            return found
        query["continue"] = token


def compose(
    nodes: Sequence[Json],
    pods: Sequence[Json],
    objects: Mapping[str, Sequence[Json]],
    classes: Sequence[ClassSpec],
) -> Picture:
    """A picture of raw objects; those without a queue label are foreign and so are their pods."""
    kin = Kinship(objects, ADAPTERS)
    owned: dict[str, list[Json]] = {uid: [] for uid in kin.workloads}
    foreign: dict[str, list[Json]] = {}
    orphaned: dict[str, list[Json]] = {}
    for pod in pods:
        root = kin.root_of(pod)
        if root is not None:
            owned[root].append(pod)
        elif not pods_of.holds(pod):
            continue
        elif pods_of.owner_of(pod).get("kind") in objects and not kin.is_known(pod):
            orphaned.setdefault(pods_of.owner_of(pod)["uid"], []).append(pod)
        else:
            foreign.setdefault(pod["spec"]["nodeName"], []).append(pod)
    workloads, unreadable = _observe(objects, owned, classes)
    return Picture(
        workloads=workloads,
        nodes=tuple(
            row
            for node in sorted(nodes, key=lambda n: n["metadata"]["name"])
            for row in _node_rows(node, foreign.get(node["metadata"]["name"], []), classes)
        ),
        orphans=tuple(_orphans(pods, classes) for _, pods in sorted(orphaned.items())),
        unreadable=unreadable,
    )


def _orphans(pods: Sequence[Json], classes: Sequence[ClassSpec]) -> Orphans:
    first, need = pods[0], pods_of.asked(pods[0]["spec"])
    return Orphans(
        namespace=first["metadata"].get("namespace", ""),
        name=pods_of.owner_of(first).get("name", ""),
        gpus=next((int(need[c.resource_name]) for c in classes if c.resource_name in need), 0),
        placement=pods_of.by_node(pods),
    )


def _observe(
    objects: Mapping[str, Sequence[Json]],
    owned: Mapping[str, list[Json]],
    classes: Sequence[ClassSpec],
) -> tuple[tuple[Observed, ...], dict[str, str]]:
    found: list[Observed] = []
    unreadable: dict[str, str] = {}
    for adapter in ADAPTERS:
        for obj in objects[adapter.kind]:
            uid = obj["metadata"]["uid"]
            if uid not in owned:
                continue
            try:
                found.append(adapter.observe(obj, owned[uid], classes))
            except (ValueError, KeyError, TypeError) as error:
                # One broken object must not stop the others from being planned.
                log.warning("%s %s: %s", adapter.kind, obj["metadata"]["name"], error)
                unreadable[uid] = str(error)
    return tuple(sorted(found, key=lambda o: (o.created, o.key))), unreadable


def _node_rows(
    node: Json, foreign: Sequence[Json], classes: Sequence[ClassSpec]
) -> list[ObservedNode]:
    """One row a class whose labels the node carries and whose resource it offers, first class wins."""
    meta, offers = node["metadata"], node["status"].get("allocatable") or {}
    held = _held(foreign)
    node_labels = meta.get("labels") or {}
    rows: dict[str, ObservedNode] = {}
    for spec in classes:
        offered = milli(offers.get(spec.resource_name, 0))
        matches = all(node_labels.get(key) == value for key, value in spec.node_labels.items())
        if not matches or offered <= 0 or spec.resource_name in rows:
            continue
        rows[spec.resource_name] = ObservedNode(
            name=meta["name"],
            hostname=node_labels.get(labels.HOSTNAME, meta["name"]),
            labels=node_labels,
            gpu_class=spec.name,
            gpus=offered,
            cpus=max(0, milli(offers.get("cpu", 0)) - held.get("cpu", 0)),
            memory_mib=max(0, mib_below(offers.get("memory", 0)) - held.get("memory", 0)),
            topology=_topology(node_labels),
            ready=_is_ready(node),
            foreign_gpus=min(offered, held.get(spec.resource_name, 0)),
        )
    return list(rows.values())


def _held(pods: Iterable[Json]) -> dict[str, int]:
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pods_of.asked(pod["spec"]).items():
            total[name] = total.get(name, 0) + int(amount)
    return total


def _topology(node_labels: Mapping[str, str]) -> dict[str, str]:
    return {
        level: node_labels[next(label for label in candidates if label in node_labels)]
        for level, candidates in labels.TOPOLOGY_LEVELS.items()
        if any(label in node_labels for label in candidates)
    }


def _is_ready(node: Json) -> bool:
    """Ready and open to new pods."""
    conditions = node["status"].get("conditions") or []
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and not node["spec"].get("unschedulable")


def trim_node(node: Json) -> Json:
    """A node without what nobody here reads (images and the kubelet's details are most of it)."""
    meta, status = node["metadata"], node.get("status") or {}
    return {
        "metadata": {k: meta[k] for k in ("name", "uid", "resourceVersion", "labels") if k in meta},
        "spec": {"unschedulable": (node.get("spec") or {}).get("unschedulable", False)},
        "status": {
            "allocatable": status.get("allocatable") or {},
            "conditions": [
                {"type": c.get("type"), "status": c.get("status")}
                for c in status.get("conditions") or []
                if c.get("type") == "Ready"
            ],
        },
    }
