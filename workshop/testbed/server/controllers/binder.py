"""The scheduler stand-in: puts pending pods on nodes that have room and suit them.

Pods that ask for the same are tried as one class: when one of them fits nowhere, none does,
so thousands of waiting pods cost one look at the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from workshop.testbed.server.kinds.pod_amounts import Amounts
from workshop.testbed.server.kinds.resources import NODES, PODS, Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record, encode

from ..verbs.pods import assign, set_condition
from ..verbs.update import write
from .nodes import Demands, NodeInfo, node_info, requests_of
from .recorder import emit
from .runtime import After

SOURCE = "default-scheduler"
_PASS: Key = (PODS, "", "")
"""Stands for one pass over all waiting pods."""

Order = tuple[int, int]
"""Priority, highest first, then arrival."""


class Binder:
    """Keeps the nodes' free room and the waiting pods, both updated change by change.

    Between passes no waiting pod fits anywhere. So a new pod is tried on all nodes, and room
    that was freed on some nodes is offered to all waiting pods, but nothing else is looked at.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._nodes: dict[str, NodeInfo] = {}
        self._homeless: dict[str, dict[Key, Amounts]] = {}
        """Pods of nodes that are not known (yet), by the node's name."""
        self._classes: dict[bytes, dict[Key, Order]] = {}
        self._class_of: dict[Key, bytes] = {}
        self._arrivals = 0
        self._untried: dict[bytes, None] = {}
        """Classes with pods that have not been tried yet."""
        self._freed: dict[str, None] = {}
        """Nodes on which room was freed."""
        self._changed = False
        """Whether the nodes themselves changed: everything is tried and explained anew."""

    def keys(self, event: Event) -> Iterable[Key]:
        """Take note of the change; ask for a pass if it can make a difference."""
        if event.record.resource is NODES:
            self._note_node(event)
        elif event.record.resource is PODS:
            self._note_pod(event)
        return (_PASS,) if self._changed or self._untried or self._freed else ()

    def _note_node(self, event: Event) -> None:
        name = event.record.name
        old = self._nodes.pop(name, None)
        pods = old.pods if old else self._homeless.pop(name, {})
        if event.type == "DELETED":
            self._homeless[name] = dict(pods)
            self._changed = True
            return
        info = node_info(event.record)
        self._changed = self._changed or old is None or not info.is_like(old)
        for key, amounts in pods.items():
            info.add(key, amounts)
        self._nodes[name] = info

    def _note_pod(self, event: Event) -> None:
        pod = event.record
        spec, metadata = pod.body["spec"], pod.body["metadata"]
        ended = pod.body.get("status", {}).get("phase") in ("Succeeded", "Failed")
        gone = event.type == "DELETED" or ended
        node = spec.get("nodeName")
        if node:
            self._forget(pod.key)
            self._count(pod, node, gone=gone)
        elif gone or "deletionTimestamp" in metadata or not _is_ours(spec):
            self._forget(pod.key)
        else:
            self._remember(pod)

    def _count(self, pod: Record, node: str, *, gone: bool) -> None:
        info = self._nodes.get(node)
        if info is None:
            homeless = self._homeless.setdefault(node, {})
            homeless.pop(pod.key, None)
            if not gone:
                homeless[pod.key] = requests_of(pod.body["spec"])
        elif gone:
            if pod.key in info.pods:
                self._freed[node] = None
            info.remove(pod.key)
        elif pod.key not in info.pods:
            info.add(pod.key, requests_of(pod.body["spec"]))

    def _remember(self, pod: Record) -> None:
        """Queue a pod that is new, or asks for something else than before."""
        signature = _signature(pod.body)
        if self._class_of.get(pod.key) == signature:
            return
        self._forget(pod.key)
        self._arrivals += 1
        order = (-int(pod.body["spec"].get("priority") or 0), self._arrivals)
        self._classes.setdefault(signature, {})[pod.key] = order
        self._class_of[pod.key] = signature
        self._untried[signature] = None

    def _forget(self, key: Key) -> None:
        signature = self._class_of.pop(key, None)
        if signature is not None:
            waiting = self._classes[signature]
            del waiting[key]
            if not waiting:
                del self._classes[signature]

    def reconcile(self, key: Key, after: After) -> None:
        """One pass: classes by their first pod's order, pods of a class until one fits nowhere."""
        changed, untried, freed = self._changed, self._untried, self._freed
        self._changed, self._untried, self._freed = False, {}, {}
        offered = list(self._nodes) if changed else [n for n in freed if n in self._nodes]
        tried = self._classes if changed or offered else untried
        ranked = [signature for signature in tried if signature in self._classes]
        ranked.sort(key=lambda signature: next(iter(self._classes[signature].values())))
        for signature in ranked:
            full = changed or signature in untried
            names = list(self._nodes) if full else offered
            self._place(list(self._classes.get(signature, ())), names, explain=full)

    def _place(self, keys: list[Key], names: list[str], *, explain: bool) -> None:
        """Bind pods of one class to the nodes called `names` as far as they fit."""
        first = self._world.store.find(keys[0]) if keys else None
        if first is None:
            return
        if first.body["spec"].get("schedulingGates"):
            self._explain(keys, "SchedulingGated", _GATED)
            return
        demands, amounts = Demands(first.body["spec"]), requests_of(first.body["spec"])
        refusals = {name: demands.refuses(self._nodes[name]) for name in names}
        suitable = [self._nodes[name] for name in names if refusals[name] is None]
        for place, key in enumerate(keys):
            node = _best(suitable, amounts)
            if node is None:
                if explain:
                    self._explain(keys[place:], "Unschedulable", self._why(refusals, amounts))
                return
            pod = self._world.store.find(key)
            if pod is not None:
                assign(self._world, pod, node.name)

    def _why(self, refusals: dict[str, str | None], amounts: Amounts) -> str:
        reasons = Counter(
            reason or f"Insufficient {self._nodes[name].lacks(amounts)}"
            for name, reason in refusals.items()
        )
        total = len(self._nodes)
        if not total:
            return "no nodes available to schedule pods"
        listed = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items()))
        return f"0/{total} nodes are available: {listed}."

    def _explain(self, keys: Iterable[Key], reason: str, message: str) -> None:
        """Say on each pod why it waits, once for each reason."""
        for key in keys:
            pod = self._world.store.find(key)
            if pod is None:
                continue
            status = pod.body.get("status", {})
            old = status.get("conditions") or []
            said: Json = next((c for c in old if c["type"] == "PodScheduled"), {})
            if (said.get("reason"), said.get("message")) == (reason, message):
                continue
            new = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
            conditions = set_condition(old, new, self._world.clock.stamp())
            write(self._world, pod, status={**status, "conditions": conditions})
            if reason == "Unschedulable" and said.get("reason") != reason:
                emit(self._world, pod, "FailedScheduling", message, source=SOURCE, warning=True)


_GATED = "Scheduling is blocked due to non-empty scheduling gates"


def _is_ours(spec: Json) -> bool:
    return bool(spec.get("schedulerName", SOURCE) == SOURCE)


def _best(nodes: list[NodeInfo], amounts: Amounts) -> NodeInfo | None:
    """Return the fullest node with room for `amounts`: devices first, then cpu, then the name."""
    devices = [name for name in amounts if "/" in name]

    def free(info: NodeInfo) -> tuple[int, int, str]:
        left = sum(info.room.get(name, 0) - info.taken.get(name, 0) for name in devices)
        return left, info.room.get("cpu", 0) - info.taken.get("cpu", 0), info.name

    fitting = (info for info in nodes if info.lacks(amounts) is None)
    return min(fitting, key=free, default=None)


def _signature(body: Json) -> bytes:
    """Return what decides where a pod can go, as one key."""
    spec = body["spec"]
    parts = [
        spec.get("priority"),
        spec.get("nodeSelector"),
        (spec.get("affinity") or {}).get("nodeAffinity"),
        spec.get("tolerations"),
        spec.get("schedulingGates"),
        sorted(requests_of(spec).items()),
    ]
    return encode(parts)
