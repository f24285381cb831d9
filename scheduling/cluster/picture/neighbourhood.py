"""Which nodes are open to work that runs only near, or apart from, pods that are there now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from scheduling.cluster.adapters import Sighting, bounds, neighbours
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.picture.nodes import ObservedNode

Json = dict[str, Any]
Names = frozenset[str]
Nearby = Mapping[str, Names]
"""Bounds -> names of the nodes that pods there now leave to it."""
BOUNDS = attrgetter("bounds")

NO_NEIGHBOURS = (
    "Its pod affinity wants it near pods with {near}, and no node has any. It is planned once they are"
    " there."
)
SHUT_OUT = (
    "Its pod anti-affinity keeps it apart from pods with {apart}, and each node has some near. It is planned"
    " once they are gone from one."
)


class Neighbourhood:
    """The bound pods of one picture, by what they are asked for."""

    def __init__(
        self, nodes: Sequence[ObservedNode], pods: Iterable[Json], owners: Mapping[str, Sighting]
    ) -> None:
        """``owners``: uid of a pod -> the workload that it is of."""
        self._labels = {node.name: node.labels for node in nodes}
        self._pods = [pod for pod in pods if pods_of.holds(pod)]
        self._owners = owners
        self._there: dict[str, Names] = {}

    def left_to(self, text: str) -> Names | None:
        """Of bounds with neighbours; None for others, whom no pod keeps from anywhere."""
        roles = bounds.read(text)
        if not any(role.get("near") or role.get("apart") for role in roles):
            return None
        return frozenset[str]().union(*map(self._of_role, roles))

    def _of_role(self, role: Json) -> Names:
        left = frozenset(self._labels)
        for term in role.get("near") or []:
            there = self._together_with(term)
            left &= there if there or not term["self"] else self._having(term["key"])
        for term in role.get("apart") or []:
            left -= self._together_with(term)
        return left

    def _having(self, key: str) -> Names:
        return frozenset(name for name, labels in self._labels.items() if key in labels)

    def _together_with(self, term: Json) -> Names:
        """Nodes with the same value of the term's label as a node with such a pod. Its own kind, which takes
        a place apart on each node, is left out: that is planned with."""
        known = neighbours.key_of(term)
        if known not in self._there:
            place = neighbours.place_of(term) if neighbours.is_apart_alone(term) else ""
            values = {
                self._labels.get(pod["spec"]["nodeName"], {}).get(term["key"])
                for pod in self._pods
                if self._is_meant(term, pod) and not self._takes(pod, place)
            }
            self._there[known] = frozenset(
                name
                for name, labels in self._labels.items()
                if labels.get(term["key"]) in values - {None}
            )
        return self._there[known]

    def _is_meant(self, term: Json, pod: Json) -> bool:
        meta = pod["metadata"]
        return neighbours.matches(term, meta.get("namespace", ""), meta.get("labels") or {})

    def _takes(self, pod: Json, place: str) -> bool:
        owner = self._owners.get(pod["metadata"].get("uid", "")) if place else None
        return owner is not None and any(name == place for name, _ in owner.beside)


def nearby(
    nodes: Sequence[ObservedNode],
    pods: Iterable[Json],
    owned: Mapping[str, Sequence[Json]],
    workloads: Collection[Sighting],
) -> Nearby:
    """By bounds that speak of other pods; nothing is looked at where none do."""
    texts = sorted(text for text in set(map(BOUNDS, workloads)) if neighbours.WORD in text)
    if not texts:
        return {}
    by_uid = {o.uid: o for o in workloads}
    owners = {
        pod["metadata"].get("uid", ""): by_uid[uid]
        for uid, mine in owned.items()
        if uid in by_uid
        for pod in mine
    }
    found = Neighbourhood(nodes, pods, owners)
    return {text: left for text in texts if (left := found.left_to(text)) is not None}


def shut_out(workloads: Iterable[Sighting], left: Nearby) -> dict[str, Sighting]:
    """Those that wait and to whom pods that are there leave no node, by uid, with the sentence: it is not the
    cluster that they never fit."""
    if not left:
        return {}
    return {
        o.uid: replace(o, incomplete=_said(o.bounds))
        for o in workloads
        if o.suspended and not o.incomplete and o.bounds in left and not left[o.bounds]
    }


def _said(text: str) -> str:
    roles = bounds.read(text)
    near = [term for role in roles for term in role.get("near") or []]
    if near:
        return NO_NEIGHBOURS.format(near=neighbours.in_words(near))
    apart = [term for role in roles for term in role.get("apart") or []]
    return SHUT_OUT.format(apart=neighbours.in_words(apart))
