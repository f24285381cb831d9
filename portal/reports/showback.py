"""Showback: what GPUs cost, by queue, class and person; idle and lost apart.

Charged is what was held, at the price of its class on the day. Of it *used* is held × SM activity less what
evictions threw away, *lost* is that, *idle but held* the rest. What nobody measured counts as used at the
share that was measured of its queue and class, wholly where nothing was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from django.utils.functional import cached_property

from portal.accounts.models import User
from portal.display.adding_up import shared_out
from portal.display.csv import Cell, Table
from portal.display.spread import share
from portal.reports import prices, samples
from portal.reports.budgets import Spending, in_force, readable, spendings
from portal.reports.costs import Cells, Costs, cells_of, used_of_work
from portal.reports.filters import ReportFilters
from portal.reports.focus import focus
from portal.reports.scope import Scope, report_scope
from portal.reports.work import gpu_seconds
from scheduling.models import Cluster, WorkloadType
from scheduling.services.ledger.prices import PricePeriod

SHOWN = 5


@dataclass(frozen=True, slots=True)
class QueueCosts:
    name: str
    path: str
    costs: Costs

    @property
    def department(self) -> str:
        return self.path.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Money:
    """Whole units of the currency, as they are shown; ``charged`` is the sum of the others."""

    used: int = 0
    idle: int = 0
    lost: int = 0

    @classmethod
    def of(cls, costs: Costs, charged: int) -> Money:
        """Its parts as they sum to ``charged``, which is near what it costs."""
        return cls(*shared_out([costs.used, costs.idle, costs.lost], charged))

    @property
    def charged(self) -> int:
        return self.used + self.idle + self.lost

    @property
    def idle_share(self) -> float | None:
        return share(self.idle, self.charged)

    def __add__(self, other: Money) -> Money:
        return Money(self.used + other.used, self.idle + other.idle, self.lost + other.lost)


def _rounded(leaves: Sequence[QueueCosts]) -> list[Money]:
    """Of the leaves of a department, which costs what it does to the nearest unit, as its budget has it."""
    costs = [row.costs for row in leaves]
    charged = shared_out([one.charged for one in costs], round(sum(one.charged for one in costs)))
    return [Money.of(one, whole) for one, whole in zip(costs, charged, strict=True)]


@dataclass(frozen=True, slots=True)
class ClassCosts:
    """``price`` of one GPU or slice an hour: the newest; ``changed`` where it was another in the range."""

    name: str
    position: int
    price: float
    changed: bool
    costs: Costs


@dataclass(frozen=True, slots=True)
class UserRow:
    """``name`` is empty for all others, ``people`` of them."""

    name: str
    people: int
    queues: str
    gpu_hours: float
    charged: float
    used: float
    is_service: bool = False

    @property
    def used_share(self) -> float | None:
        return share(self.used, self.charged)


@dataclass(frozen=True)
class ShowbackReport:
    filters: ReportFilters
    cluster: Cluster
    note: str
    """Says what a slice counts."""
    may_read: bool
    """Whether the person reads costs; without it there is nothing else."""
    total: Costs
    before: float | None
    queues: tuple[QueueCosts, ...]
    classes: tuple[ClassCosts, ...]
    users: tuple[UserRow, ...]
    budgets: tuple[Spending, ...]
    exports: Mapping[str, Callable[[], Table]] = field(default_factory=dict, compare=False)
    """Tables for other programs, made where they are wanted: they are shown on no page."""

    @property
    def is_empty(self) -> bool:
        return not self.may_read or (not self.queues and not self.budgets)

    @cached_property
    def rounded(self) -> tuple[Money, ...]:
        """Of each of ``queues``."""
        departments = groupby(self.queues, key=lambda row: row.department)
        return tuple(money for _, leaves in departments for money in _rounded(list(leaves)))

    @property
    def shown(self) -> Money:
        """The sum of the rows as they are rounded: what every sentence, tile and last row says."""
        return sum(self.rounded, Money())

    @property
    def measured_share(self) -> float | None:
        """The rest is what utilization calls not measured."""
        part = share(self.total.measured, self.total.gpu_hours)
        return None if part is None else min(1.0, part)

    def tables(self) -> tuple[Table, ...]:
        return (_queue_table(self), _class_table(self), _user_table(self), _budget_table(self))

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "showback",
            "filters": self.filters.as_dict(),
            "currency": self.cluster.currency,
            "note": self.note,
            "charged": round(self.total.charged, 2),
            "used": round(self.total.used, 2),
            "idle_but_held": round(self.total.idle, 2),
            "lost_to_evictions": round(self.total.lost, 2),
            "charged_before": None if self.before is None else round(self.before, 2),
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def showback(cluster: Cluster, filters: ReportFilters, user: User) -> ShowbackReport:
    """What ``user`` may see of the costs in the range. Raises as ``utilization``."""
    scope = report_scope(cluster, filters, user)
    empty = ShowbackReport(
        filters=filters, cluster=cluster, note=scope.unit.note, may_read=False, total=Costs(),
        before=None, queues=(), classes=(), users=(), budgets=(),
    )  # fmt: skip
    if not prices.may_read(user, scope):
        return empty
    parts = prices.stretches(scope, filters.start, filters.end)
    paid = _paid(scope, filters, parts)
    cells = cells_of(scope, filters, parts)
    total = sum(cells.values(), Costs())
    return replace(
        empty,
        may_read=True,
        total=total,
        before=_before(scope, filters) if filters.compare else None,
        queues=_queue_rows(scope, cells),
        classes=_class_rows(scope, cells, parts),
        users=_user_rows(paid, total),
        budgets=tuple(_budgets(scope, user)),
        exports={"focus": lambda: focus(scope, filters)},
    )


def idle_cost(scope: Scope, filters: ReportFilters) -> float:
    """What GPUs cost that were held and idle."""
    parts = prices.stretches(scope, filters.start, filters.end)
    return sum(costs.idle for costs in cells_of(scope, filters, parts).values())


def _before(scope: Scope, filters: ReportFilters) -> float | None:
    earlier = filters.before()
    if not samples.is_known(scope, earlier):
        return None
    parts = prices.stretches(scope, earlier.start, earlier.end)
    return sum(costs.charged for costs in cells_of(scope, earlier, parts).values())


def _queue_rows(scope: Scope, cells: Cells) -> tuple[QueueCosts, ...]:
    """By department, the costliest first, and in it by leaf."""
    sums: dict[int, Costs] = defaultdict(Costs)
    for (queue, _), costs in cells.items():
        sums[queue] += costs
    rows = [QueueCosts(scope.queues[pk].name, scope.queues[pk].path, c) for pk, c in sums.items()]
    above: dict[str, float] = defaultdict(float)
    for row in rows:
        above[row.department] += row.costs.charged
    return tuple(
        sorted(rows, key=lambda r: (-above[r.department], r.department, -r.costs.charged, r.path))
    )


def _class_rows(scope: Scope, cells: Cells, parts: list[PricePeriod]) -> tuple[ClassCosts, ...]:
    rows = []
    for pk, c in scope.classes.items():
        costs = sum((each for (_, name), each in cells.items() if name == pk), Costs())
        known = {part.prices[pk] for part in parts}
        rows.append(ClassCosts(c.name, c.position, parts[-1].prices[pk], len(known) > 1, costs))
    return tuple(rows)


def _user_rows(found: Sequence[_Payment], total: Costs) -> tuple[UserRow, ...]:
    """Those with the highest costs, services as one, and all others as the rest of the total."""
    people = sorted((o for o in found if not o.is_service), key=lambda o: (-o.cost, o.user))
    services = [one for one in found if one.is_service]
    shown = [
        UserRow(o.user, 1, ", ".join(o.queues), o.gpu_hours, o.cost, o.used) for o in people[:SHOWN]
    ]
    as_services = UserRow(
        "", len(services), "", sum(o.gpu_hours for o in services), sum(o.cost for o in services),
        sum(o.used for o in services), is_service=True,
    )  # fmt: skip
    rows = [*shown, *([as_services] if services else [])]
    rest = UserRow(
        "", max(0, len(people) - SHOWN), "",
        max(0.0, total.gpu_hours - sum(o.gpu_hours for o in rows)),
        max(0.0, total.charged - sum(o.charged for o in rows)),
        max(0.0, total.used - sum(o.used for o in rows)),
    )  # fmt: skip
    return (*shown, *([rest] if rest.people or rest.charged > 0.005 else []), *rows[len(shown) :])


@dataclass(slots=True)
class _Payment:
    """By one user's services, or by all else of theirs."""

    user: str
    is_service: bool
    gpu_hours: float = 0.0
    cost: float = 0.0
    used: float = 0.0
    """Of ``cost``; only where it was asked for."""
    by_queue: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def queues(self) -> list[str]:
        """Names, the costliest first."""
        return sorted(self.by_queue, key=lambda name: (-self.by_queue[name], name))


def _paid(scope: Scope, filters: ReportFilters, parts: Sequence[PricePeriod]) -> list[_Payment]:
    """With what was used of it, which reads what was held, too."""
    used: dict[tuple[str, bool], float] = defaultdict(float)
    for kin, money in used_of_work(scope, filters, parts):
        used[kin.user, kin.type == WorkloadType.INFERENCE] += money
    found = costs_of_users(scope, filters, parts)
    for one in found:
        one.used = used[one.user, one.is_service]
    return found


def costs_of_users(
    scope: Scope, filters: ReportFilters, parts: Iterable[PricePeriod]
) -> list[_Payment]:
    """From the workloads' own timelines."""
    found: dict[tuple[str, bool], _Payment] = {}
    for part in parts:
        for kin, gpu_s in gpu_seconds(scope, filters, part.start, part.end).items():
            key = (kin.user, kin.type == WorkloadType.INFERENCE)
            paid = found.setdefault(key, _Payment(*key))
            gpu_hours = gpu_s / 3600
            cost = gpu_hours / scope.unit.weights[kin.gpu_class] * part.prices[kin.gpu_class]
            paid.gpu_hours += gpu_hours
            paid.cost += cost
            paid.by_queue[scope.queues[kin.queue].name] += cost
    return list(found.values())


def _budgets(scope: Scope, user: User) -> list[Spending]:
    """In force now, of queues of the scope."""
    mine = readable(user, scope.cluster).filter(queue__in=list(scope.queues))
    rows = in_force(mine, scope.cluster)
    return spendings(scope.cluster, rows, scope.cluster.now())


def _money(costs: Costs) -> tuple[float, ...]:
    return costs.used, costs.idle, costs.lost, costs.charged


def _queue_table(report: ShowbackReport) -> Table:
    unit = report.cluster.currency.lower()
    columns = (
        "queue", "gpu_hours", f"used_{unit}", f"idle_but_held_{unit}", f"lost_to_evictions_{unit}",
        f"charged_{unit}",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (row.path, row.costs.gpu_hours, *_money(row.costs)) for row in report.queues
    ]
    return Table("queues", "Costs by leaf queue", columns, rows)


def _class_table(report: ShowbackReport) -> Table:
    unit = report.cluster.currency.lower()
    columns = ("gpu_class", f"price_{unit}", "gpu_hours", f"charged_{unit}")
    rows = [(r.name, r.price, r.costs.gpu_hours, r.costs.charged) for r in report.classes]
    return Table("classes", "Costs by GPU class", columns, rows)


def _user_table(report: ShowbackReport) -> Table:
    unit = report.cluster.currency.lower()
    columns = ("user", "people", "queues", "gpu_hours", f"charged_{unit}", f"used_{unit}")
    rows: list[tuple[Cell, ...]] = [
        (
            row.name or ("services" if row.is_service else "others"), row.people, row.queues,
            row.gpu_hours, row.charged, row.used,
        )
        for row in report.users
    ]  # fmt: skip
    return Table("users", "Costs by person", columns, rows)


def _budget_table(report: ShowbackReport) -> Table:
    unit = report.cluster.currency.lower()
    columns = (
        "queue",
        "begin",
        "end",
        f"budget_{unit}",
        f"spent_{unit}",
        f"a_day_{unit}",
        f"at_end_{unit}",
        "runs_out",
    )
    rows: list[tuple[Cell, ...]] = [
        (
            one.budget.queue.path, str(one.budget.begin), str(one.budget.end), one.amount, one.spent,
            one.a_day, one.at_end, str(one.runs_out) if one.runs_out else None,
        )
        for one in report.budgets
    ]  # fmt: skip
    return Table("budgets", "Budgets", columns, rows)
