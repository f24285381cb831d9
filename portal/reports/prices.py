"""What GPU-hours cost: the price of each class on the day, and who may read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.reports.scope import Scope
from portal.teams.access import own_queues
from scheduling.models import GpuClass

Change = tuple[datetime, int, float]
ALWAYS = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time in which no price changed; ``prices`` a GPU (or slice) hour, by class id."""

    start: datetime
    end: datetime
    prices: Mapping[int, float]


def stretches(scope: Scope, start: datetime, end: datetime) -> list[Stretch]:
    """[start, end) cut where a price of a class of the scope changed. One query a scope."""
    return cut(scope.classes, scope.once("prices", lambda: changes_of(scope.classes)), start, end)


def cut(
    classes: Mapping[int, GpuClass], changes: list[Change], start: datetime, end: datetime
) -> list[Stretch]:
    """[start, end) cut at ``changes``."""
    cuts = sorted({at for at, _, _ in changes if start < at < end})
    edges = [start, *cuts, end]
    return [
        Stretch(begin, stop, _prices(classes, changes, begin)) for begin, stop in pairwise(edges)
    ]


def changes_of(classes: Mapping[int, GpuClass]) -> list[Change]:
    """(when, class, price from then on) in order; the first that is known of a class always was."""
    history: Any = GpuClass.history.model
    rows = history.objects.filter(id__in=list(classes)).exclude(history_type="-")
    rows = rows.order_by("history_date", "history_id")
    columns = rows.values_list("history_date", "id", "price_per_gpu_hour")
    found: list[Change] = []
    last: dict[int, float] = {}
    for at, pk, price in columns:
        if last.get(pk) != float(price):
            found.append((at if pk in last else ALWAYS, pk, float(price)))
            last[pk] = float(price)
    return found


def _prices(
    classes: Mapping[int, GpuClass], changes: list[Change], at: datetime
) -> dict[int, float]:
    """In force at ``at``."""
    found = {pk: price for since, pk, price in changes if since <= at}
    return {pk: found.get(pk, float(c.price_per_gpu_hour)) for pk, c in classes.items()}


def may_read(user: User, scope: Scope) -> bool:
    """Whether the person reads the costs of every queue of the scope."""
    known = own_queues(user, Capability.COSTS).filter(pk__in=list(scope.queues))
    return known.count() == len(scope.queues)
