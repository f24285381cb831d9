"""Real use: what of the allocated GPUs was really used, which idle now, and what work asked for against it.

*Nothing ran* is the time of spells in which a workload's GPUs idled for as long as the policy tells of it, or
longer, as far as it lies in the range; *partly used* is the rest of what was held and not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db.models import F, Q, QuerySet

from portal.accounts.models import User
from portal.display.csv import Table
from portal.display.periods import Floats, Periods
from portal.display.spread import share
from portal.reports import prices, samples, timelines
from portal.reports.filters import ReportFilters
from portal.reports.requests_and_use import AskedRow, asked_against_used
from portal.reports.scope import Scope, report_scope
from portal.reports.showback import idle_cost
from portal.reports.timelines import workload_filter
from portal.reports.usage import Readings, Usage
from portal.reports.utilization import allocated_gpu_hours, before
from portal.teams.access import sees_everything, visible_workloads
from scheduling.models import MILLI, Cluster, IdleEnd, IdleSpell
from scheduling.models.workloads import HOLDING
from scheduling.services.ledger.holds import Hold, charged
from scheduling.services.ledger.prices import Change
from scheduling.services.workloads.idle import culled_at, going_on

SHOWN = 12


@dataclass(frozen=True, slots=True)
class IdleRow:
    """A spell that goes on; ``cost`` so far and ``per_hour`` are None where the person reads no costs."""

    spell: IdleSpell
    for_s: float
    cost: float | None
    per_hour: float | None
    culled: datetime | None


@dataclass(slots=True)
class WonBack:
    """By ``spells`` whose run time had been predicted; GPU-hours of whole GPUs."""

    spells: int
    gpu_hours: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Nudges:
    """What became of spells that were told of in the range."""

    count: int
    given_back: int
    used: int
    culled: int
    kept_on_purpose: int
    going_on: int
    won_back: WonBack | None

    def of_all(self, count: int) -> float | None:
        return share(count, self.count)


@dataclass(frozen=True, slots=True)
class Day:
    """Mean GPUs in one period."""

    start: datetime
    ready: float
    used: float
    partly: float
    nothing: float


@dataclass(frozen=True)
class UseReport:
    """GPU-hours are of whole GPUs; ``money`` where the person may read costs."""

    filters: ReportFilters
    cluster: Cluster
    total: Usage
    before: Usage | None
    nothing: float
    """GPU-hours on which nothing ran."""
    idle_cost: float | None
    now: tuple[IdleRow, ...]
    """Of work that the person may see, the costliest first."""
    hidden: int
    """Spells of work that the person may not see."""
    periods: Periods
    days: tuple[Day, ...]
    nudges: Nudges
    requests: tuple[AskedRow, ...]

    @property
    def is_empty(self) -> bool:
        return not self.total.is_measured and not self.now

    @property
    def used_share_before(self) -> float | None:
        """None where it is not asked for, or too little of it was measured."""
        return self.before.used_share_beside(self.total) if self.before else None

    @property
    def partly(self) -> float:
        return max(0.0, self.total.idle - self.nothing)

    @property
    def measured_share(self) -> float | None:
        return self.total.measured_share

    def tables(self) -> tuple[Table, ...]:
        return (_now_table(self), _asked_table(self), _days_table(self))

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "use",
            "filters": self.filters.as_dict(),
            "allocated_gpu_hours": round(self.total.allocated, 3),
            "measured_gpu_hours": round(self.total.measured, 3),
            "used_gpu_hours": round(self.total.used, 3),
            "nothing_ran_gpu_hours": round(self.nothing, 3),
            "partly_used_gpu_hours": round(self.partly, 3),
            "won_back_gpu_hours": (
                round(self.nudges.won_back.gpu_hours, 3) if self.nudges.won_back else None
            ),
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def use(cluster: Cluster, filters: ReportFilters, user: User) -> UseReport:
    """What ``user`` may see of the real use of ``cluster`` in the range. Raises as ``utilization``."""
    scope = report_scope(cluster, filters, user)
    readings = timelines.read(scope, filters) if filters.by_work else samples.read(scope, filters)
    weights = scope.unit.weights
    total = sum((u.weighed(weights[pk]) for pk, u in readings.classes.items()), Usage())
    total = total.charged(allocated_gpu_hours(scope, filters))
    spells = _spells(scope, filters)
    reads_costs = prices.may_read(user, scope)
    periods = Periods.of(filters.start, filters.end, filters.tz)
    nothing = _nothing(scope, filters, spells, periods)
    now, hidden = _now(scope, filters, user, reads_costs=reads_costs)
    return UseReport(
        filters=filters,
        cluster=cluster,
        total=total,
        before=before(scope, filters) if filters.compare else None,
        nothing=min(float(nothing.sum()), total.idle),
        idle_cost=idle_cost(scope, filters) if reads_costs else None,
        now=now,
        hidden=hidden,
        periods=periods,
        days=_days(scope, readings, periods, nothing),
        nudges=_nudges(scope, spells),
        requests=asked_against_used(scope, filters, user, reads_costs=reads_costs),
    )


def _spells(scope: Scope, filters: ReportFilters) -> list[IdleSpell]:
    """As long as is told of, and in the range in part."""
    rows = IdleSpell.objects.filter(
        Q(until=None) | Q(until__gt=filters.start),
        workload_filter(filters, "workload__"),
        workload__queue__in=list(scope.leaves),
        gpu_class__in=list(scope.classes),
        since__lt=filters.end,
    )
    least = timedelta(seconds=scope.cluster.idle_after_s)
    now = scope.cluster.now()
    known = rows.annotate(
        predicted_s=F("workload__prediction__told_p50_s"), began=F("workload__started_at")
    )
    return [row for row in known if (row.until or now) - row.since >= least]


def _nothing(
    scope: Scope, filters: ReportFilters, spells: Sequence[IdleSpell], periods: Periods
) -> Floats:
    """GPU-hours of each period on which nothing ran."""
    edges = [edge.timestamp() for edge in periods.edges]
    found = np.zeros(len(periods.starts))
    now = scope.cluster.now()
    for row in spells:
        begin = max(row.since, filters.start).timestamp()
        end = min(row.until or now, filters.end).timestamp()
        gpus = row.gpus / MILLI * scope.unit.weights[row.gpu_class_id]
        inside = np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin)
        found += np.clip(inside, 0.0, None) * gpus / 3600
    return found


def _now(
    scope: Scope, filters: ReportFilters, user: User, *, reads_costs: bool
) -> tuple[tuple[IdleRow, ...], int]:
    cluster, now = scope.cluster, scope.cluster.now()
    told_from = now - timedelta(seconds=cluster.idle_after_s)
    rows = going_on(cluster).filter(
        workload_filter(filters, "workload__"),
        workload__queue__in=list(scope.leaves),
        workload__state__in=HOLDING,
        gpu_class__in=list(scope.classes),
        since__lte=told_from,
    )
    mine = rows.filter(workload__in=visible_workloads(user))
    total = None if sees_everything(user) else rows.count()
    if total == 0:
        return (), 0
    changes = prices.changes_in(scope) if reads_costs else None
    found = [_row(scope, spell, now, changes) for spell in _joined(mine)]
    found.sort(key=lambda row: (-(row.cost or 0.0), -row.for_s * row.spell.gpus, row.spell.pk))
    return tuple(found), 0 if total is None else max(0, total - len(found))


def _joined(rows: QuerySet[IdleSpell]) -> QuerySet[IdleSpell]:
    return rows.select_related("workload__queue", "workload__cluster", "gpu_class")


def _row(
    scope: Scope, spell: IdleSpell, now: datetime, changes: Sequence[Change] | None
) -> IdleRow:
    """Its cost at the ``changes`` of prices, where the person reads them."""
    hold = Hold(spell.gpu_class_id, spell.since, now, spell.gpus / MILLI)
    per_hour = float(spell.gpu_class.price_per_gpu_hour) * hold.gpus
    return IdleRow(
        spell,
        (now - spell.since).total_seconds(),
        None if changes is None else charged([hold], scope.classes, changes),
        None if changes is None else per_hour,
        culled_at(spell, scope.cluster, now),
    )


def _days(scope: Scope, readings: Readings, periods: Periods, nothing: Floats) -> tuple[Day, ...]:
    """Means over the hours of each period; what nobody measured counts as partly used."""
    if not len(readings.starts_s):
        return ()
    which = periods.index(readings.starts_s)
    count, covered = len(periods.starts), readings.covered_s
    seconds = np.bincount(which, covered, count)
    sums = {name: np.zeros(count) for name in ("capacity", "allocated", "used")}
    for pk, line in readings.lines.items():
        weight = scope.unit.weights[pk]
        for name in sums:
            gpus = np.nan_to_num(getattr(line, name)) * weight
            sums[name] += np.bincount(which, gpus * covered, count)
    found = []
    for i, start in enumerate(periods.starts):
        if not seconds[i]:
            continue
        ready, allocated, used = (
            sums[n][i] / seconds[i] for n in ("capacity", "allocated", "used")
        )
        idle = max(0.0, allocated - used)
        none = min(idle, nothing[i] * 3600 / seconds[i])
        found.append(Day(start, ready, used, idle - none, none))
    return tuple(found)


def _nudges(scope: Scope, spells: Sequence[IdleSpell]) -> Nudges:
    nudges = [row for row in spells if row.told]
    ended = [row.ended for row in nudges]
    count = sum(row.kept_until is not None for row in nudges)
    return Nudges(
        count=len(nudges),
        given_back=ended.count(IdleEnd.GIVEN_BACK),
        used=ended.count(IdleEnd.USED),
        culled=ended.count(IdleEnd.CULLED),
        kept_on_purpose=count,
        going_on=ended.count(""),
        won_back=_won_back(scope, nudges),
    )


def _won_back(scope: Scope, nudges: Iterable[Any]) -> WonBack | None:
    """From when each was given back or culled until the P50 of its run time, as predicted before it ran; None
    where none of them was. What was used again won nothing."""
    known = [
        (row, row.began + timedelta(seconds=row.predicted_s) - row.until)
        for row in nudges
        if row.ended in {IdleEnd.GIVEN_BACK, IdleEnd.CULLED}
        and row.predicted_s is not None
        and row.began is not None
    ]
    if not known:
        return None
    won = WonBack(len(known))
    for row, left in known:
        hours = max(0.0, left.total_seconds()) / 3600 * float(row.gpus) / MILLI
        gpu_class = scope.classes[row.gpu_class_id]
        won.gpu_hours += hours * scope.unit.weights[gpu_class.pk]
        won.cost += hours * float(gpu_class.price_per_gpu_hour)
    return won


def _days_table(report: UseReport) -> Table:
    columns = ("start", "ready_gpus", "used_gpus", "partly_used_gpus", "nothing_ran_gpus")
    rows = [(day.start, day.ready, day.used, day.partly, day.nothing) for day in report.days]
    return Table("days", "Mean GPUs by period", columns, rows)


def _now_table(report: UseReport) -> Table:
    columns = (
        "workload", "user", "queue", "gpus", "gpu_class", "idle_since", "idle_s", "memory_mib",
        "cost", "cost_per_hour", "told_at", "culled_at",
    )  # fmt: skip
    rows = [
        (
            row.spell.workload.name, row.spell.workload.user, row.spell.workload.queue_label,
            row.spell.gpus / MILLI, row.spell.gpu_class.name, row.spell.since, row.for_s,
            row.spell.memory_mib, row.cost, row.per_hour, row.spell.told_at, row.culled,
        )
        for row in report.now
    ]  # fmt: skip
    return Table("idle_now", "Held and idle now", columns, rows)


def _asked_table(report: UseReport) -> Table:
    columns = (
        "name", "queue", "people", "runs", "gpus", "gpu_class", "gpu_hours", "memory_mib",
        "memory_total_mib", "activity", "would_do", "saves",
    )  # fmt: skip
    rows = [
        (
            row.name, row.queue, row.people, row.runs, row.gpus, row.gpu_class, row.gpu_hours,
            row.memory_mib, row.memory_total_mib, row.activity, row.would_do, row.saves,
        )
        for row in report.requests
    ]  # fmt: skip
    return Table("asked", "Asked for against used", columns, rows)
