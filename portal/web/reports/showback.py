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
class BudgetSum:
    """Of budgets of one time, as their rows are rounded; None where one of them tells nothing ahead."""

    count: int
    amount: int
    spent: int
    part: float | None
    a_day: int | None
    at_end: int | None
    left_at_end: int | None


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
        "mean_price": share(report.total.charged, report.total.gpu_hours),
        "class_rows": _class_rows(report.classes, total.charged),
        "user_rows": _user_rows(report.users, total.charged),
        "budgets": [_budgeted(one) for one in report.budgets],
        "budget_sum": _budget_sum(report.budgets),
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


def _budget_sum(budgets: Sequence[Spending]) -> BudgetSum | None:
    """Of those that lie in no other; None of a single one, or where their times differ."""
    outer = [one for one in budgets if not any(_lies_in(one, other) for other in budgets)]
    times = {(one.budget.begin, one.budget.end) for one in outer}
    if len(outer) < 2 or len(times) != 1:
        return None
    amount, spent = sum(round(one.amount) for one in outer), sum(round(one.spent) for one in outer)
    at_end = _sum(one.at_end for one in outer)
    return BudgetSum(
        count=len(outer),
        amount=amount,
        spent=spent,
        part=share(spent, amount),
        a_day=_sum(one.a_day for one in outer),
        at_end=at_end,
        left_at_end=None if at_end is None else amount - at_end,
    )


def _lies_in(one: Spending, other: Spending) -> bool:
    return one is not other and other.covers(one.budget.queue.path)


def _sum(values: Iterable[float | None]) -> int | None:
    found = list(values)
    return None if None in found else sum(round(value) for value in found if value is not None)
