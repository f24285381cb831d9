"""Which workload a pod belongs to: up the owners, from the pod to the object that is queued.

A RayJob makes a RayCluster that makes pods; a TrainJob makes a JobSet that makes Jobs. The topmost
object with a queue label is the workload, and whatever it made is a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.adapters import Adapter
from scheduling.cluster.adapters import pods as pods_of

Json = dict[str, Any]


class Kinship:
    """The owners among ``objects`` (kind -> what the mirror holds of it).

    ``before`` is that of an earlier look: what nobody owns and did not change is not climbed again.
    """

    def __init__(
        self,
        objects: Mapping[str, Sequence[Json]],
        adapters: Iterable[Adapter],
        before: Kinship | None = None,
    ) -> None:
        self._adapters = tuple(adapters)
        self._by_uid = {o["metadata"]["uid"]: o for found in objects.values() for o in found}
        self._by_name = {
            (kind, o["metadata"]["namespace"], o["metadata"]["name"]): o["metadata"]["uid"]
            for kind, found in objects.items()
            if kind != "Job"
            for o in found
        }
        self._alone: dict[str, tuple[Json, str | None]] = {}
        """uid -> object without an owner, and its root."""
        self._roots = self._all_roots(before._alone if before else {})
        self.workloads = {uid for uid, root in self._roots.items() if uid == root}
        """Queued objects that are no part of another."""

    def root_of(self, pod: Json) -> str | None:
        """uid of the workload that ``pod`` belongs to; None for a pod outside the queues."""
        owner = self._owner(pod)
        return self._roots.get(owner) if owner else None

    def is_known(self, pod: Json) -> bool:
        """Whether the object that made ``pod`` is still there."""
        return self._owner(pod) is not None

    def _owner(self, pod: Json) -> str | None:
        uid: str = pods_of.owner_of(pod).get("uid", "")
        if uid in self._by_uid:
            return uid
        namespace = pod["metadata"].get("namespace", "")
        for adapter in self._adapters:
            if name := adapter.owner_name(pod):
                found = self._by_name.get((adapter.kind, namespace, name))
                if found:
                    return found
        return None

    def _all_roots(self, before: Mapping[str, tuple[Json, str | None]]) -> dict[str, str | None]:
        roots: dict[str, str | None] = {}
        for uid, obj in self._by_uid.items():
            kept = before.get(uid)
            if kept is not None and kept[0] is obj:
                self._alone[uid] = kept
                roots[uid] = kept[1]
                continue
            roots[uid] = self._climb(uid)
            if not pods_of.owner_of(obj):
                self._alone[uid] = (obj, roots[uid])
        return roots

    def _climb(self, uid: str) -> str | None:
        """The topmost queued object above ``uid`` or it itself; None when none is queued."""
        root: str | None = None
        at, seen = uid, set[str]()
        while at in self._by_uid and at not in seen:
            seen.add(at)
            obj = self._by_uid[at]
            if labels.queue_of(obj["metadata"].get("labels")):
                root = at
            at = pods_of.owner_of(obj).get("uid", "")
        return root
