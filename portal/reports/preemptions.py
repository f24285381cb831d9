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
from portal.reports.evicted import Evicted, Prices, evictions_in, money_of
from portal.reports.filters import OTHERS, OUTSIDE, ReportFilters
from portal.reports.scope import Scope, Unit, report_scope
from portal.reports.utilization import allocated_gpu_hours
from scheduling.models import Cluster, EvictionRule
from scheduling.services.words.rules import IN_VAIN, label_of

RULES = tuple(EvictionRule.values)
BETWEEN = (EvictionRule.RECLAIM.value, EvictionRule.PREEMPT.value)
"""Rules by which somebody else's wait caused it."""
SHOWN = 7
"""Queues with a line of their own in the matrix; the rest are one line."""


@dataclass(frozen=True)
class Matrix:
    """Reclaims and preemptions, evicted queue (row) for asking queue (column)."""

    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    lost: tuple[tuple[float, ...], ...]
    """GPU-hours."""
    costs: tuple[tuple[float, ...], ...] | None
    """Of what was lost; None where the person reads no costs."""
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
    cost: float | None
    """Of what was lost; None where the person reads no costs."""


@dataclass(frozen=True)
class RuleLoss:
    """Evictions that one row of the rules allowed; ``in_vain`` of them made room for work that did not get
    it. GPU-hours."""

    rule: str
    evictions: int
    lost: float
    in_vain: int
    lost_in_vain: float


@dataclass(frozen=True)
class PreemptionsReport:
    """GPU-hours are those of whole GPUs; ``unit`` says what a slice counts."""

    filters: ReportFilters
    unit: Unit
    count: int
    count_before: int | None
    """In the period before; None when not asked for or too little is known."""
    lost: float
    cost: float | None
    """Of what was lost, at the prices of the day; None where the person reads no costs."""
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
    rules: tuple[RuleLoss, ...]
    """By what let each go, most often first."""
    evicted: Evicted
    """The evictions one by one."""

    @property
    def is_empty(self) -> bool:
        return not self.count

    @property
    def lost_share(self) -> float | None:
        """Of what was allocated."""
        return share(self.lost, self.allocated)

    @property
    def in_vain(self) -> int:
        """Evictions that made room for work that did not get it."""
        return sum(row.in_vain for row in self.rules)

    @property
    def lost_in_vain(self) -> float:
        """GPU-hours."""
        return sum(row.lost_in_vain for row in self.rules)

    @property
    def in_vain_share(self) -> float | None:
        """Of all evictions."""
        return share(self.in_vain, self.count)

    def rule_count(self, rule: str) -> int:
        return sum(self.by_rule[rule])

    def tables(self) -> tuple[Table, ...]:
        return (
            _day_table(self),
            _matrix_table(self),
            _queue_table(self),
            _rule_table(self),
            self.evicted.table(),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "preemptions",
            "filters": self.filters.as_dict(),
            "note": self.unit.note,
            "evictions": self.count,
            "evictions_before": self.count_before,
            "lost_gpu_hours": round(self.lost, 3),
            **money_of(self.evicted.scope.cluster, self.cost),
            "allocated_gpu_hours": round(self.allocated, 3),
            "lost_share_of_allocated": self.lost_share,
            "in_vain": self.in_vain,
            "in_vain_lost_gpu_hours": round(self.lost_in_vain, 3),
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
    allowed_by: str
    in_vain: str


COLUMNS = (
    "at", "rule", "queue_id", "for_queue_id", "gpu_class_id", "gpus", "asked_gpus",
    "lost_gpu_s", "cycle_id", "for_workload_id", "allowed_by", "in_vain",
)  # fmt: skip


def preemptions(cluster: Cluster, filters: ReportFilters, user: User) -> PreemptionsReport:
    """What was evicted from the queues that ``user`` may see, in the range of ``filters``.

    Raises:
        Http404: the person has no queue in the cluster.
        ValidationError: the filters name a queue or class that is not there to see.
    """
    scope = report_scope(cluster, filters, user)
    rows = _rows(scope, filters)
    losses = Losses.of(scope, rows, known := Prices(scope, filters, user))
    lost = np.array(losses.hours)
    periods = Periods.of(filters.start, filters.end, filters.tz)
    ratio, worst = _per_asked(rows)
    return PreemptionsReport(
        filters=filters,
        unit=scope.unit,
        count=len(rows),
        count_before=_count_before(scope, filters),
        lost=float(lost.sum()),
        cost=None if losses.costs is None else sum(losses.costs),
        allocated=allocated_gpu_hours(scope, filters),
        each=Spread.of(lost),
        asked_ratio=ratio,
        asked_worst=worst,
        asked_bound=cluster.eviction_cap,
        periods=periods,
        by_rule=_by_rule(rows, periods),
        matrix=_matrix(scope, rows, losses),
        queues=_by_queue(scope, rows, losses),
        rules=_by_what_allowed(rows, losses),
        evicted=Evicted.of(scope, filters, user, known),
    )


@dataclass(frozen=True, slots=True)
class Losses:
    """What each eviction threw away: GPU-hours of whole GPUs, and their price where costs are read."""

    hours: list[float]
    costs: list[float] | None

    @classmethod
    def of(cls, scope: Scope, rows: Sequence[_Row], known: Prices) -> Losses:
        weights = scope.unit.weights
        hours = [row.lost_gpu_s / 3600 * weights[row.gpu_class] for row in rows]
        costs = [known.cost(row.gpu_class, row.at, row.lost_gpu_s) for row in rows]
        paid = [cost for cost in costs if cost is not None]
        return cls(hours, paid if len(paid) == len(rows) else None)

    def cost(self, i: int) -> float:
        return self.costs[i] if self.costs is not None else 0.0


def _count_before(scope: Scope, filters: ReportFilters) -> int | None:
    before = filters.before()
    if not filters.compare or not samples.is_known(scope, before):
        return None
    return evictions_in(scope, before).count()


def _rows(scope: Scope, filters: ReportFilters) -> list[_Row]:
    found = evictions_in(scope, filters).order_by("at", "pk")
    return [_Row._make(values) for values in found.values_list(*COLUMNS)]


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


def _matrix(scope: Scope, rows: Sequence[_Row], losses: Losses) -> Matrix:
    pairs = {
        i: (_name(scope, row.queue), _name(scope, row.for_queue))
        for i, row in enumerate(rows)
        if row.rule in BETWEEN
    }
    names = _top_queues(Counter(pairs.values()))
    cells: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for i, (evicted, asking) in pairs.items():
        cell = cells[_fold(evicted, names), _fold(asking, names)]
        cell[0] += 1
        cell[1] += losses.hours[i]
        cell[2] += losses.cost(i)
    counts, hours, costs = (
        tuple(tuple(cells[row, column][k] for column in names) for row in names) for k in range(3)
    )
    rules = Counter(row.rule for row in rows)
    return Matrix(
        names,
        tuple(tuple(map(int, row)) for row in counts),
        hours,
        None if losses.costs is None else costs,
        rules[EvictionRule.RECLAIM],
        rules[EvictionRule.PREEMPT],
    )


def _name(scope: Scope, queue: int | None) -> str:
    known = None if queue is None else scope.queues.get(queue)
    return known.name if known else OUTSIDE


def _top_queues(pairs: Counter[tuple[str, str]]) -> tuple[str, ...]:
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


def _by_queue(scope: Scope, rows: Sequence[_Row], losses: Losses) -> tuple[QueueLoss, ...]:
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for i, row in enumerate(rows):
        assert row.queue is not None  # noqa: S101 - rows are chosen by queue
        own = sums[row.queue]
        own[0] += 1
        own[1] += row.rule in BETWEEN
        own[2] += losses.hours[i]
        own[3] += losses.cost(i)
    total = sum(losses.hours)
    found = [
        QueueLoss(
            scope.queues[pk].name,
            scope.queues[pk].path,
            int(n),
            int(caused),
            hours,
            share(hours, total),
            None if losses.costs is None else cost,
        )
        for pk, (n, caused, hours, cost) in sums.items()
    ]
    return tuple(sorted(found, key=lambda row: (-row.lost, row.path)))


def _allowed(row: _Row) -> str:
    """'preempt: lower priority', by which the rows of the table add up to the chart's; its rule alone where
    nobody said which row of the rules it was."""
    rule, row_of_rules = EvictionRule(row.rule).label, label_of(row.rule, row.allowed_by)
    return rule if row_of_rules == rule else f"{rule}: {row_of_rules}"


def _by_what_allowed(rows: Sequence[_Row], losses: Losses) -> tuple[RuleLoss, ...]:
    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for row, hours in zip(rows, losses.hours, strict=True):
        found[_allowed(row)].append((hours, row.in_vain in IN_VAIN))
    return tuple(
        RuleLoss(
            rule=rule,
            evictions=len(own),
            lost=sum(hours for hours, _ in own),
            in_vain=sum(vain for _, vain in own),
            lost_in_vain=sum(hours for hours, vain in own if vain),
        )
        for rule, own in sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )


def _day_table(report: PreemptionsReport) -> Table:
    rows: list[list[Cell]] = [
        [start, *(report.by_rule[rule][i] for rule in RULES)]
        for i, start in enumerate(report.periods.starts)
    ]
    return Table("days", f"Evictions by {report.periods.unit} and rule", ("start", *RULES), rows)


def _matrix_table(report: PreemptionsReport) -> Table:
    matrix, unit = report.matrix, report.evicted.scope.cluster.currency.lower()
    rows = [
        (
            evicted,
            asking,
            matrix.counts[i][j],
            matrix.lost[i][j],
            matrix.costs[i][j] if matrix.costs is not None else None,
        )
        for i, evicted in enumerate(matrix.names)
        for j, asking in enumerate(matrix.names)
        if matrix.counts[i][j]
    ]
    columns = ("evicted_from", "for", "evictions", "lost_gpu_hours", f"lost_{unit}")
    return Table("matrix", "Reclaims and preemptions, who for whom", columns, rows)


def _queue_table(report: PreemptionsReport) -> Table:
    unit = report.evicted.scope.cluster.currency.lower()
    rows = [
        (q.path, q.evictions, q.caused, round(q.lost, 3), q.share, q.cost) for q in report.queues
    ]
    columns = (
        "queue", "evictions", "reclaims_and_preemptions", "lost_gpu_hours", "share_of_lost",
        f"lost_{unit}",
    )  # fmt: skip
    return Table("queues", "GPU-hours lost by evicted queue", columns, rows)


def _rule_table(report: PreemptionsReport) -> Table:
    rows = [
        (r.rule, r.evictions, round(r.lost, 3), r.in_vain, round(r.lost_in_vain, 3))
        for r in report.rules
    ]
    columns = ("allowed_by", "evictions", "lost_gpu_hours", "in_vain", "lost_in_vain_gpu_hours")
    return Table("rules", "Evictions by what allowed them, and in vain", columns, rows)
