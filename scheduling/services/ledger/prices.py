"""What a GPU (or slice) hour of each class cost, and since when: one history for whoever charges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from scheduling.models import GpuClass

Change = tuple[datetime, int, float]
ALWAYS = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PricePeriod:
    """Time in which no price changed; ``prices`` a GPU (or slice) hour, by class id."""

    start: datetime
    end: datetime
    prices: Mapping[int, float]


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


def cut(
    classes: Mapping[int, GpuClass], changes: Sequence[Change], start: datetime, end: datetime
) -> list[PricePeriod]:
    """[start, end) cut at ``changes``."""
    cuts = sorted({at for at, _, _ in changes if start < at < end})
    edges = [start, *cuts, end]
    return [
        PricePeriod(begin, stop, prices_at(classes, changes, begin))
        for begin, stop in pairwise(edges)
    ]


def prices_at(
    classes: Mapping[int, GpuClass], changes: Sequence[Change], at: datetime
) -> dict[int, float]:
    """In force at ``at``."""
    found = {pk: price for since, pk, price in changes if since <= at}
    return {pk: found.get(pk, float(c.price_per_gpu_hour)) for pk, c in classes.items()}
