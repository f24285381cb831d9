"""Preemptions: what was evicted, by which rule, for whom, and how much work that threw away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.display.periods import Periods, epochs
from portal.display.spread import Spread, share
from portal.reports import samples
from portal.reports.evictions import EvictionList, Prices, evictions_in, money_of
from portal.reports.filters import ReportFilters
from portal.reports.matrix import (
    BETWEEN,
    COLUMNS,
    EvictionRow,
    Losses,
    Matrix,
    matrix_of,
    matrix_table,
)
from portal.reports.scope import Scope, Unit, report_scope
from portal.reports.utilization import allocated_gpu_hours
from scheduling.models import Cluster, EvictionRule
from scheduling.services.words.rules import IN_VAIN, label_of

RULES = tuple(EvictionRule.values)


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
    evicted: EvictionList
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
            matrix_table(self.matrix, self.evicted.scope.cluster.currency),
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
        matrix=matrix_of(scope, rows, losses),
        queues=_by_queue(scope, rows, losses),
        rules=_by_what_allowed(rows, losses),
        evicted=EvictionList.of(scope, filters, user, known),
    )


def _count_before(scope: Scope, filters: ReportFilters) -> int | None:
    before = filters.before()
    if not filters.compare or not samples.is_known(scope, before):
        return None
    return evictions_in(scope, before).count()


def _rows(scope: Scope, filters: ReportFilters) -> list[EvictionRow]:
    found = evictions_in(scope, filters).order_by("at", "pk")
    return [EvictionRow._make(values) for values in found.values_list(*COLUMNS)]


def _per_asked(rows: Sequence[EvictionRow]) -> tuple[float | None, float | None]:
    """(mean, worst) of GPUs evicted per GPU asked. One request may have several victims."""
    evicted: dict[tuple[int | None, int | None], int] = defaultdict(int)
    requests: dict[tuple[int | None, int | None], int] = {}
    for row in rows:
        if row.rule in BETWEEN and row.need > 0:
            request = row.cycle, row.for_workload
            evicted[request] += row.gpus
            requests[request] = row.need
    if not requests:
        return None, None
    ratios = [evicted[request] / requests[request] for request in requests]
    return sum(evicted.values()) / sum(requests.values()), max(ratios)


def _by_rule(rows: Sequence[EvictionRow], periods: Periods) -> dict[str, tuple[int, ...]]:
    index = periods.index(epochs([row.at for row in rows]))
    rules = np.array([row.rule for row in rows], dtype=object)
    count = len(periods.starts)
    return {
        rule: tuple(np.bincount(index[rules == rule], minlength=count).tolist()) for rule in RULES
    }


def _by_queue(scope: Scope, rows: Sequence[EvictionRow], losses: Losses) -> tuple[QueueLoss, ...]:
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


def _allowed(row: EvictionRow) -> str:
    """'preempt: lower priority', by which the rows of the table add up to the chart's; its rule alone where
    nobody said which row of the rules it was."""
    rule, row_of_rules = EvictionRule(row.rule).label, label_of(row.rule, row.allowed_by)
    return rule if row_of_rules == rule else f"{rule}: {row_of_rules}"


def _by_what_allowed(rows: Sequence[EvictionRow], losses: Losses) -> tuple[RuleLoss, ...]:
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
