"""How far budgets are spent, and when they will be: what a day cost of late, carried on.

The rest is a sum of days like the last ones: its mean grows with them and its spread with their square root,
so P10 and P90 stand 1.28 standard deviations from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import TruncDay

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.display.format import zone
from portal.reports.models import Budget
from portal.reports.samples import gpu_s
from portal.reports.scope import classes_of
from portal.reports.usage import PER_GPU_HOUR
from portal.teams.access import dividable_queues, own_queues
from scheduling.models import Cluster, Queue, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.ledger.below import hours_below
from scheduling.services.ledger.prices import PricePeriod, changes_of, cut
from scheduling.services.queues.service_classes import is_within

LEARNED = 30
"""Days of which the forecast is made."""
LEAST = 3
"""Fewer whole days say nothing."""
Z90 = 1.2816
"""The ninth decile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """From today on: ``day`` each, left then in three quantiles (P50, and P10 and P90 of what is spent)."""

    day: date
    p50: float
    high: float
    low: float


@dataclass(frozen=True, slots=True)
class Spending:
    """``left`` at the end of each of ``days`` so far; ``ahead`` is empty where too little is known."""

    budget: Budget
    days: Sequence[tuple[date, float]]
    ahead: Sequence[Ahead]

    def covers(self, path: str) -> bool:
        """Whether work of that queue is paid from it."""
        return is_within(path, self.budget.queue.path)

    @property
    def amount(self) -> float:
        return float(self.budget.amount)

    @property
    def left(self) -> float:
        return self.days[-1][1] if self.days else self.amount

    @property
    def spent(self) -> float:
        return self.amount - self.left

    @property
    def at_end(self) -> float | None:
        """P50 of what is spent by its end."""
        return self.amount - self.ahead[-1].p50 if self.ahead else None

    @property
    def a_day(self) -> float | None:
        """What a day like the last ones costs."""
        return (self.left - self.ahead[0].p50) if self.ahead else None

    @property
    def runs_out(self) -> date | None:
        """The day on which P50 passes it; None within its time."""
        return _first_spent(self.ahead) if self.left > 0 else self._passed()

    def _passed(self) -> date | None:
        return next((day for day, left in self.days if left <= 0), None)


def _first_spent(ahead: Iterable[Ahead]) -> date | None:
    return next((one.day for one in ahead if one.p50 <= 0), None)


def readable(user: User, cluster: Cluster) -> QuerySet[Budget]:
    """Of queues whose costs the person reads."""
    mine = own_queues(user, Capability.COSTS).filter(cluster=cluster)
    return Budget.objects.filter(queue__in=mine).select_related("queue__cluster")


def in_force(rows: QuerySet[Budget], cluster: Cluster) -> QuerySet[Budget]:
    """Those of ``rows`` whose time holds today, by the cluster's own day."""
    today = cluster.now().astimezone(zone(cluster.display_time_zone)).date()
    return rows.filter(begin__lte=today, end__gte=today)


def editable(user: User, cluster: Cluster) -> QuerySet[Queue]:
    """Queues whose budget the person sets: those that they divide from above."""
    return dividable_queues(user).filter(cluster=cluster, parent__isnull=False)


def visible(user: User, cluster: Cluster) -> QuerySet[Budget]:
    """Of queues whose costs the person reads, or whose budget they set."""
    either = readable(user, cluster) | Budget.objects.filter(queue__in=editable(user, cluster))
    return either.select_related("queue__cluster")


@transaction.atomic
def set_budget(
    *, queue: Queue, amount: Decimal, begin: date, end: date, by: User, reason: str = ""
) -> Budget:
    """A new one, or another amount or end for the one that begins on that day. Raises ServiceError."""
    if amount <= 0:
        raise ServiceError(
            "too_small", "A budget is more than 0.", "Write an amount.", field="amount"
        )
    if end < begin:
        raise ServiceError(
            "ends_before", "It ends before it begins.", "Choose a later end.", field="end"
        )
    Queue.objects.select_for_update().get(pk=queue.pk)
    beside = Budget.objects.filter(queue=queue, begin__lte=end, end__gte=begin).exclude(begin=begin)
    if (other := beside.first()) is not None:
        raise ServiceError(
            "overlaps", f"{queue.name} has a budget from {other.begin} to {other.end}.",
            "Choose days outside of it, or change that one.", field="begin",
        )  # fmt: skip
    known = Budget.objects.filter(queue=queue, begin=begin).first()
    before = _as_json(known) if known else {}
    try:
        made, _ = Budget.objects.update_or_create(
            queue=queue, begin=begin, defaults={"amount": amount, "end": end}
        )
    except IntegrityError as error:
        raise ServiceError("overlaps", "Another budget begins there.", field="begin") from error
    announce(
        "budget.set", actor=by, cluster=queue.cluster, queue=queue.path, subject=queue.name,
        before=before, after=_as_json(made), reason=reason,
    )  # fmt: skip
    return made


@transaction.atomic
def drop(budget: Budget, *, by: User) -> None:
    queue = budget.queue
    announce(
        "budget.dropped", actor=by, cluster=queue.cluster, queue=queue.path, subject=queue.name,
        before=_as_json(budget),
    )  # fmt: skip
    budget.delete()


def _as_json(budget: Budget) -> dict[str, Any]:
    return {
        "amount": str(budget.amount), "begin": str(budget.begin), "end": str(budget.end),
    }  # fmt: skip


def spendings(cluster: Cluster, budgets: Iterable[Budget], now: datetime) -> list[Spending]:
    """Of those that have begun. What they spent is what was held, as showback has it; how it spread over the
    days is read from samples. Three queries for each day on which one began, and three more."""
    tz = zone(cluster.display_time_zone)
    today = now.astimezone(tz).date()
    begun = [one for one in budgets if one.begin <= today]
    if not begun:
        return []
    since = min(*(one.begin for one in begun), today - timedelta(days=LEARNED))
    daily = _daily(cluster, {one.queue_id for one in begun}, since, now, tz)
    spent = _spent(cluster, begun, now, tz)
    return [
        _spending(one, _held_to(daily.get(one.queue_id, {}), one, amount, today), today)
        for one, amount in zip(begun, spent, strict=True)
    ]


def _spent(cluster: Cluster, budgets: Sequence[Budget], now: datetime, tz: ZoneInfo) -> list[float]:
    """What the work below each one's queue cost in its time up to ``now``."""
    classes = classes_of(cluster)
    changes = changes_of(classes)
    costs: dict[tuple[date, date], dict[int, float]] = {}
    for begin, end in sorted({(one.begin, one.end) for one in budgets}):
        until = min(now, datetime.combine(end + timedelta(days=1), time(), tz))
        parts = cut(classes, changes, datetime.combine(begin, time(), tz), until)
        costs[begin, end] = _costs(cluster, parts)
    return [costs[one.begin, one.end].get(one.queue_id, 0.0) for one in budgets]


def _costs(cluster: Cluster, parts: Iterable[PricePeriod]) -> dict[int, float]:
    """By queue, of all below it."""
    found: dict[int, float] = {}
    for part in parts:
        for (queue, pk), hours in hours_below(cluster, part.start, part.end).items():
            found[queue] = found.get(queue, 0.0) + hours * part.prices[pk]
    return found


def _held_to(daily: Daily, budget: Budget, spent: float, today: date) -> Daily:
    """``daily`` as it adds up to what was ``spent`` in the time of ``budget``; what no sample tells of is put
    on its last day."""
    days = list(_days(budget.begin, min(today, budget.end)))
    sampled = sum(daily.get(day, 0.0) for day in days)
    if sampled <= 0:
        return {**daily, days[-1]: spent} if spent else daily
    return {day: cost * spent / sampled if day in days else cost for day, cost in daily.items()}


Daily = Mapping[date, float]


def _daily(
    cluster: Cluster, queues: set[int], since: date, now: datetime, tz: ZoneInfo
) -> dict[int, dict[date, float]]:
    """Queue -> local day -> what it cost."""
    start = datetime.combine(since, time(), tz)
    classes = classes_of(cluster)
    found: dict[int, dict[date, float]] = {}
    for part in cut(classes, changes_of(classes), start, now):
        rows = (
            UsageSample.objects.filter(
                queue__in=queues, resolution=Resolution.HOUR,
                start__gte=part.start, start__lt=part.end,
            )
            .order_by()
            .annotate(day=TruncDay("start", tzinfo=tz))
            .values_list("queue_id", "day", "gpu_class_id")
            .annotate(held=gpu_s("allocated_gpus"))
        )  # fmt: skip
        for queue, day, pk, gpu_seconds in rows:
            costs = found.setdefault(queue, {})
            costs[day.date()] = (
                costs.get(day.date(), 0.0) + gpu_seconds / PER_GPU_HOUR * part.prices[pk]
            )
    return found


def _spending(budget: Budget, daily: Daily, today: date) -> Spending:
    days, left = [], float(budget.amount)
    last = min(today, budget.end)
    for day in _days(budget.begin, last):
        left -= daily.get(day, 0.0)
        days.append((day, left))
    return Spending(budget, days, _ahead(budget, daily, left, today))


def _ahead(budget: Budget, daily: Daily, left: float, today: date) -> list[Ahead]:
    whole = [daily[day] for day in _days(today - timedelta(days=LEARNED), today) if day in daily]
    known = np.array(whole[:-1] if today in daily else whole)
    if len(known) < LEAST or budget.end <= today:
        return []
    mean, spread = float(known.mean()), float(known.std(ddof=1))
    found = []
    for k, day in enumerate(_days(today + timedelta(days=1), budget.end), 1):
        middle, wide = left - mean * k, Z90 * spread * math.sqrt(k)
        found.append(Ahead(day, middle, middle + wide, middle - wide))
    return found


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=i) for i in range((last - first).days + 1)]
