"""Hourly usage of a simulated past: exact time means of step functions, by queue and class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scheduling.engine.model import MILLI, Plan
from scheduling.models import Cluster, Queue
from scheduling.models.ledger import Resolution
from workshop.demo.past.fragmentation import ScatterMeans
from workshop.demo.past.usage import Hour, above

HOUR_S = 3600
FIGURES = ("allocated_gpus", "fair_share_gpus", "pending_gpus", "nominal_gpus")
SAMPLE = (
    "queue", "gpu_class", "resolution", "start", "seconds", "used_gpus", "fragmented_gpus", "installed_gpus",
    "ready_gpus", *FIGURES,
)  # fmt: skip
"""Columns of a row, in their order."""


@dataclass(slots=True)
class _Track:
    """One queue and class: the values now, since when, and GPU-seconds by hour so far."""

    since_s: float
    values: list[float] = field(default_factory=lambda: [0.0] * len(FIGURES))
    hours: dict[int, list[float]] = field(default_factory=dict)

    def advance(self, now_s: float) -> None:
        while self.since_s < now_s:
            hour = int(self.since_s // HOUR_S)
            upto = min(now_s, (hour + 1) * HOUR_S)
            sums = self.hours.setdefault(hour, [0.0] * (len(FIGURES) + 1))
            for i, value in enumerate(self.values):
                sums[i] += value * (upto - self.since_s)
            sums[-1] += upto - self.since_s
            self.since_s = upto


class HourlyUsage:
    """Told of every plan and every change of what is held; ``rows`` gives the samples."""

    def __init__(self, cluster: Cluster) -> None:
        self._queues = {q.name: q for q in cluster.queues.all()}
        self._classes = {c.name: c for c in cluster.gpu_classes.all()}
        self._root = next(q.name for q in self._queues.values() if q.parent_id is None)
        self._tracks: dict[tuple[str, str], _Track] = {}
        self._installed: dict[str, int] = defaultdict(int)
        self._ready: dict[str, int] = defaultdict(int)
        by_id = {q.pk: q for q in self._queues.values()}
        self._lines = {q.name: _line(q.pk, by_id) for q in self._queues.values()}
        self._active: dict[Hour, float] | None = None
        self._scattered = ScatterMeans()

    def capacity(self, gpu_class: str, *, installed: int, ready: int) -> None:
        """What the cluster has of a class (milli-GPU), all the time."""
        self._installed[gpu_class], self._ready[gpu_class] = installed, ready

    def plan(self, now: datetime, plan: Plan) -> None:
        for queue, shares in plan.fair_share.items():
            for name, share in shares.items():
                track = self._track(queue or self._root, name, now)
                track.values[1:] = [share.fair_share, float(share.pending), float(share.nominal)]

    def hold(self, now: datetime, queue: str, gpu_class: str, gpus: int) -> None:
        """``gpus`` (milli, signed) more are held in ``queue``, and so in every queue above it."""
        for name in self._lines[queue]:
            self._track(name, gpu_class, now).values[0] += gpus

    def close(self, now: datetime) -> None:
        for track in self._tracks.values():
            track.advance(now.timestamp())

    def rows(
        self, active: Mapping[Hour, float] | None = None, scattered: ScatterMeans | None = None
    ) -> list[tuple[Any, ...]]:
        """The ``SAMPLE`` of each queue, class and hour. ``active``: GPU-seconds that leaves really used; None
        where nobody measured. ``scattered``: which free GPUs were of no use."""
        self._scattered = scattered or self._scattered
        self._active = None if active is None else above(active, self._lines)
        return [
            self._sample(queue, name, hour, sums)
            for (queue, name), track in self._tracks.items()
            for hour, sums in track.hours.items()
        ]

    def _track(self, queue: str, gpu_class: str, now: datetime) -> _Track:
        track = self._tracks.get((queue, gpu_class))
        if track is None:
            track = self._tracks[queue, gpu_class] = _Track(now.timestamp())
        track.advance(now.timestamp())
        return track

    def _sample(self, queue: str, gpu_class: str, hour: int, sums: list[float]) -> tuple[Any, ...]:
        seconds = sums[-1]
        allocated, *means = (total / seconds for total in sums[:-1])
        is_root = queue == self._root
        start = datetime.fromtimestamp(hour * HOUR_S, UTC)
        used = None
        if self._active is not None:
            active_s = self._active.get((queue, gpu_class, start), 0.0)
            used = min(MILLI * active_s / seconds, allocated)
        return (
            self._queues[queue], self._classes[gpu_class], Resolution.HOUR, start, max(1, round(seconds)),
            used, self._scattered.mean(gpu_class, start) if is_root else None,
            self._installed[gpu_class] if is_root else 0, self._ready[gpu_class] if is_root else 0,
            allocated, *means,
        )  # fmt: skip


def _line(pk: int, by_id: dict[int, Queue]) -> tuple[str, ...]:
    """Names from a queue up to the root."""
    names = []
    above: int | None = pk
    while above is not None:
        queue = by_id[above]
        names.append(queue.name)
        above = queue.parent_id
    return tuple(names)
