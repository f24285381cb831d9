"""What the work in and below each queue held, as it is charged: budgets of hours and of money count alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from scheduling.models import Cluster, Queue
from scheduling.services.ledger.singles import WorkFilter
from scheduling.services.ledger.workdays import read_held

HOUR_S = 3600
Hours = Mapping[tuple[int, int], float]
"""GPU-hours (or slice-hours) by (queue id, class id)."""


def hours_below(cluster: Cluster, start: datetime, end: datetime) -> Hours:
    """Of [start, end). Four queries."""
    lines = _lines(cluster)
    found: dict[tuple[int, int], float] = {}
    for kin, gpu_s in read_held(cluster, WorkFilter.all_of(cluster), start, end).items():
        for queue in lines[kin.queue]:
            key = queue, kin.gpu_class
            found[key] = found.get(key, 0.0) + gpu_s / HOUR_S
    return found


def _lines(cluster: Cluster) -> dict[int, list[int]]:
    """Each queue -> itself and all above it."""
    parents = dict(Queue.objects.filter(cluster=cluster).values_list("pk", "parent_id"))
    found: dict[int, list[int]] = {}
    for pk in parents:
        at: int | None = pk
        line = found.setdefault(pk, [])
        while at is not None:
            line.append(at)
            at = parents.get(at)
    return found
