"""Costs as other tools of finance read them: rows of the FinOps FOCUS specification, version 1.2.

A row is what one leaf queue held of one GPU class in a stretch without a change of price, cut at months,
which are the billing periods. ``x_`` begins columns of Weir's own, as the specification wants it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from portal.display.csv import Cell, Table
from portal.reports import prices
from portal.reports.costs import Costs, cells_of
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from scheduling.services.ledger.prices import PricePeriod

WHO = "Weir"


def focus(scope: Scope, filters: ReportFilters) -> Table:
    """Its ``BilledCost`` adds up to what showback charges over the same range."""
    rows = [
        _row(scope, part, queue, gpu_class, costs)
        for part in _parts(scope, filters)
        for (queue, gpu_class), costs in sorted(cells_of(scope, filters, [part]).items())
    ]
    return Table("focus", "Costs in FOCUS 1.2", COLUMNS, [tuple(row.values()) for row in rows])


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


def _row(
    scope: Scope, part: PricePeriod, queue: int, gpu_class: int, costs: Costs
) -> dict[str, Cell]:
    place, kind, price = scope.queues[queue], scope.classes[gpu_class], part.prices[gpu_class]
    begin, end = _month(part.start)
    hours = costs.gpu_hours / scope.unit.weights[gpu_class]
    charged = costs.charged
    return {
        "BillingAccountId": scope.cluster.name,
        "BillingAccountName": scope.cluster.name,
        "BillingCurrency": scope.cluster.currency,
        "BillingPeriodStart": _instant(begin),
        "BillingPeriodEnd": _instant(end),
        "ChargePeriodStart": _instant(part.start),
        "ChargePeriodEnd": _instant(part.end),
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": f"Hours of {kind.name} held by {place.path}",
        "ChargeFrequency": "Usage-Based",
        "BilledCost": charged,
        "EffectiveCost": charged,
        "ContractedCost": charged,
        "ListCost": charged,
        "ContractedUnitPrice": price,
        "ListUnitPrice": price,
        "PricingCategory": "Standard",
        "PricingQuantity": hours,
        "PricingUnit": "GPU-Hours",
        "ConsumedQuantity": hours,
        "ConsumedUnit": "GPU-Hours",
        "ProviderName": WHO,
        "PublisherName": WHO,
        "InvoiceIssuerName": WHO,
        "ServiceCategory": "Compute",
        "ServiceSubcategory": "Other (Compute)",
        "ServiceName": "GPUs",
        "SkuId": kind.name,
        "SkuMeter": "GPU time",
        "SkuPriceDetails": json.dumps({"GpuClass": kind.name}),
        "SkuPriceId": f"{kind.name}/{price:g}",
        "RegionId": scope.cluster.name,
        "RegionName": scope.cluster.name,
        "ResourceId": f"{scope.cluster.name}/{place.path}",
        "ResourceName": place.name,
        "ResourceType": "Queue",
        "SubAccountId": place.path,
        "SubAccountName": place.name,
        "Tags": json.dumps({"queue": place.path, "gpu_class": kind.name}),
        "x_UsedCost": costs.used,
        "x_IdleCost": costs.idle,
        "x_LostCost": costs.lost,
    }


COLUMNS = (
    "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodStart",
    "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd", "ChargeCategory", "ChargeClass",
    "ChargeDescription", "ChargeFrequency", "BilledCost", "EffectiveCost", "ContractedCost",
    "ListCost", "ContractedUnitPrice", "ListUnitPrice", "PricingCategory", "PricingQuantity",
    "PricingUnit", "ConsumedQuantity", "ConsumedUnit", "ProviderName", "PublisherName",
    "InvoiceIssuerName", "ServiceCategory", "ServiceSubcategory", "ServiceName", "SkuId", "SkuMeter",
    "SkuPriceDetails", "SkuPriceId", "RegionId", "RegionName", "ResourceId", "ResourceName",
    "ResourceType", "SubAccountId", "SubAccountName", "Tags", "x_UsedCost", "x_IdleCost", "x_LostCost",
)  # fmt: skip


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
