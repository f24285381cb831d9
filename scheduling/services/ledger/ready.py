"""What was ready, installed and wanted of each class in a time that is over, as samples have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, FloatField, Sum

from scheduling.models import Cluster, UsageSample
from scheduling.models.ledger import Resolution


@dataclass(frozen=True, slots=True)
class Means:
    """Means over ``seconds``, milli-GPU; ``demand`` is None where nobody worked it out."""

    ready: float
    installed: float
    demand: float | None
    seconds: float


def ready_in(cluster: Cluster, begin: datetime, end: datetime) -> dict[str, Means]:
    """By GPU class of [begin, end), as far as samples of it are kept: by hours; by days where more of them
    are kept, by minutes where those are not rolled up yet."""
    found: dict[str, Means] = {}
    sampled = _sampled(cluster, begin, end)
    for resolution in (Resolution.HOUR, Resolution.DAY, Resolution.MINUTE):
        for of, name, known in sampled:
            if of == resolution and (name not in found or known.seconds > found[name].seconds):
                found[name] = known
    return found


def _sampled(cluster: Cluster, begin: datetime, end: datetime) -> list[tuple[str, str, Means]]:
    """(resolution, class, what is known). One query."""
    rows = UsageSample.objects.filter(
        start__gte=begin, start__lt=end, queue__cluster=cluster, queue__parent=None
    )
    sums = {
        name: Sum(F(f"{name}_gpus") * F("seconds"), output_field=FloatField())
        for name in ("ready", "installed", "demand")
    }
    keys = ("resolution", "gpu_class__name")
    samples = rows.order_by().values(*keys).annotate(**sums, known_s=Sum("seconds"))
    return [(*(row[key] for key in keys), _means(row)) for row in samples if row["known_s"]]


def _means(row: Mapping[str, Any]) -> Means:
    seconds, demand = row["known_s"], row["demand"]
    return Means(
        row["ready"] / seconds,
        row["installed"] / seconds,
        None if demand is None else demand / seconds,
        seconds,
    )
