"""What is predicted of the rest of runs, for whoever plans ahead: rows that need nothing of the model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from scheduling.models import Cluster, Prediction, State


@dataclass(frozen=True, slots=True)
class Rest:
    """Quantiles of the seconds that are left of a run, from ``at`` on; of one that waits, once it starts."""

    at: datetime
    p10_s: float
    p50_s: float
    p90_s: float


def rests(cluster: Cluster, *, workload_ids: Collection[int] | None = None) -> dict[int, Rest]:
    """By workload: what is predicted of those of ``cluster`` that have not ended, or of these among them."""
    said = Prediction.objects.filter(workload__cluster=cluster)
    said = said.exclude(workload__state=State.FINISHED).order_by()
    if workload_ids is not None:
        said = said.filter(workload__in=workload_ids)
    columns = said.values_list("workload_id", "at", "p10_s", "p50_s", "p90_s")
    return {pk: Rest(at, p10, p50, p90) for pk, at, p10, p50, p90 in columns}
