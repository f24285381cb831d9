"""Costs as other tools of finance read them: rows of the FinOps FOCUS specification, version 1.2.

A row is what one leaf queue held of one GPU class in a stretch without a change of price, cut at months,
which are the billing periods. ``x_`` begins columns of Weir's own, as the specification wants it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from portal.display.csv import Cell, Table
from portal.reports import prices
from portal.reports.costs import Costs, cells_of
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from scheduling.models import Cluster, GpuClass, Queue
from scheduling.services.ledger.prices import PricePeriod

WHO = "Weir"


def focus(scope: Scope, filters: ReportFilters) -> Table:
    """Its ``BilledCost`` adds up to what showback charges over the same range."""
    charges = [
        _charge(scope, part, queue, gpu_class, costs)
        for part in _parts(scope, filters)
        for (queue, gpu_class), costs in sorted(cells_of(scope, filters, [part]).items())
    ]
    rows = [tuple(cell(one) for cell in COLUMNS.values()) for one in charges]
    return Table("focus", "Costs in FOCUS 1.2", tuple(COLUMNS), rows)


def _parts(scope: Scope, filters: ReportFilters) -> Iterator[PricePeriod]:
    start = filters.start
    while start < filters.end:
        end = min(_month(start)[1], filters.end)
        yield from prices.stretches(scope, start, end)
        start = end


def _month(at: datetime) -> tuple[datetime, datetime]:
    """Begin and end of the month (UTC) that holds ``at``."""
    begin = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return begin, (begin + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True, slots=True)
class _Charge:
    """What one queue held of one class at one price. ``hours`` are of its GPUs."""

    cluster: Cluster
    part: PricePeriod
    queue: Queue
    gpu_class: GpuClass
    price: float
    hours: float
    costs: Costs


def _charge(scope: Scope, part: PricePeriod, queue: int, gpu_class: int, costs: Costs) -> _Charge:
    hours = costs.gpu_hours / scope.unit.weights[gpu_class]
    place, kind = scope.queues[queue], scope.classes[gpu_class]
    return _Charge(scope.cluster, part, place, kind, part.prices[gpu_class], hours, costs)


COLUMNS: Mapping[str, Callable[[_Charge], Cell]] = {
    "BillingAccountId": lambda c: c.cluster.name,
    "BillingAccountName": lambda c: c.cluster.name,
    "BillingCurrency": lambda c: c.cluster.currency,
    "BillingPeriodStart": lambda c: _instant(_month(c.part.start)[0]),
    "BillingPeriodEnd": lambda c: _instant(_month(c.part.start)[1]),
    "ChargePeriodStart": lambda c: _instant(c.part.start),
    "ChargePeriodEnd": lambda c: _instant(c.part.end),
    "ChargeCategory": lambda _: "Usage",
    "ChargeClass": lambda _: None,
    "ChargeDescription": lambda c: f"Hours of {c.gpu_class.name} held by {c.queue.path}",
    "ChargeFrequency": lambda _: "Usage-Based",
    "BilledCost": lambda c: c.costs.charged,
    "EffectiveCost": lambda c: c.costs.charged,
    "ContractedCost": lambda c: c.costs.charged,
    "ListCost": lambda c: c.costs.charged,
    "ContractedUnitPrice": lambda c: c.price,
    "ListUnitPrice": lambda c: c.price,
    "PricingCategory": lambda _: "Standard",
    "PricingQuantity": lambda c: c.hours,
    "PricingUnit": lambda _: "GPU-Hours",
    "ConsumedQuantity": lambda c: c.hours,
    "ConsumedUnit": lambda _: "GPU-Hours",
    "ProviderName": lambda _: WHO,
    "PublisherName": lambda _: WHO,
    "InvoiceIssuerName": lambda _: WHO,
    "ServiceCategory": lambda _: "Compute",
    "ServiceSubcategory": lambda _: "Other (Compute)",
    "ServiceName": lambda _: "GPUs",
    "SkuId": lambda c: c.gpu_class.name,
    "SkuMeter": lambda _: "GPU time",
    "SkuPriceDetails": lambda c: json.dumps({"GpuClass": c.gpu_class.name}),
    "SkuPriceId": lambda c: f"{c.gpu_class.name}/{c.price:g}",
    "RegionId": lambda c: c.cluster.name,
    "RegionName": lambda c: c.cluster.name,
    "ResourceId": lambda c: f"{c.cluster.name}/{c.queue.path}",
    "ResourceName": lambda c: c.queue.name,
    "ResourceType": lambda _: "Queue",
    "SubAccountId": lambda c: c.queue.path,
    "SubAccountName": lambda c: c.queue.name,
    "Tags": lambda c: json.dumps({"queue": c.queue.path, "gpu_class": c.gpu_class.name}),
    "x_UsedCost": lambda c: c.costs.used,
    "x_IdleCost": lambda c: c.costs.idle,
    "x_LostCost": lambda c: c.costs.lost,
}


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
