"""What many people are shown of one state of a cluster is computed once.

A cluster's revision grows with whatever live pages show (``Cluster.touch``), so two readers of one revision
are shown the same, as far as they may see the same: the key says whom a value is for. A page that a crowd
keeps open is asked for by all of them at every plan; without this each would have it computed anew.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from django.conf import settings

from scheduling.models import Cluster

Value = TypeVar("Value")

MOST = 512
"""Values of a process; those asked for least recently go first."""
LASTING = 12
"""What lasts is kept for so many times as long."""


@dataclass(slots=True)
class _Slot:
    lock: Lock = field(default_factory=Lock)
    value: Any = None
    until: float = 0.0


class RevisionCache:
    """Values by cluster, revision and key, of this process, for ``WEIR_REMEMBERED_S`` at most: ages in a
    value are wrong by no more, and what changed without a revision shows then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._lock = Lock()

    def of(self, cluster: Cluster, key: Hashable, make: Callable[[], Value]) -> Value:
        """What ``make`` returned at this revision for ``key``, which names all that it depends on.

        A request that comes while it is made waits for it. What ``make`` raises is raised, and nothing is
        kept.
        """
        return self._value((cluster.pk, cluster.revision, key), make, settings.WEIR_REMEMBERED_S)

    def lasting(self, cluster: Cluster, key: Hashable, make: Callable[[], Value]) -> Value:
        """As ``of``, of what moves by the hour: whatever the revision, and for longer."""
        return self._value((cluster.pk, None, key), make, LASTING * settings.WEIR_REMEMBERED_S)

    def _value(self, key: Hashable, make: Callable[[], Value], for_s: float) -> Value:
        slot = self._slot(key)
        with slot.lock:
            if slot.until <= self._clock():
                slot.value = make()
                slot.until = self._clock() + for_s
            made: Value = slot.value
            return made

    def _slot(self, key: Hashable) -> _Slot:
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > MOST:
                self._slots.popitem(last=False)
            return slot


remembered = RevisionCache()
