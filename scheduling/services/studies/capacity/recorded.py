"""How long work really waited, counted as a study counts it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from scheduling.models import Cluster, Outcome, Queue, Workload
from scheduling.models.queues import below


@dataclass(frozen=True, slots=True)
class Recorded:
    p90_s: float
    workloads: int


def recorded(
    cluster: Cluster, begin: datetime, end: datetime, queue: Queue | None = None
) -> Mapping[str, Recorded]:
    """GPU class -> of the work submitted in [begin, end) that asked for it first; seconds. Of ``queue`` and
    all below it, where one is given.

    Who had not started by ``end`` waited until then; who was cancelled before it started is left out.
    """
    rows = Workload.objects.filter(
        cluster=cluster, submitted_at__gte=begin, submitted_at__lt=end, gpus__gt=0
    ).exclude(outcome=Outcome.CANCELLED, first_started_at=None)
    if queue is not None:
        rows = rows.filter(below(queue.cluster_id, queue.path, on="queue__"))
    known = set(cluster.gpu_classes.values_list("name", flat=True))
    waits: dict[str, list[float]] = defaultdict(list)
    for wished, submitted, started in rows.order_by().values_list(
        "gpu_classes", "submitted_at", "first_started_at"
    ):
        first = next((name for name in wished if name in known), "")
        until = end if started is None else min(started, end)
        waits[first].append((until - submitted).total_seconds())
    return {
        name: Recorded(float(np.percentile(found, 90)), len(found)) for name, found in waits.items()
    }
