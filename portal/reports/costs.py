"""Charged, used, idle and lost of each leaf and class: what showback and its exports are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from django.db.models import Sum

from portal.display.spread import share
from portal.reports import samples
from portal.reports.evictions import evictions_in
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from portal.reports.timelines import read as read_held
from portal.reports.usage import Usage
from portal.reports.work import gpu_seconds, hours_held, used
from scheduling.services.ledger.prices import PricePeriod
from scheduling.services.ledger.singles import Kin


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
        lost = hours_held({kin: 3600 * hours for kin, hours in _lost(scope, within).items()})
        usages = _usages(scope, within)
        hours = hours_held(gpu_seconds(scope, filters, part.start, part.end))
        for key, gpu_hours in hours.items():
            usage = usages.get(key, Usage())
            price = part.prices[key[1]]
            found[key] += _costs(scope, key[1], gpu_hours, usage, lost.get(key, 0.0), price)
    return {key: costs for key, costs in found.items() if costs.gpu_hours or costs.lost}


def used_of_work(
    scope: Scope, filters: ReportFilters, parts: Iterable[PricePeriod]
) -> Iterator[tuple[Kin, float]]:
    """Money of what each person's and type's work really used, less what it lost. What nobody measured of it
    counts at the share of its queue and class."""
    for part in parts:
        within = replace(filters, start=part.start, end=part.end, preset="")
        found = used(scope, filters, part.start, part.end)
        lost, usages = _lost(scope, within), _usages(scope, within)
        for kin, work in found.items():
            key = kin.queue, kin.gpu_class
            own = Usage(measured=work.measured_gpu_s, used=work.active_gpu_s)
            usage = own if own.measured else usages.get(key) or Usage()
            hours, price = work.held_gpu_s / 3600, part.prices[kin.gpu_class]
            yield kin, _costs(scope, kin.gpu_class, hours, usage, lost.get(kin, 0.0), price).used


def _usages(scope: Scope, filters: ReportFilters) -> Mapping[tuple[int, int], Usage]:
    if filters.by_work:
        return scope.once(("usages", filters), lambda: read_held(scope, filters).queues)
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


def _lost(scope: Scope, filters: ReportFilters) -> dict[Kin, float]:
    """GPU-hours. One query, once a scope."""
    return scope.once(("lost", filters), lambda: _read_lost(scope, filters))


def _read_lost(scope: Scope, filters: ReportFilters) -> dict[Kin, float]:
    rows = evictions_in(scope, filters).filter(queue__in=list(scope.leaves)).order_by()
    by = "queue_id", "gpu_class_id", "workload__user", "workload__type"
    lost_s = rows.values_list(*by).annotate(lost=Sum("lost_gpu_s"))
    return {Kin(*names): lost / 3600 for *names, lost in lost_s}
