"""The last hours of the engine on one axis: how long its cycles took, what they decided, and when it was
paused or only looked on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from django.db.models import Count

from scheduling.models import Action, Cluster, ClusterMode, Cycle, Decision

SPAN = timedelta(hours=6)
SLOT = timedelta(minutes=10)
LINES = 500
"""Of the cluster's history: more edits than anybody makes in those hours."""
CHANGES = (Action.GROW, Action.SHRINK, Action.MOVE)
"""Acts on running work that neither start nor end it."""


@dataclass(slots=True)
class Slot:
    """What cycles took and decided in ten minutes; ``changed`` is grown, shrunk, moved."""

    start: datetime
    cycles: int = 0
    took_ms: list[float] = field(default_factory=list)
    """Of those that were measured."""
    lag_s: float | None = None
    """The longest that the picture of one of them had been out of touch with the cluster."""
    started: int = 0
    changed: int = 0
    evicted: int = 0

    @property
    def half_ms(self) -> float | None:
        return median(self.took_ms) if self.took_ms else None

    @property
    def slowest_ms(self) -> float | None:
        return max(self.took_ms, default=None)

    @property
    def decisions(self) -> int:
        return self.started + self.changed + self.evicted


@dataclass(frozen=True, slots=True)
class Standstill:
    """From ``start`` to ``end`` nothing was written to the cluster: ``mode`` is observe or paused."""

    start: datetime
    end: datetime
    mode: ClusterMode


@dataclass(frozen=True, slots=True)
class Hours:
    """``slowest`` is (milliseconds, when, number) of the slowest cycle; None where none was measured."""

    start: datetime
    end: datetime
    slots: Sequence[Slot]
    standstills: Sequence[Standstill]
    slowest: tuple[float, datetime, int] | None

    @property
    def is_empty(self) -> bool:
        return not any(slot.cycles for slot in self.slots)

    @property
    def newest_first(self) -> list[Slot]:
        return list(reversed(self.slots))


def hours_of(cluster: Cluster) -> Hours:
    """In the cluster's own time. Three queries."""
    end = cluster.now()
    start = _floor(end - SPAN)
    count = -(-(end - start) // SLOT)
    slots = [Slot(start + i * SLOT) for i in range(count)]
    cycles = Cycle.objects.filter(cluster=cluster, at__gte=start, at__lt=end).order_by("at")
    rows = list(cycles.values_list("took_ms", "at", "number", "admitted", "evicted", "lag_s"))
    for took_ms, at, _, admitted, evicted, lag_s in rows:
        slot = slots[(at - start) // SLOT]
        slot.cycles += 1
        slot.took_ms += [took_ms] if took_ms else []
        slot.started += admitted
        slot.evicted += evicted
        if lag_s is not None:
            slot.lag_s = max(lag_s, slot.lag_s or 0.0)
    for at, acts in _changes(cluster, start, end):
        slots[(at - start) // SLOT].changed += acts
    slowest = max((row[:3] for row in rows if row[0]), default=None)
    return Hours(start, end, slots, list(_standstills(cluster, start, end)), slowest)


def _floor(at: datetime) -> datetime:
    """The slot that ``at`` lies in begins then: an even time on any clock."""
    return at.replace(minute=at.minute // 10 * 10, second=0, microsecond=0)


def _changes(cluster: Cluster, start: datetime, end: datetime) -> Iterable[tuple[datetime, int]]:
    acts = Decision.objects.filter(
        cycle__cluster=cluster, cycle__at__gte=start, cycle__at__lt=end, action__in=CHANGES
    )
    return acts.order_by().values_list("cycle__at").annotate(Count("pk"))


def _standstills(cluster: Cluster, start: datetime, end: datetime) -> Iterator[Standstill]:
    """Spans in which it was paused or observed, from the history of its mode."""
    lines = cluster.history.order_by("-history_date", "-history_id")[:LINES]
    turns: list[tuple[datetime, ClusterMode]] = []
    for date, mode in reversed(lines.values_list("history_date", "mode")):
        if not turns or turns[-1][1] != mode:
            turns.append((_own_time(cluster, date), ClusterMode(mode)))
    ends = [at for at, _ in turns[1:]] + [end]
    for (began, mode), ended in zip(turns, ends, strict=True):
        if mode != ClusterMode.ENFORCE and ended > start:
            yield Standstill(max(began, start), min(ended, end), mode)


def _own_time(cluster: Cluster, at: datetime) -> datetime:
    """A real moment on the cluster's clock."""
    if cluster.clock_real is None or cluster.clock_start is None:
        return at
    return cluster.clock_start + (at - cluster.clock_real) * cluster.clock_speed
