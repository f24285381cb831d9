"""Which workload a pod belongs to: up the owners, from the pod to the object that is queued.

A RayJob makes a RayCluster that makes pods; a TrainJob makes a JobSet that makes Jobs. The topmost
object with a queue label is the workload, and whatever it made is a part of it.

Anybody can write an owner reference. One counts where the object that it names is there, of the kind that
it says, and of a kind that makes such objects; what names another is work of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scheduling.cluster.adapters import Adapter
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]
ByKind = Mapping[str, Iterable[Json]]


class Kinship:
    """The owners among a cluster's objects, kept up with those that come and go."""

    def __init__(self, adapters: Iterable[Adapter]) -> None:
        self._adapters = tuple(adapters)
        self._makers = {adapter.kind for adapter in self._adapters if adapter.makes_queued}
        self._objects: dict[str, dict[str, Json]] = {}
        """Kind -> uid -> object."""
        self._by_name: dict[tuple[str, str, str], str] = {}
        self._owned: dict[str, None] = {}
        """Objects that name an owner, by uid: what they belong to changes with others."""
        self._made: dict[str, dict[str, None]] = {}
        """uid of an owner -> the objects that name it."""
        self.workloads: set[str] = set()
        """uids of queued objects that are no part of another."""

    def keep_up(self, came: ByKind, gone: ByKind) -> list[str]:
        """uids of the objects that are workloads now and were not, or the other way round, and of those of
        whose making something came or changed, unless it is a Job.

        An object that changed is among both: what it was has gone, what it is came.
        """
        for kind, objects in gone.items():
            for obj in objects:
                self._forget(kind, obj)
        moved = [uid for kind, objects in came.items() for uid in self._learn(kind, objects)]
        for uid in self._owned:
            if (self._root(uid) == uid) != (uid in self.workloads):
                self.workloads.symmetric_difference_update((uid,))
                moved.append(uid)
        return [*moved, *(uid for uid in _owners((gone, came)) if uid in self.workloads)]

    def made_by(self, uid: str) -> list[Json]:
        """The objects that the one with ``uid`` made."""
        found = (self.find(part) for part in self._made.get(uid, ()))
        return [entry[1] for entry in found if entry is not None]

    def find(self, uid: str) -> tuple[str, Json] | None:
        """Kind and object."""
        for kind, objects in self._objects.items():
            if uid in objects:
                return kind, objects[uid]
        return None

    def root_of(self, pod: Json) -> str | None:
        """uid of the workload that ``pod`` belongs to; None for a pod outside the queues."""
        owner = self._owner(pod)
        return owner if owner is None else self.workload_of(owner)

    def workload_of(self, uid: str) -> str | None:
        """uid of the workload that the object with ``uid`` is, or is a part of."""
        return uid if uid in self.workloads else self._root(uid)

    def is_known(self, pod: Json) -> bool:
        """Whether the object that made ``pod`` is still there."""
        return self._owner(pod) is not None

    def _root(self, uid: str) -> str | None:
        """The topmost queued object above ``uid`` or it itself; None when none is queued."""
        root: str | None = None
        at, seen = uid, set[str]()
        while at not in seen and (found := self.find(at)) is not None:
            seen.add(at)
            if labels.queue_of(found[1]["metadata"].get("labels")):
                root = at
            at = self._maker(found[1])
        return root

    def _maker(self, obj: Json) -> str:
        """uid of the object that made ``obj``; empty where what it names made no such thing."""
        owner = pods_of.owner_of(obj)
        found = self.find(owner.get("uid", ""))
        is_so = found is not None and found[0] == owner.get("kind") and found[0] in self._makers
        return owner.get("uid", "") if is_so else ""

    def _learn(self, kind: str, objects: Iterable[Json]) -> Iterator[str]:
        """Hold ``objects``; of those that nobody owns, the uids of workloads."""
        by_uid = self._objects.setdefault(kind, {})
        for obj in objects:
            meta = obj["metadata"]
            by_uid[meta["uid"]] = obj
            if kind != "Job":
                self._by_name[kind, meta["namespace"], meta["name"]] = meta["uid"]
            if owner := pods_of.owner_of(obj):
                self._owned[meta["uid"]] = None
                self._made.setdefault(owner.get("uid", ""), {})[meta["uid"]] = None
            elif labels.queue_of(meta.get("labels")):
                self.workloads.add(meta["uid"])
                yield meta["uid"]

    def _forget(self, kind: str, obj: Json) -> None:
        meta = obj["metadata"]
        uid, name = meta["uid"], (kind, meta["namespace"], meta["name"])
        self._objects.get(kind, {}).pop(uid, None)
        if uid in self._owned:
            self._disown(uid, pods_of.owner_of(obj).get("uid", ""))
        self.workloads.discard(uid)
        if self._by_name.get(name) == uid:
            del self._by_name[name]

    def _disown(self, uid: str, owner: str) -> None:
        del self._owned[uid]
        made = self._made[owner]
        del made[uid]
        if not made:
            del self._made[owner]

    def _owner(self, pod: Json) -> str | None:
        uid: str = pods_of.owner_of(pod).get("uid", "")
        if uid in self.workloads or (uid and self.find(uid) is not None):
            return uid
        namespace = pod["metadata"].get("namespace", "")
        for adapter in self._adapters:
            if name := adapter.owner_name(pod):
                found = self._by_name.get((adapter.kind, namespace, name))
                if found:
                    return found
        return None


def _owners(changes: Iterable[ByKind]) -> Iterator[str]:
    """uids of the objects that those in ``changes``, Jobs aside, say made them."""
    for found in changes:
        for kind, objects in found.items():
            if kind != "Job":
                yield from (pods_of.owner_of(obj).get("uid", "") for obj in objects)
