"""Predicted starts as objects of the cluster say them, read again only after a pass of forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from scheduling.cluster.adapters import key_of
from scheduling.models import Cluster, ForecastRun, StartForecast
from scheduling.services.starts.tell import predicted_start


@dataclass(slots=True)
class Etas:
    """Of one cluster, in the memory of its worker."""

    _read: datetime | None = None
    _rows: Mapping[str, StartForecast] = field(default_factory=dict)
    _starts: Mapping[str, datetime] = field(default_factory=dict)
    _words: Mapping[str, str] = field(default_factory=dict)
    _until: datetime | None = None
    """When the next of those told passes."""

    def of(self, cluster: Cluster, now: datetime) -> Mapping[str, datetime]:
        """Engine's name -> the P50 that is said at ``now``, of those where it is to come. One query where
        no pass came between."""
        began = (
            ForecastRun.objects.filter(cluster=cluster).values_list("began_at", flat=True).first()
        )
        if began != self._read:
            self._read, self._rows, self._until = began, _rows(cluster), now
        if self._until is not None and self._until <= now:
            self._say(now)
        return self._starts

    def words(self) -> Mapping[str, str]:
        """The same as "P50/P90", as last read."""
        return self._words

    def _say(self, now: datetime) -> None:
        starts = {name: predicted_start(row, now) for name, row in self._rows.items()}
        self._starts = {name: one.p50 for name, one in starts.items() if one.p50 is not None}
        self._until = min(self._starts.values(), default=None)
        self._words = {
            name: f"{_stamp(one.p50)}/{_stamp(one.p90)}"
            for name, one in starts.items()
            if one.p50 is not None and one.p90 is not None
        }


def _rows(cluster: Cluster) -> dict[str, StartForecast]:
    rows = StartForecast.objects.filter(workload__cluster=cluster).exclude(p50_at=None)
    columns = rows.order_by().values_list(
        "workload__kind", "workload__namespace", "workload__name", "at", "p50_at", "p90_at"
    )
    return {
        key_of(kind, namespace, name): StartForecast(at=at, p50_at=p50, p90_at=p90)
        for kind, namespace, name, at, p50, p90 in columns
    }


def _stamp(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
