"""What work held is one figure wherever it is shown: page, API, by user, type and class, days, showback."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from portal.display.units import gpus_each
from portal.reports.budgets import spendings
from portal.reports.models import Budget
from portal.reports.showback import showback
from portal.reports.use import use
from portal.reports.utilization import utilization
from portal.selectors.costs import cost_of, gpu_seconds
from portal.web.mine.views import month
from scheduling.models import Cluster, GpuClass, State, Workload
from scheduling.services.ledger import workdays
from scheduling.services.ledger.below import Hours
from scheduling.services.ledger.singles import WorkFilter
from scheduling.services.ledger.workdays import roll_days
from scheduling.services.queues.entitlements import used_gpu_hours
from scheduling.services.workloads import lifecycle
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_pages import client_of
from tests.portal.reports.test_showback import set_price

pytestmark = pytest.mark.django_db
S = State
DAY = timedelta(days=1)
PRICES = {"h100": "2", "mig": "0.30"}


def ago(hours: float) -> datetime:
    return END - hours * HOUR


class Life:
    """One workload of ``rea``, step by step."""

    def __init__(self, small: Small, gpus: int = 1000, members: int = 1) -> None:
        self.work = Workload(
            cluster=small.cluster, uid="w0", namespace="vision", name="w",
            queue=small.vision, user="rea", gpus=gpus, min_members=members, max_members=8,
            submitted_at=ago(40),
        )  # fmt: skip
        self._to(S.PENDING, 40, first=True)

    def _to(self, state: State, hours: float, **more: object) -> Life:
        lifecycle.transition(self.work, state, at=ago(hours), **more)
        return self

    def starts(self, hours: float, gpu_class: GpuClass) -> Life:
        return self._to(S.ADMITTED, hours, gpu_class=gpu_class)._to(S.RUNNING, hours)

    def sized(self, members: int, hours: float) -> Life:
        lifecycle.resize(self.work, members, at=ago(hours)).save()
        self.work.save()
        return self

    def leaves(self, hours: float, grace: float = 0.5) -> Life:
        return self._to(S.EVICTED, hours, lost_gpu_s=60.0)._to(S.REQUEUED, hours - grace)

    def ends(self, hours: float) -> Life:
        return self._to(S.FINISHED, hours)


LIVES: Sequence[tuple[str, Callable[[Small], object], float, float]] = [
    ("ended", lambda s: Life(s, members=2).starts(5, s.h100).ends(2), 6, 12),
    ("runs", lambda s: Life(s, members=2).starts(5, s.h100), 10, 20),
    ("shrunk", lambda s: Life(s, members=4).starts(6, s.h100).sized(1, 4).ends(2), 10, 20),
    ("grown", lambda s: Life(s).starts(6, s.h100).sized(3, 4).sized(2, 3), 11, 22),
    ("evicted", lambda s: Life(s).starts(6, s.h100).leaves(4), 2.5, 5),
    ("requeued", lambda s: Life(s).starts(9, s.h100).leaves(7, 1).starts(4, s.h100).ends(1), 6, 12),
    ("slices", lambda s: Life(s, members=7).starts(5, s.mig).ends(3), 2, 4.2),
    (
        "moved",
        lambda s: Life(s, members=7).starts(9, s.h100).leaves(8).starts(4, s.mig),
        14.5,
        29.4,
    ),
    (
        "went_on_elsewhere_and_ended",
        lambda s: Life(s, members=7).starts(9, s.h100).leaves(8).starts(4, s.mig).ends(1),
        13.5,
        27.3,
    ),
    ("yesterday", lambda s: Life(s, members=2).starts(30, s.h100).sized(1, 20).ends(3), 37, 74),
]
"""What it lived, GPU-hours in whole GPUs, and what they cost."""


PRICED = (
    lambda s: Life(s, members=2).starts(30, s.h100).sized(1, 4).leaves(3, 1).starts(1, s.mig),
    2 * 26 + 2 + 2 / 7,
    2 * 25 * 2 + 2 * 4 + 2 * 4 + 2 * 0.3,
)
"""Its last hours of h100 at 4 after 2, over a midnight."""


def seen_by_reports(small: Small) -> tuple[dict[str, float], dict[str, float]]:
    """GPU-hours and cost of all that there was, by each report that tells of them."""
    op, filters = small.operator, small.last(48)
    report, bill = utilization(small.cluster, filters, op), showback(small.cluster, filters, op)
    mine = utilization(small.cluster, small.last(48, user="rea"), op)
    his = showback(small.cluster, small.last(48, user="rea"), op)
    used = used_gpu_hours(small.cluster, ago(48), END)
    hours = {
        "quota of the queue": in_whole_gpus(used, small.vision.pk),
        "quota above it": in_whole_gpus(used, small.root.pk),
        "utilization": report.total.allocated,
        "by class": sum(each.usage.allocated for each in report.classes),
        "by queue": sum(each.usage.allocated for each in report.queues),
        "by user": sum(each.gpu_hours for each in report.work.users),
        "by type": sum(each.gpu_hours for each in report.work.types),
        "of one user": mine.total.allocated,
        "real use": use(small.cluster, filters, op).total.allocated,
        "ended or on its way": ended_or_on_its_way(small),
        "showback": bill.total.gpu_hours,
        "showback by queue": sum(each.costs.gpu_hours for each in bill.queues),
        "showback by class": sum(each.costs.gpu_hours for each in bill.classes),
        "showback by user": sum(each.gpu_hours for each in bill.users),
        "showback of one": his.total.gpu_hours,
    }
    today = END.date()
    budgets = [
        Budget(queue=queue, amount=Decimal(500), begin=today - 5 * DAY, end=today + 5 * DAY)
        for queue in (small.vision, small.root)
    ]
    leaf, root = spendings(small.cluster, budgets, END)
    costs = {
        "budget": leaf.spent,
        "budget of all": root.spent,
        "showback": bill.total.charged,
        "showback by queue": sum(each.costs.charged for each in bill.queues),
        "showback by class": sum(each.costs.charged for each in bill.classes),
        "showback by user": sum(each.charged for each in bill.users),
        "showback of one": his.total.charged,
    }
    return hours, costs


def in_whole_gpus(used: Hours, queue: int) -> float:
    """What counts against the GPU-hours of a queue's quotas, all classes together."""
    whole = {pk: gpus_each(c) for pk, c in GpuClass.objects.in_bulk().items()}
    return sum(hours * whole[pk] for (below, pk), hours in used.items() if below == queue)


def ended_or_on_its_way(small: Small) -> float:
    """What work that ended held by class, as days have it; all that was held where it has not ended."""
    found = workdays.read(small.cluster, WorkFilter.all_of(small.cluster), ago(48), END)
    whole = {pk: gpus_each(c) for pk, c in GpuClass.objects.in_bulk().items()}
    is_over = Workload.objects.get().finished_at is not None
    return sum(
        (work.succeeded_gpu_s if is_over else work.held_gpu_s) * whole[kin.gpu_class] / 3600
        for kin, work in found.items()
    )


def seen_by_exports(small: Small) -> tuple[dict[str, float], dict[str, float]]:
    """The same of the CSV files, as they are read."""
    base, span = "/c/fra1/reports", f"{small.last(48).permanent_query()}&compare=none&format=csv"
    columns = {
        ("utilization", "classes", "allocated_gpu_hours"),
        ("utilization", "queues", "allocated_gpu_hours"),
        ("utilization", "users", "allocated_gpu_hours"),
        ("utilization", "types", "allocated_gpu_hours"),
        ("showback", "queues", "gpu_hours"), ("showback", "users", "gpu_hours"),
        ("showback", "queues", "charged_eur"), ("showback", "classes", "charged_eur"),
        ("showback", "users", "charged_eur"),
    }  # fmt: skip
    hours: dict[str, float] = {}
    costs: dict[str, float] = {}
    for report, table, column in sorted(columns):
        found = summed(small, f"{base}/{report}?{span}&table={table}", column)
        (hours if column.endswith("hours") else costs)[f"{report} {table} CSV"] = found
    hours["workloads CSV"] = summed(
        small, "/c/fra1/workloads/?export=csv&state=active&state=finished", "gpu_hours_held"
    )
    return hours, costs


def summed(small: Small, address: str, column: str) -> float:
    answer = client_of(small.operator).get(address)
    assert answer.status_code == 200, address
    lines = [line for line in answer.getvalue().decode().splitlines() if not line.startswith("#")]
    return sum(float(row[column] or 0) for row in csv.DictReader(lines))


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize(("live", "hours", "amount"), [*(life[1:] for life in LIVES), PRICED],
                         ids=[*(life[0] for life in LIVES), "priced"])  # fmt: skip
def test_what_was_held_is_one_figure_everywhere(
    small: Small, live: Callable[[Small], object], hours: float, amount: float, rolled: bool
) -> None:
    for gpu_class in (small.h100, small.mig):
        set_price(gpu_class, PRICES[gpu_class.name], ago(24 * 40))
    if live is PRICED[0]:
        set_price(small.h100, "4", ago(5))
    Cluster.objects.update(clock_real=datetime.now(UTC), clock_start=END, clock_speed=1e-9)
    small.cluster.refresh_from_db()
    live(small)
    if rolled:
        roll_days(small.cluster)

    (held, costs), (files, prices) = seen_by_reports(small), seen_by_exports(small)
    work = Workload.objects.get()
    row = client_of(small.operator).get(f"/api/v1/clusters/fra1/workloads/{work.uid}").json()
    listed = client_of(small.operator).get("/api/v1/clusters/fra1/workloads").json()
    held |= {
        "page": gpu_seconds(work, END) / 3600,
        "API": row["used_gpu_hours"],
        "list": listed["results"][0]["used_gpu_hours"],
    }
    cost = cost_of(work, END)
    assert cost is not None
    costs |= {"page": float(cost.amount), "API": float(row["cost"]["amount"])}
    assert digits(held, 4) == dict.fromkeys(held, round(hours, 4))
    assert digits(files, 3) == dict.fromkeys(files, round(hours, 3))
    assert digits(costs, 2) == dict.fromkeys(costs, round(amount, 2))
    assert digits(prices, 2) == dict.fromkeys(prices, round(amount, 2))


def digits(figures: dict[str, float], places: int) -> dict[str, float]:
    return {name: round(value, places) for name, value in figures.items()}


def test_home_costs_the_month_at_the_prices_of_the_time(small: Small) -> None:
    set_price(small.h100, "2", ago(24 * 40))
    set_price(small.h100, "4", ago(3))
    Life(small).starts(5, small.h100).ends(1)
    found = month(small.cluster, small.researcher)
    assert found is not None
    assert float(found.cost) == 2 * 2 + 4 * 2
