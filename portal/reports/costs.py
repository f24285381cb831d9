"""Charged, used, idle and lost of each leaf and class: what showback and its exports are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.db.models import Sum

from portal.display.spread import share
from portal.reports import samples
from portal.reports.evictions import evictions_in
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from portal.reports.timelines import read as read_held
from portal.reports.usage import Usage
from portal.reports.work import gpu_seconds, hours_held
from scheduling.services.ledger.prices import PricePeriod


@dataclass(frozen=True, slots=True)
class Costs:
    """GPU-hours of whole GPUs, and money; ``measured`` is the part of the GPU-hours that was."""

    gpu_hours: float = 0.0
    measured: float = 0.0
    used: float = 0.0
    idle: float = 0.0
    lost: float = 0.0

    @property
    def charged(self) -> float:
        return self.used + self.idle + self.lost

    @property
    def idle_share(self) -> float | None:
        return share(self.idle, self.charged)

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            self.gpu_hours + other.gpu_hours, self.measured + other.measured,
            self.used + other.used, self.idle + other.idle, self.lost + other.lost,
        )  # fmt: skip


Cells = Mapping[tuple[int, int], Costs]
"""By leaf and class."""


def cells_of(scope: Scope, filters: ReportFilters, parts: Iterable[PricePeriod]) -> Cells:
    found: dict[tuple[int, int], Costs] = defaultdict(Costs)
    for part in parts:
        within = replace(filters, start=part.start, end=part.end, preset="")
        lost = _lost(scope, within)
        usages = _usages(scope, within)
        hours = hours_held(gpu_seconds(scope, filters, part.start, part.end))
        for key, gpu_hours in hours.items():
            usage = usages.get(key, Usage())
            price = part.prices[key[1]]
            found[key] += _costs(scope, key[1], gpu_hours, usage, lost.get(key, 0.0), price)
    return {key: costs for key, costs in found.items() if costs.gpu_hours or costs.lost}


def _usages(scope: Scope, filters: ReportFilters) -> Mapping[tuple[int, int], Usage]:
    if filters.by_work:
        return read_held(scope, filters).queues
    return samples.queue_usage(scope, filters, samples.best_resolution(scope, filters))


def _costs(
    scope: Scope, pk: int, gpu_hours: float, usage: Usage, lost: float, price: float
) -> Costs:
    """Of ``gpu_hours`` of whole GPUs; ``usage`` says which part was measured and used, and ``lost`` hours are
    inside of what was held."""
    sold = gpu_hours / scope.unit.weights[pk]
    lost = min(lost, sold)
    activity = usage.used_share
    used = sold - lost if activity is None else max(0.0, sold * activity - lost)
    measured = usage.measured * scope.unit.weights[pk]
    return Costs(gpu_hours, measured, used * price, (sold - used - lost) * price, lost * price)


def _lost(scope: Scope, filters: ReportFilters) -> dict[tuple[int, int], float]:
    rows = evictions_in(scope, filters).filter(queue__in=list(scope.leaves)).order_by()
    lost_s = rows.values_list("queue_id", "gpu_class_id").annotate(lost=Sum("lost_gpu_s"))
    return {(queue, pk): lost / 3600 for queue, pk, lost in lost_s}
