"""What the page of showback shows: whole money, of which each row and each column adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from portal.accounts.models import User
from portal.display.adding_up import hours_column, shared_out
from portal.display.format import class_number, number, zone
from portal.display.spread import share
from portal.reports import words
from portal.reports.budgets import Spending, editable
from portal.reports.figures import budget as figures
from portal.reports.showback import ClassCosts, Money, QueueCosts, ShowbackReport, UserRow
from portal.web.reports.pages import Meter, part_of


@dataclass(frozen=True, slots=True)
class CostLine:
    """A leaf, or the sum of a department's: ``bar`` of charged, used in it full."""

    name: str
    leaf: str
    gpu_hours: str
    money: Money
    bar: Meter | None = None
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class BudgetLine:
    one: Spending
    part: float | None
    left_at_end: float | None


def showback_page(
    report: ShowbackReport, *, user: User, show_all: bool = False, **_: object
) -> dict[str, Any]:
    lines, total = _lines(report), report.shown
    currency = report.cluster.currency
    chosen = _most_pressing(report.budgets)
    tz = zone(report.cluster.display_time_zone)
    return {
        "range_note": words.range_note(report.filters, None),
        "currency": currency,
        "lines": lines,
        "sums": total,
        "all_hours": number(report.total.gpu_hours),
        "shares": {
            name: share(getattr(total, name), total.charged) for name in ("used", "idle", "lost")
        },
        "class_rows": _class_rows(report.classes, total.charged),
        "user_rows": _user_rows(report.users, total.charged),
        "budgets": [_budgeted(one) for one in report.budgets],
        "chosen": chosen,
        "figure": figures.burn_down(chosen, currency, tz) if chosen else None,
        "may_edit": editable(user, report.cluster).exists(),
    }


def _lines(report: ShowbackReport) -> list[CostLine]:
    """Departments of several leaves as sum rows above them."""
    rows = report.queues
    most = max((row.costs.charged for row in rows), default=0.0)
    hours = hours_column(
        [row.costs.gpu_hours for row in rows], sum(row.costs.gpu_hours for row in rows)
    )
    shares = zip(rows, hours.parts, report.rounded, strict=True)
    lines: list[CostLine] = []
    for department, leaves in groupby(shares, key=lambda line: line[0].department):
        lines += _department(department, list(leaves), most)
    return lines


def _department(
    name: str, leaves: list[tuple[QueueCosts, str, Money]], most: float
) -> Iterator[CostLine]:
    """``leaves`` with their GPU-hours and money as they are shown."""
    if len(leaves) > 1:
        total = sum((money for *_, money in leaves), Money())
        whole = sum(row.costs.gpu_hours for row, *_ in leaves)
        yield CostLine(name, "", number(whole), total, is_sum=True)
    for row, hours, money in leaves:
        bar = Meter(part_of(money.used, most), part_of(money.charged, most))
        inner = row.path.partition("/")[2] if len(leaves) > 1 else row.path
        yield CostLine(inner or row.path, row.name, hours, money, bar)


def _class_rows(rows: Sequence[ClassCosts], total: int) -> list[tuple[ClassCosts, int, int]]:
    """(row, colour, charged), of which the last add up to ``total``."""
    charged = shared_out([row.costs.charged for row in rows], total)
    return [
        (row, class_number(row.position), money) for row, money in zip(rows, charged, strict=True)
    ]


def _user_rows(rows: Iterable[UserRow], total: int) -> list[tuple[UserRow, int]]:
    found = list(rows)
    return list(zip(found, shared_out([row.charged for row in found], total), strict=True))


def _most_pressing(budgets: Sequence[Spending]) -> Spending | None:
    """The one that runs out first, else of which the largest part is spent."""
    return min(
        budgets,
        key=lambda one: (
            one.runs_out is None,
            one.runs_out or one.budget.end,
            one.left / one.amount,
        ),
        default=None,
    )


def _budgeted(one: Spending) -> BudgetLine:
    end = one.at_end
    return BudgetLine(one, share(one.spent, one.amount), None if end is None else one.amount - end)
