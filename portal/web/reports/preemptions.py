"""What the page of preemptions shows: who evicted whom, down to the single evictions behind each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.display.adding_up import hours_column, percent_column
from portal.display.format import counted, hours, money, number, whole_money
from portal.reports.evictions import FEW, SHOWN
from portal.reports.figures import preemptions as figures
from portal.reports.filters import OTHERS, OUTSIDE, ReportFilters
from portal.reports.matrix import Matrix
from portal.reports.preemptions import PreemptionsReport
from portal.web.reports.pages import SHADES, Meter, part_of


@dataclass(frozen=True, slots=True)
class MatrixCell:
    count: int
    shade: int
    """0 empty, 1 to SHADES by count."""
    own: bool
    """Evicted for the same queue."""
    title: str
    """What was lost."""
    url: str
    """Where its single evictions are told; empty where they are of many queues."""
    is_chosen: bool


def preemptions_page(
    report: PreemptionsReport, *, show_all: bool = False, **_: object
) -> dict[str, Any]:
    days = report.filters.span.total_seconds() / 86400
    most = max((row.lost for row in report.queues), default=0.0)
    rules = [rule for rule in report.by_rule if report.rule_count(rule)]
    lost = hours_column([row.lost for row in report.queues], report.lost)
    shares = percent_column([row.share for row in report.queues])
    currency = report.evicted.scope.cluster.currency
    return {
        "currency": currency,
        "cost": None if report.cost is None else money(report.cost, currency),
        "per_day": number(report.count / days, 1),
        "figure": figures.by_rule(report),
        "rules": [figures.rule_name(rule) for rule in rules],
        "rule_totals": [report.rule_count(rule) for rule in rules],
        "day_rows": [
            (start, [report.by_rule[rule][i] for rule in rules])
            for i, start in enumerate(report.periods.starts)
        ],
        "matrix_rows": _matrix_rows(report.matrix, report.filters, currency),
        "queue_rows": [
            (row, Meter(part_of(row.lost, most)), hours_lost, of_all)
            for row, hours_lost, of_all in zip(report.queues, lost.parts, shares.parts, strict=True)
        ],
        "lost": lost.total,
        **_singles(report, show_all=show_all),
    }


def _singles(report: PreemptionsReport, *, show_all: bool) -> Mapping[str, Any]:
    filters = report.filters
    is_narrowed = bool(filters.evicted or filters.asking)
    count = SHOWN if is_narrowed or show_all else FEW
    again = report.evicted.again()
    return {
        "singles": report.evicted.newest(count),
        "singles_count": report.evicted.count() if is_narrowed else report.count,
        "singles_of": _pair(filters),
        "singles_shown": count,
        "all_pairs": f"?{filters.query(evicted='', **{'for': ''})}#singles",
        "again": again if show_all else again[:FEW],
        "more_again": not show_all and len(again) > FEW,
    }


def _pair(filters: ReportFilters) -> str:
    """'of pretraining, for alignment'; empty where all are told."""
    parts = [f"of {filters.evicted}"] if filters.evicted else []
    if filters.asking:
        parts.append(f"for {_outside(filters.asking)}")
    return ", ".join(parts)


def _outside(name: str) -> str:
    return "queues that you may not see" if name == OUTSIDE else name


def _matrix_rows(
    matrix: Matrix, filters: ReportFilters, currency: str
) -> list[tuple[str, list[MatrixCell], int]]:
    return [
        (
            name,
            [_cell(matrix, i, j, filters, currency) for j in range(len(matrix.names))],
            matrix.row_sums[i],
        )
        for i, name in enumerate(matrix.names)
    ]


def _cell(matrix: Matrix, i: int, j: int, filters: ReportFilters, currency: str) -> MatrixCell:
    evicted, asking, count = matrix.names[i], matrix.names[j], matrix.counts[i][j]
    lost = f"{hours(matrix.lost[i][j])} GPU-hours"
    if matrix.costs is not None:
        lost += f", {whole_money(matrix.costs[i][j], currency)}"
    is_many = OTHERS in {evicted, asking}
    return MatrixCell(
        count=count,
        shade=-(-count * SHADES // matrix.highest) if count else 0,
        own=i == j and evicted not in {OTHERS, OUTSIDE},
        title=f"{counted(count, 'eviction')} of {evicted} for {asking}: {lost} lost",
        url="" if is_many else f"?{filters.query(evicted=evicted, **{'for': asking})}#singles",
        is_chosen=(filters.evicted, filters.asking) == (evicted, asking),
    )
