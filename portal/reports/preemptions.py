"""Preemptions: what was evicted, by which rule, for whom, and how much work that threw away."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.display.periods import Periods, epochs
from portal.display.spread import Spread, share
from portal.reports import samples
from portal.reports.filters import ReportFilters
from portal.reports.held import workload_filter
from portal.reports.scope import Scope, Unit, report_scope
from portal.reports.utilization import allocated_gpu_hours
from scheduling.models import Cluster, Eviction, EvictionRule

RULES = tuple(EvictionRule.values)
BETWEEN = (EvictionRule.RECLAIM.value, EvictionRule.PREEMPT.value)
"""Rules by which somebody else's wait caused it."""
SHOWN = 7
"""Queues with a line of their own in the matrix; the rest are one line."""
OTHERS = "(others)"
OUTSIDE = "(outside)"
"""Queues that the person may not see, as one name. No queue can be called so."""


@dataclass(frozen=True)
class Matrix:
    """Reclaims and preemptions, evicted queue (row) for asking queue (column)."""

    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    reclaims: int
    preempts: int

    @property
    def row_sums(self) -> tuple[int, ...]:
        return tuple(sum(row) for row in self.counts)

    @property
    def column_sums(self) -> tuple[int, ...]:
        return tuple(sum(column) for column in zip(*self.counts, strict=True))

    @property
    def total(self) -> int:
        return sum(self.row_sums)

    @property
    def highest(self) -> int:
        return max((cell for row in self.counts for cell in row), default=0)


@dataclass(frozen=True)
class QueueLoss:
    name: str
    path: str
    evictions: int
    caused: int
    """Of them, reclaims and preemptions."""
    lost: float
    """GPU-hours."""
    share: float | None
    """Of all that was lost."""


@dataclass(frozen=True)
class PreemptionsReport:
    """GPU-hours are those of whole GPUs; ``unit`` says what a slice counts."""

    filters: ReportFilters
    unit: Unit
    count: int
    count_before: int | None
    """In the period before; None when not asked for or too little is known."""
    lost: float
    allocated: float
    each: Spread
    """GPU-hours lost per eviction."""
    asked_ratio: float | None
    """GPUs evicted for each GPU asked for, over all reclaims and preemptions that say for whom."""
    asked_worst: float | None
    """The same of the worst single request."""
    asked_bound: float | None
    """What the policy allows; None is no bound."""
    periods: Periods
    by_rule: dict[str, tuple[int, ...]]
    """Evictions of each rule, by period."""
    matrix: Matrix
    queues: tuple[QueueLoss, ...]

    @property
    def is_empty(self) -> bool:
        return not self.count

    @property
    def lost_share(self) -> float | None:
        """Of what was allocated."""
        return share(self.lost, self.allocated)

    def rule_count(self, rule: str) -> int:
        return sum(self.by_rule[rule])

    def tables(self) -> tuple[Table, ...]:
        return (_day_table(self), _matrix_table(self), _queue_table(self))

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "preemptions",
            "filters": self.filters.as_dict(),
            "note": self.unit.note,
            "evictions": self.count,
            "evictions_before": self.count_before,
            "lost_gpu_hours": round(self.lost, 3),
            "allocated_gpu_hours": round(self.allocated, 3),
            "lost_share_of_allocated": self.lost_share,
            "lost_per_eviction_gpu_hours": self.each.as_dict(),
            "evicted_per_asked_gpu": {
                "mean": self.asked_ratio,
                "worst": self.asked_worst,
                "bound": self.asked_bound,
            },
            "period": self.periods.unit,
            **{table.name: table.as_dicts() for table in self.tables()},
        }


class _Row(NamedTuple):
    """One eviction; fields in the order of COLUMNS."""

    at: datetime
    rule: str
    queue: int | None
    for_queue: int | None
    gpu_class: int
    gpus: int
    asked: int
    lost_gpu_s: float
    cycle: int | None
    for_workload: int | None


COLUMNS = (
    "at", "rule", "queue_id", "for_queue_id", "gpu_class_id", "gpus", "asked_gpus",
    "lost_gpu_s", "cycle_id", "for_workload_id",
)  # fmt: skip


def preemptions(cluster: Cluster, filters: ReportFilters, user: User) -> PreemptionsReport:
    """What was evicted from the queues that ``user`` may see, in the range of ``filters``.

    Raises:
        Http404: the person has no queue in the cluster.
        ValidationError: the filters name a queue or class that is not there to see.
    """
    scope = report_scope(cluster, filters, user)
    rows = _rows(scope, filters)
    weights = scope.unit.weights
    lost = np.array([row.lost_gpu_s / 3600 * weights[row.gpu_class] for row in rows])
    periods = Periods.of(filters.start, filters.end, filters.tz)
    ratio, worst = _per_asked(rows)
    return PreemptionsReport(
        filters=filters,
        unit=scope.unit,
        count=len(rows),
        count_before=_count_before(scope, filters),
        lost=float(lost.sum()),
        allocated=allocated_gpu_hours(scope, filters),
        each=Spread.of(lost),
        asked_ratio=ratio,
        asked_worst=worst,
        asked_bound=cluster.eviction_cap,
        periods=periods,
        by_rule=_by_rule(rows, periods),
        matrix=_matrix(scope, rows),
        queues=_losses(scope, rows, lost.tolist()),
    )


def _evictions(scope: Scope, filters: ReportFilters) -> Any:
    return Eviction.objects.filter(
        workload_filter(filters, "workload__"),
        queue__in=list(scope.queues),
        gpu_class__in=list(scope.classes),
        at__gte=filters.start,
        at__lt=filters.end,
    ).order_by("at", "pk")


def _count_before(scope: Scope, filters: ReportFilters) -> int | None:
    before = filters.before()
    if not filters.compare or not samples.is_known(scope, before):
        return None
    return int(_evictions(scope, before).count())


def _rows(scope: Scope, filters: ReportFilters) -> list[_Row]:
    return [_Row._make(values) for values in _evictions(scope, filters).values_list(*COLUMNS)]


def _per_asked(rows: Sequence[_Row]) -> tuple[float | None, float | None]:
    """(mean, worst) of GPUs evicted per GPU asked. One request may have several victims."""
    evicted: dict[tuple[int | None, int | None], int] = defaultdict(int)
    asked: dict[tuple[int | None, int | None], int] = {}
    for row in rows:
        if row.rule in BETWEEN and row.asked > 0:
            request = row.cycle, row.for_workload
            evicted[request] += row.gpus
            asked[request] = row.asked
    if not asked:
        return None, None
    ratios = [evicted[request] / asked[request] for request in asked]
    return sum(evicted.values()) / sum(asked.values()), max(ratios)


def _by_rule(rows: Sequence[_Row], periods: Periods) -> dict[str, tuple[int, ...]]:
    index = periods.index(epochs([row.at for row in rows]))
    rules = np.array([row.rule for row in rows], dtype=object)
    count = len(periods.starts)
    return {
        rule: tuple(np.bincount(index[rules == rule], minlength=count).tolist()) for rule in RULES
    }


def _matrix(scope: Scope, rows: Sequence[_Row]) -> Matrix:
    pairs: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.rule in BETWEEN:
            pairs[_name(scope, row.queue), _name(scope, row.for_queue)] += 1
    names = _shown(pairs)
    folded: Counter[tuple[str, str]] = Counter()
    for (evicted, asking), count in pairs.items():
        folded[_fold(evicted, names), _fold(asking, names)] += count
    counts = tuple(tuple(folded[row, column] for column in names) for row in names)
    rules = Counter(row.rule for row in rows)
    return Matrix(names, counts, rules[EvictionRule.RECLAIM], rules[EvictionRule.PREEMPT])


def _name(scope: Scope, queue: int | None) -> str:
    known = None if queue is None else scope.queues.get(queue)
    return known.name if known else OUTSIDE


def _shown(pairs: Counter[tuple[str, str]]) -> tuple[str, ...]:
    """The queues most involved, most first by what was taken; then the rest as one, then outside."""
    involved: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for (evicted, asking), count in pairs.items():
        involved[evicted] += count
        involved[asking] += count if asking != evicted else 0
        taken[evicted] += count
    outside = involved.pop(OUTSIDE, 0)
    ranked = sorted(involved, key=lambda name: (-involved[name], name))
    kept = ranked if len(ranked) <= SHOWN + 1 else ranked[:SHOWN]
    kept = sorted(kept, key=lambda name: (-taken[name], name))
    rest = [OTHERS] if len(ranked) > len(kept) else []
    return (*kept, *rest, *([OUTSIDE] if outside else []))


def _fold(name: str, shown: tuple[str, ...]) -> str:
    return name if name in shown else OTHERS


def _losses(scope: Scope, rows: Sequence[_Row], lost: Sequence[float]) -> tuple[QueueLoss, ...]:
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row, hours in zip(rows, lost, strict=True):
        assert row.queue is not None  # noqa: S101 - rows are chosen by queue
        own = sums[row.queue]
        own[0] += 1
        own[1] += row.rule in BETWEEN
        own[2] += hours
    total = sum(lost)
    losses = [
        QueueLoss(
            scope.queues[pk].name,
            scope.queues[pk].path,
            int(n),
            int(caused),
            hours,
            share(hours, total),
        )
        for pk, (n, caused, hours) in sums.items()
    ]
    return tuple(sorted(losses, key=lambda row: (-row.lost, row.path)))


def _day_table(report: PreemptionsReport) -> Table:
    rows: list[list[Cell]] = [
        [start, *(report.by_rule[rule][i] for rule in RULES)]
        for i, start in enumerate(report.periods.starts)
    ]
    return Table("days", f"Evictions by {report.periods.unit} and rule", ("start", *RULES), rows)


def _matrix_table(report: PreemptionsReport) -> Table:
    matrix = report.matrix
    rows = [
        (evicted, asking, matrix.counts[i][j])
        for i, evicted in enumerate(matrix.names)
        for j, asking in enumerate(matrix.names)
        if matrix.counts[i][j]
    ]
    columns = ("evicted_from", "for", "evictions")
    return Table("matrix", "Reclaims and preemptions, who for whom", columns, rows)


def _queue_table(report: PreemptionsReport) -> Table:
    rows = [(q.path, q.evictions, q.caused, round(q.lost, 3), q.share) for q in report.queues]
    columns = ("queue", "evictions", "reclaims_and_preemptions", "lost_gpu_hours", "share_of_lost")
    return Table("queues", "GPU-hours lost by evicted queue", columns, rows)
