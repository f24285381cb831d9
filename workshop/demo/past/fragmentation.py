"""How many free GPUs of a simulated past were of no use, looked at now and then as a live cluster does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from scheduling.engine import left_over, wanted_member
from scheduling.engine.model import Decision, Phase, Snapshot

EVERY = timedelta(minutes=15)
Hour = tuple[str, datetime]
"""Class and start."""


class ScatterMeans:
    """Told of the snapshots of plans; knows the mean of each class and hour."""

    def __init__(self) -> None:
        self._next: datetime | None = None
        self._seen: dict[Hour, list[int]] = defaultdict(list)

    def look(self, now: datetime, snapshot: Snapshot, waits: Mapping[str, Decision]) -> None:
        if self._next is not None and now < self._next:
            return
        self._next = now + EVERY
        hour = now.replace(minute=0, second=0, microsecond=0)
        for name, gpus in _fragmented(snapshot, waits).items():
            self._seen[name, hour].append(gpus)

    def mean(self, gpu_class: str, hour: datetime) -> float | None:
        """Milli-GPU; None where nobody looked."""
        seen = self._seen.get((gpu_class, hour))
        return sum(seen) / len(seen) if seen else None


def _fragmented(snapshot: Snapshot, waits: Mapping[str, Decision]) -> dict[str, int]:
    free = {node.name: node.gpus - node.foreign_gpus for node in snapshot.nodes if node.ready}
    waiting: dict[str, list[tuple[int, str]]] = defaultdict(list)
    running: dict[str, list[int]] = defaultdict(list)
    names = [c.name for c in snapshot.gpu_classes]
    for work in snapshot.workloads:
        if work.phase is Phase.RUNNING:
            running[work.gpu_class or ""].append(work.gpus)
            for place, members in work.placement.items():
                free[place] = free.get(place, 0) - members * work.gpus
        elif (line := waits.get(work.name)) is not None:
            for name in work.gpu_classes or names:
                waiting[name].append((work.gpus, line.reason.value))
    wanted = {name: wanted_member(waiting[name], running[name]) for name in names}
    found = dict.fromkeys(names, 0)
    for node in snapshot.nodes:
        if node.ready:
            found[node.gpu_class] += left_over(max(0, free[node.name]), wanted[node.gpu_class])
    return found
