"""What the binder knows about nodes: room, labels, taints, and whether a pod may go there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workshop.testbed.server.kinds.pod_amounts import Amounts, amounts_of
from workshop.testbed.server.kinds.quantities import milli
from workshop.testbed.server.kinds.resources import Json
from workshop.testbed.server.kinds.selectors import Test, parse_expressions, requirement
from workshop.testbed.server.store.store import Key, Record, encode


def requests_of(spec: Json) -> Amounts:
    """Return what a pod takes of a node; `pods` counts pods.

    Of a host port, and of a place apart from the pod's own kind, each node has one.
    """
    once = dict.fromkeys([*_ports_of(spec), *_apart_on_hosts(spec)], 1000)
    return {"pods": 1000} | amounts_of(spec, "requests") | once


ONCE = "once: "


def _ports_of(spec: Json) -> list[str]:
    ports = [p for c in spec.get("containers") or () for p in c.get("ports") or ()]
    return [f"{ONCE}{p['hostPort']}/{p.get('protocol', 'TCP')}" for p in ports if p.get("hostPort")]


def _apart_on_hosts(spec: Json) -> list[str]:
    """Return those of pods that keep their own kind away: that they are of it is not looked at."""
    rules = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    terms = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return [
        f"{ONCE}{encode(term.get('labelSelector'))!r}"
        for term in terms
        if term["topologyKey"] == "kubernetes.io/hostname"
    ]


@dataclass(slots=True)
class NodeInfo:
    """One node and what is taken of it."""

    name: str
    labels: Mapping[str, str]
    taints: list[Json]
    ready: bool
    unschedulable: bool
    room: Amounts
    taken: Amounts = field(default_factory=dict)
    pods: dict[Key, Amounts] = field(default_factory=dict)

    def add(self, key: Key, amounts: Amounts) -> None:
        """Count a pod; counting it twice changes nothing."""
        self.remove(key)
        self.pods[key] = amounts
        for name, amount in amounts.items():
            self.taken[name] = self.taken.get(name, 0) + amount

    def remove(self, key: Key) -> None:
        """Give back what a pod took."""
        for name, amount in self.pods.pop(key, {}).items():
            self.taken[name] -= amount

    def is_like(self, other: NodeInfo) -> bool:
        """Return whether a pod fits here as it does on `other`, apart from what is taken."""
        return (self.labels, self.taints, self.ready, self.unschedulable, self.room) == (
            other.labels,
            other.taints,
            other.ready,
            other.unschedulable,
            other.room,
        )

    def lacks(self, amounts: Amounts) -> str | None:
        """Return the first resource of which too little is free, or None."""
        for name, amount in amounts.items():
            room = self.room.get(name, 1000 if name.startswith(ONCE) else 0)
            if amount > room - self.taken.get(name, 0):
                return name
        return None


def node_info(node: Record) -> NodeInfo:
    """Return what the binder needs of a node."""
    spec, status = node.body.get("spec") or {}, node.body.get("status") or {}
    given = status.get("allocatable") or status.get("capacity") or {}
    room = {"pods": 110_000, **{name: milli(quantity) for name, quantity in given.items()}}
    ready = any(
        c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ()
    )
    labels = node.body["metadata"].get("labels") or {}
    unschedulable = bool(spec.get("unschedulable"))
    return NodeInfo(node.name, labels, spec.get("taints") or [], ready, unschedulable, room)


class Demands:
    """What a pod demands of a node besides room."""

    def __init__(self, spec: Json) -> None:
        self._selector: list[Test] = [
            requirement(key, "In", [value])
            for key, value in (spec.get("nodeSelector") or {}).items()
        ]
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        rule = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        self._terms = [_Term(term) for term in rule["nodeSelectorTerms"]] if rule else None
        self._tolerations: list[Json] = spec.get("tolerations") or []

    def refuses(self, node: NodeInfo) -> str | None:
        """Return why the pod may not go to `node`, in the scheduler's words, or None."""
        if node.unschedulable and not self._tolerates(_CORDON):
            return "node(s) were unschedulable"
        if not node.ready:
            return "node(s) were not ready"
        for taint in node.taints:
            if taint.get("effect") != "PreferNoSchedule" and not self._tolerates(taint):
                shown = f"{{{taint.get('key')}: {taint.get('value', '')}}}"
                return f"node(s) had untolerated taint {shown}"
        selected = all(test(node.labels) for test in self._selector)
        if not selected or (
            self._terms is not None and not any(term.matches(node) for term in self._terms)
        ):
            return "node(s) didn't match Pod's node affinity/selector"
        return None

    def _tolerates(self, taint: Json) -> bool:
        return any(_tolerates(toleration, taint) for toleration in self._tolerations)


_CORDON: Json = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class _Term:
    """One term of a required node affinity; all its parts must hold."""

    def __init__(self, term: Json) -> None:
        self._labels = parse_expressions(term.get("matchExpressions"))
        self._names = parse_expressions(term.get("matchFields"))

    def matches(self, node: NodeInfo) -> bool:
        if not self._labels and not self._names:
            return False
        name = {"metadata.name": node.name}
        return all(t(node.labels) for t in self._labels) and all(t(name) for t in self._names)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(toleration.get("key")) and same
