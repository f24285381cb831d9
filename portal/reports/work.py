"""What work held and how it ended: by user, by type, by outcome. What is over is rolled up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from portal.display.csv import Cell, Table
from portal.display.spread import share
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from scheduling.models import Outcome, WorkloadType
from scheduling.services.ledger import workdays
from scheduling.services.ledger.singles import Kin, Work, Worked, WorkFilter

Hours = Mapping[tuple[int, int], float]
"""GPU-hours by (queue, class), in whole GPUs."""

HOUR_S = 3600
NOBODY = "(nobody)"
"""Work that names no user."""
GPU_SECONDS = (
    "held_gpu_s", "measured_gpu_s", "active_gpu_s", "lost_gpu_s",
    "succeeded_gpu_s", "failed_gpu_s", "cancelled_gpu_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkRow:
    """The work of one user, or of one type; figures in whole GPUs."""

    name: str
    queues: tuple[str, ...]
    """Names, those that held most first."""
    work: Work

    @property
    def gpu_hours(self) -> float:
        """GPU-hours."""
        return self.work.held_gpu_s / HOUR_S

    @property
    def lost(self) -> float:
        return self.work.lost_gpu_s / HOUR_S

    @property
    def used_share(self) -> float | None:
        """Of what was measured; None where nobody measured."""
        return share(self.work.active_gpu_s, self.work.measured_gpu_s)

    @property
    def ended(self) -> int:
        return self.work.succeeded + self.work.failed + self.work.cancelled

    @property
    def failed_share(self) -> float | None:
        return share(self.work.failed, self.ended)

    @property
    def mean_wait_s(self) -> float | None:
        return self.work.waited_s / self.work.started if self.work.started else None


@dataclass(frozen=True, slots=True)
class EndedRow:
    """Work that had run and ended so: how many, and the GPU-hours of their whole lives."""

    outcome: Outcome
    count: int
    share: float | None
    gpu_hours: float
    held_share: float | None


@dataclass(frozen=True, slots=True)
class Breakdown:
    users: tuple[WorkRow, ...]
    """Most GPU-hours first."""
    types: tuple[WorkRow, ...]
    total: WorkRow

    @property
    def ended(self) -> tuple[EndedRow, ...]:
        """By outcome; empty where nothing ended."""
        work, count = self.total.work, self.total.ended
        hours = {o: float(getattr(work, f"{o.value}_gpu_s")) / HOUR_S for o in Outcome}
        every = sum(hours.values())
        counts = {o: int(getattr(work, o.value)) for o in Outcome}
        return tuple(
            EndedRow(o, counts[o], share(counts[o], count), hours[o], share(hours[o], every))
            for o in Outcome
            if count
        )

    def tables(self) -> tuple[Table, ...]:
        return (
            _table("users", "GPU-hours by user", "user", self.users),
            _table("types", "GPU-hours by type", "type", self.types),
            _ended_table(self.ended),
        )


def worked(scope: Scope, filters: ReportFilters, start: datetime, end: datetime) -> Worked:
    """Work of the scope in [start, end), in whole GPUs. Seven queries at most, and none for ``held`` then."""
    chosen = _chosen(scope, filters)
    return _known(scope, chosen, start, end, workdays.read)


def used(scope: Scope, filters: ReportFilters, start: datetime, end: datetime) -> Worked:
    """What was held, and what was measured of that, alone, in whole GPUs. Four queries, and none for ``held``
    then."""
    return _known(scope, _chosen(scope, filters), start, end, workdays.read_used)


def _known(
    scope: Scope, chosen: WorkFilter, start: datetime, end: datetime, read: Callable[..., Worked]
) -> Worked:
    found = read(scope.cluster, chosen, start, end)
    gpu_s = {kin: work.held_gpu_s for kin, work in found.items()}
    scope.once(("held", chosen, start, end), lambda: gpu_s)
    return _weighed(scope, found)


def gpu_seconds(
    scope: Scope, filters: ReportFilters, start: datetime, end: datetime
) -> dict[Kin, float]:
    """GPU-seconds held, alone, in whole GPUs. Three queries, once a scope."""
    chosen = _chosen(scope, filters)
    key = ("held", chosen, start, end)
    found = scope.once(key, lambda: workdays.read_held(scope.cluster, chosen, start, end))
    return {kin: gpu_s * scope.unit.weights[kin.gpu_class] for kin, gpu_s in found.items()}


def hours_held(gpu_s: Mapping[Kin, float]) -> Hours:
    """All that people and types held of each queue and class."""
    found: dict[tuple[int, int], float] = defaultdict(float)
    for kin, seconds in gpu_s.items():
        found[kin.queue, kin.gpu_class] += seconds / HOUR_S
    return found


def _chosen(scope: Scope, filters: ReportFilters) -> WorkFilter:
    return WorkFilter(tuple(scope.leaves), tuple(scope.classes), filters.user, filters.type)


def _weighed(scope: Scope, found: Worked) -> Worked:
    weights = scope.unit.weights
    for kin, work in found.items():
        if (weight := weights[kin.gpu_class]) != 1:
            for name in GPU_SECONDS:
                setattr(work, name, getattr(work, name) * weight)
    return found


def breakdown(scope: Scope, found: Worked) -> Breakdown:
    """Of what was ``worked``."""
    types = {t.value: t.value.capitalize() for t in WorkloadType}
    return Breakdown(
        users=_rows(scope, found, lambda kin: kin.user or NOBODY),
        types=_rows(scope, found, lambda kin: types[kin.type]),
        total=_row(scope, "All", found.items()),
    )


def _rows(scope: Scope, found: Worked, name_of: Callable[[Kin], str]) -> tuple[WorkRow, ...]:
    groups: dict[str, list[tuple[Kin, Work]]] = defaultdict(list)
    for kin, work in found.items():
        groups[name_of(kin)].append((kin, work))
    rows = [_row(scope, name, parts) for name, parts in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.gpu_hours, row.name)))


def _row(scope: Scope, name: str, parts: Iterable[tuple[Kin, Work]]) -> WorkRow:
    total, by_queue = Work(), defaultdict[str, float](float)
    for kin, work in parts:
        total.add(work)
        by_queue[scope.queues[kin.queue].name] += work.held_gpu_s
    return WorkRow(name, tuple(sorted(by_queue, key=lambda q: (-by_queue[q], q))), total)


def _table(name: str, title: str, key: str, rows: Iterable[WorkRow]) -> Table:
    columns = (
        key, "queues", "allocated_gpu_hours", "really_used_share_of_measured", "lost_gpu_hours",
        "started", "mean_wait_s", "succeeded", "failed", "cancelled", "evictions",
    )  # fmt: skip
    cells: list[tuple[Cell, ...]] = [
        (
            row.name, " ".join(row.queues), row.gpu_hours, row.used_share, row.lost, row.work.started,
            row.mean_wait_s, row.work.succeeded, row.work.failed, row.work.cancelled,
            row.work.evictions,
        )
        for row in rows
    ]  # fmt: skip
    return Table(name, title, columns, cells)


def _ended_table(rows: Iterable[EndedRow]) -> Table:
    columns = ("outcome", "workloads", "share", "gpu_hours", "share_of_gpu_hours")
    cells = [(r.outcome.value, r.count, r.share, r.gpu_hours, r.held_share) for r in rows]
    return Table("ended", "How work ended", columns, cells)
