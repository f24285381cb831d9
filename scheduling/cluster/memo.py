"""What was read of objects that did not change since: most of a large cluster, every cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from scheduling.cluster.adapters import ClassSpec, Observed
from scheduling.cluster.devices import Devices
from scheduling.cluster.kinship import Kinship

Json = dict[str, Any]
Aged = tuple[Any, Observed]
"""An observation behind what it is sorted by."""

BY_AGE = attrgetter("created", "namespace", "name", "kind")


class Memo:
    """Observations by uid. The mirror replaces what changes, so identity tells what did not."""

    def __init__(self) -> None:
        self.kin: Kinship | None = None
        """Of the last picture."""
        self._retired: dict[str, Json] = {}
        self._seen_retired: dict[str, Json] = {}
        self._circumstances: tuple[Sequence[ClassSpec], object] = ((), None)
        self._held: dict[str, tuple[Json, list[Json], Aged]] = {}
        self._used: dict[str, tuple[Json, list[Json], Aged]] = {}

    def open(self, classes: Sequence[ClassSpec], counted: Devices) -> None:
        """Begin a pass; all is read anew when classes or claim templates changed."""
        circumstances = (classes, counted.by_namespace)
        self._held = self._used if circumstances == self._circumstances else {}
        self._circumstances, self._used = circumstances, {}
        self._retired, self._seen_retired = self._seen_retired, {}

    def retire(self, uids: Iterable[str]) -> list[Json]:
        """Leave out of later pictures what has ended and been noted, until it changes or has pods again.

        Returns those among them that never owned anything but pods: nobody needs to know them any more.
        """
        found = {uid: self._used.pop(uid) for uid in uids if uid in self._used}
        self._seen_retired |= {uid: kept[0] for uid, kept in found.items()}
        return [obj for obj, _, (_, observed) in found.values() if observed.kind == "Job"]

    def is_retired(self, uid: str, obj: Json) -> bool:
        if self._retired.get(uid) is not obj:
            return False
        self._seen_retired[uid] = obj
        return True

    def recall(self, uid: str, obj: Json, pods: list[Json]) -> Aged | None:
        """What the last pass read, if it read the very same objects."""
        kept = self._held.get(uid)
        if kept is None or kept[0] is not obj or not (kept[1] is pods or _same(kept[1], pods)):
            return None
        self._used[uid] = kept
        return kept[2]

    def note(self, obj: Json, pods: list[Json], observed: Observed) -> Aged:
        """Remember what was read of ``obj`` and ``pods``."""
        aged = BY_AGE(observed), observed
        self._used[observed.uid] = (obj, pods, aged)
        return aged


def _same(before: list[Json], now: list[Json]) -> bool:
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))
