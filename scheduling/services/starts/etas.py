"""Predicted starts as objects of the cluster say them, read again only after a pass of forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from scheduling.cluster.adapters import key_of
from scheduling.models import Cluster, ForecastRun, StartForecast


@dataclass(slots=True)
class Etas:
    """Of one cluster, in the memory of its worker."""

    _read: datetime | None = None
    _told: Mapping[str, str] = field(default_factory=dict)

    def of(self, cluster: Cluster) -> Mapping[str, str]:
        """Engine's name -> "P50/P90". One query where no pass came between."""
        began = (
            ForecastRun.objects.filter(cluster=cluster).values_list("began_at", flat=True).first()
        )
        if began != self._read:
            self._read, self._told = began, _told(cluster)
        return self._told


def _told(cluster: Cluster) -> dict[str, str]:
    rows = StartForecast.objects.filter(workload__cluster=cluster).exclude(p50_at=None)
    columns = rows.values_list(
        "workload__kind", "workload__namespace", "workload__name", "p50_at", "p90_at"
    )
    return {
        key_of(kind, namespace, name): f"{_stamp(p50)}/{_stamp(p90)}"
        for kind, namespace, name, p50, p90 in columns
        if p50 is not None and p90 is not None
    }


def _stamp(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
