"""What was read of objects that did not change since: most of a large cluster, every cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from scheduling.cluster.adapters import ADAPTERS, Sighting
from scheduling.cluster.adapters.demand import Demand
from scheduling.cluster.picture import likeness
from scheduling.cluster.picture.around import Circumstances
from scheduling.cluster.picture.kinship import Kinship

Json = dict[str, Any]
ByKind = Mapping[str, Sequence[Json]]
Identities = Mapping[str, Mapping[int, Json]]
"""Objects by kind, and by what tells each from any other that there is at the same time."""
Words = tuple[int, Json | None, Json | None]
"""Generation, labels and annotations of an object."""

BY_AGE = attrgetter("created", "namespace", "name", "kind")
NO_PODS: list[Json] = []
MOST_ALIKE = 1000
"""Demands remembered by likeness; a cluster with more of them begins anew."""


class Memo:
    """Observations by uid. The mirror replaces what changes, so identity tells what did not."""

    def __init__(self) -> None:
        self.kin = Kinship(ADAPTERS)
        self.unreadable: dict[str, str] = {}
        """uid -> why the object's demand cannot be understood."""
        self._before: Identities = {}
        """The objects of the last pass; no others have their identities while these are held."""
        self._circumstances: tuple[object, ...] = ()
        self._read: dict[str, Sighting] = {}
        self._out_of_order: list[Any] = []
        """Ages of those that were read after younger ones."""
        self._pods: dict[str, list[Json]] = {}
        """Pods by uid of their workload, of those that had some in the last pass."""
        self._retired: dict[str, Json] = {}
        self._demands: dict[str, tuple[Words, Demand]] = {}
        """What objects asked for when they were read last, and by which words."""
        self._alike: dict[bytes, Demand] = {}
        """The same by ``likeness``."""

    def open(self, objects: ByKind, around: Circumstances) -> dict[str, None]:
        """Begin a pass over ``objects`` by kind: uids of those that may have to be read.

        All of them when GPU classes, claim templates, runtime classes or LimitRanges changed; else what came
        or changed, and what became a workload or a part of another one.
        """
        now = {
            kind: dict(zip(map(id, found), found, strict=True)) for kind, found in objects.items()
        }
        came, gone = _differences(self._before, now), _differences(now, self._before)
        self._before = now
        moved = self.kin.keep_up(came, gone)
        for uid in (obj["metadata"]["uid"] for found in gone.values() for obj in found):
            self._retired.pop(uid, None)
            if uid not in self.kin.workloads:
                self.drop(uid)
        circumstances = (
            around.classes,
            around.devices.by_namespace,
            around.runtimes,
            around.defaults,
        )
        if circumstances != self._circumstances:
            self._circumstances = circumstances
            self._alike = {}
            for uid in [*self._read, *self.unreadable]:
                self.drop(uid)
            return dict.fromkeys(sorted(self.kin.workloads))
        return dict.fromkeys(moved)

    def crewed(self, owned: Mapping[str, list[Json]]) -> dict[str, None]:
        """uids of those whose pods (by workload: ``owned``) are others than in the last pass."""
        before, self._pods = self._pods, {uid: pods for uid, pods in owned.items() if pods}
        return {
            uid: None
            for uid in {**before, **self._pods}
            if not _same(before.get(uid, NO_PODS), self._pods.get(uid, NO_PODS))
        }

    def demand_of(self, kind: str, obj: Json, read: Callable[[], Demand | None]) -> Demand | None:
        """What ``obj`` asks for: as before, if it was read since its author, or Weir, last wrote more than a
        status; as one that is alike; or what ``read`` finds."""
        known, words = self._demands.get(_uid(obj)), words_of(obj)
        if words is None:
            return read()
        if known is not None and known[0] == words:
            return known[1]
        alike = likeness.of(kind, obj)
        demand = (self._alike.get(alike) if alike else None) or read()
        if demand is not None:
            self._demands[_uid(obj)] = words, demand
            if alike:
                self._note_alike(alike, demand)
        return demand

    def _note_alike(self, alike: bytes, demand: Demand) -> None:
        if len(self._alike) >= MOST_ALIKE:
            self._alike = {}
        self._alike[alike] = demand

    def note(self, observed: Sighting) -> None:
        """Remember what was read."""
        if (before := self._read.get(observed.uid)) and BY_AGE(before) != BY_AGE(observed):
            del self._read[observed.uid]
        if observed.uid not in self._read and self._read:
            youngest = self._read[next(reversed(self._read))]
            if BY_AGE(observed) < BY_AGE(youngest):
                self._out_of_order.append(BY_AGE(observed))
        self._read[observed.uid] = observed
        self.unreadable.pop(observed.uid, None)

    def drop(self, uid: str) -> None:
        self._read.pop(uid, None)
        self._demands.pop(uid, None)
        self.unreadable.pop(uid, None)

    def by_age(self) -> dict[str, Sighting]:
        """All that is remembered, by uid, in order of age and name."""
        if self._out_of_order:
            first, late = min(self._out_of_order), []
            while self._read and BY_AGE(self._read[next(reversed(self._read))]) >= first:
                late.append(self._read.popitem()[1])
            self._read |= {observed.uid: observed for observed in sorted(late, key=BY_AGE)}
            self._out_of_order = []
        return self._read.copy()

    def retire(self, uids: Iterable[str]) -> list[Json]:
        """Leave out of later pictures what has ended and been noted, until it changes or has pods again.

        Returns those among them that never owned anything but pods: nobody needs to know them any more.
        """
        found = {uid: entry for uid in uids if uid in self._read and (entry := self.kin.find(uid))}
        for uid, (_, obj) in found.items():
            self._retired[uid] = obj
            self.drop(uid)
        return [obj for kind, obj in found.values() if kind == "Job"]

    def is_retired(self, uid: str, obj: Json) -> bool:
        return self._retired.get(uid) is obj


def words_of(obj: Json) -> Words | None:
    """What tells whether an object's spec, labels and annotations are as before; None where it has no
    generation, which rises with every edit of a spec."""
    meta = obj["metadata"]
    generation = meta.get("generation")
    return (generation, meta.get("labels"), meta.get("annotations")) if generation else None


def _differences(before: Identities, now: Identities) -> dict[str, list[Json]]:
    """The objects by kind that are in ``now`` and not ``before``."""
    came: dict[str, list[Json]] = {}
    for kind, objects in now.items():
        if fresh := objects.keys() - before.get(kind, {}).keys():
            came[kind] = sorted((objects[key] for key in fresh), key=_uid)
    return came


def _uid(obj: Json) -> str:
    return str(obj["metadata"]["uid"])


def _same(before: list[Json], now: list[Json]) -> bool:
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))
