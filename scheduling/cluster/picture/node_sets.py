"""Which nodes workloads may use, by what their bounds say and by labels, taints and offers of the nodes.

Read through an index of labels: thousands of nodes and many bounds are matched value by value, not node by
node. What is found for a bound stands until a node changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from scheduling.cluster.adapters import bounds
from scheduling.cluster.adapters.affinity import OPERATORS
from scheduling.cluster.picture.nodes import ObservedNode, tolerates
from scheduling.cluster.vocabulary.volumes import NO_VOLUMES, Volumes

Json = dict[str, Any]
Names = frozenset[str]

MOST = 1000
"""Bounds that are told apart; work with further ones is planned as if it had none."""
NODE_NAME = "metadata.name"
STORAGE = "ephemeral-storage"


class NodeSets:
    """From one picture of a cluster to the next."""

    def __init__(self) -> None:
        self._seen: list[object] = []
        self._index = _Index(())
        self._found: dict[str, Names] = {}

    def of(
        self, bounds_there: Set[str], nodes: Sequence[ObservedNode], volumes: Volumes = NO_VOLUMES
    ) -> dict[str, Names]:
        """Names of nodes by bounds, those in order of their text."""
        seen: list[object] = [volumes, *((n.name, n.labels, n.kept_for, n.beside) for n in nodes)]
        if seen != self._seen:
            self._seen, self._index, self._found = seen, _Index(nodes, volumes), {}
        texts = list(islice(sorted(bounds_there), MOST))
        for each in texts:
            if each not in self._found:
                self._found[each] = self._index.allowed(each)
        self._found = {each: self._found[each] for each in texts}
        return {each: self._found.get(each, self._index.open) for each in sorted(bounds_there)}


class _Index:
    def __init__(self, nodes: Iterable[ObservedNode], volumes: Volumes = NO_VOLUMES) -> None:
        self._volumes = volumes
        self._labels = {node.name: node.labels for node in nodes}
        self._kept_for = {node.name: node.kept_for for node in nodes if node.kept_for}
        self._beside = {node.name: node.beside for node in nodes}
        self._names = frozenset(self._labels)
        self._itself: Mapping[str, Set[str]] = {name: {name} for name in self._labels}
        self._having: dict[str, dict[str, set[str]]] = {}
        self.open: Names = self._names - self._kept_for.keys()
        """Those for everybody."""

    def allowed(self, text: str) -> Names:
        """What nobody can make sense of binds nothing: the API server refuses such pods."""
        try:
            roles = bounds.read(text)
            found = frozenset[str]().union(*map(self._of_role, roles))
            # Where all are barred, they are tried again: what kept work from them may have changed.
            return found.difference(*(role.get("barred") or () for role in roles)) or found
        except (AttributeError, KeyError, TypeError, ValueError):
            return self.open

    def _of_role(self, said: Json) -> Names:
        found = self._tolerated(said.get("tolerations") or ())
        if beside := said.get("beside"):
            found = frozenset(name for name in found if self._offers(name, beside))
        for key, value in (said.get("selector") or {}).items():
            found &= self._by_value(key).get(value, frozenset())
        for where in self._volumes.of(said.get("volumes") or {}):
            found &= frozenset[str]().union(*map(self._term, where))
        terms = said.get("terms")
        return found & frozenset[str]().union(*map(self._term, terms)) if terms else found

    def _offers(self, name: str, beside: Mapping[str, int]) -> bool:
        """Whether the empty node has what one pod asks for. Local
        storage is not announced by every kubelet."""
        has = self._beside[name]
        return all(
            has.get(resource, amount if resource == STORAGE else 0) >= amount
            for resource, amount in beside.items()
        )

    def _tolerated(self, tolerations: Sequence[Json]) -> Names:
        return self.open | {
            name
            for name, taints in self._kept_for.items()
            if all(any(tolerates(each, taint) for each in tolerations) for taint in taints)
        }

    def _term(self, term: Json) -> Names:
        """An empty term matches no node."""
        fields, expressions = term.get("matchFields") or [], term.get("matchExpressions") or []
        if not fields and not expressions:
            return frozenset()
        found = self._names
        for field in fields:
            found &= self._matching(field, self._itself if field.get("key") == NODE_NAME else {})
        for expression in expressions:
            found &= self._matching(expression, self._by_value(str(expression.get("key"))))
        return found

    def _matching(self, expression: Json, having: Mapping[str, Set[str]]) -> Names:
        test = OPERATORS.get(str(expression.get("operator")))
        values = expression.get("values")
        listed = values if isinstance(values, list) else []
        if test is None:
            return frozenset()
        found = frozenset[str]().union(*(n for v, n in having.items() if test(v, listed)))
        if test(None, listed):
            found |= self._names - frozenset[str]().union(*having.values())
        return found

    def _by_value(self, key: str) -> Mapping[str, Set[str]]:
        """Nodes by their value of a label."""
        if key not in self._having:
            having = self._having[key] = {}
            for name, labels in self._labels.items():
                if key in labels:
                    having.setdefault(labels[key], set()).add(name)
        return self._having[key]
