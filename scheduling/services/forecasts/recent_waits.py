"""How long starts have waited of late, by queue, GPU class and size: whether waiting for a class pays."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from statistics import median

from django.utils.functional import cached_property

from scheduling.models import Cluster, Workload

WINDOW = timedelta(hours=24)
MOST_READ = 5000
MOST, LEAST = 20, 3
"""Starts that one figure is of; fewer than the least say nothing."""


class RecentWaits:
    """Of one cluster, over the last ``WINDOW`` before ``now``. One query, once it is asked."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster, self._now = cluster, now

    @cached_property
    def _starts(self) -> dict[tuple[int | None, str], list[tuple[int, float]]]:
        found: dict[tuple[int | None, str], list[tuple[int, float]]] = defaultdict(list)
        rows = Workload.objects.filter(
            cluster=self._cluster, first_started_at__gt=self._now - WINDOW
        )
        rows = rows.exclude(gpu_class=None).order_by("-first_started_at")[:MOST_READ]
        columns = rows.values_list(
            "queue_id", "gpu_class__name", "gpus", "min_members", "submitted_at", "first_started_at"
        )
        for queue, name, gpus, members, submitted, began in columns:
            if began is not None:
                waited_s = (began - submitted).total_seconds()
                found[queue, name].append((gpus * members, waited_s))
        return found

    def typical_s(self, work: Workload, gpu_class: str) -> float | None:
        """The median wait, in seconds, of the latest starts in its queue that asked for at least half as
        many GPUs; None where there were too few."""
        size = work.gpus * work.min_members
        began = self._starts.get((work.queue_id, gpu_class), [])
        waits = [waited_s for gpus, waited_s in began if 2 * gpus >= size][:MOST]
        return median(waits) if len(waits) >= LEAST else None
