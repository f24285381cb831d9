"""What each user held of late in each leaf: the fairness between users rests on it.

A decayed mean like that of queues, moved on once a minute: u(now) = u(then) d + held (1 - d) with
d = 2^(-span / half-life). Between two moves what users hold now counts in full beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from scheduling.models import Cluster, UserUsage, Workload

Key = tuple[int, str]
"""(queue id, user)"""
EVERY = timedelta(minutes=1)
FORGOTTEN = 1.0
"""A mean below this (milli-GPU) is not kept."""


def at(cluster: Cluster, now: datetime) -> dict[Key, float]:
    """Milli-GPU by queue and user at ``now``; nothing is held since the last move."""
    rows = UserUsage.objects.filter(queue__cluster=cluster)
    return {(row.queue_id, row.user): row.gpus * _decay(cluster, row.at, now) for row in rows}


def move_on(
    cluster: Cluster, workloads: Iterable[Workload], *, since: datetime, now: datetime
) -> bool:
    """Book what ``workloads`` hold for the span from ``since`` to ``now``, if it is a minute or more.

    Returns whether it was. Writes in the caller's transaction.
    """
    if now - since < EVERY:
        return False
    before = at(cluster, now)
    keep = 1.0 - _decay(cluster, since, now)
    gpus = _usage(workloads)
    usage = {key: before.get(key, 0.0) + gpus.get(key, 0) * keep for key in {**before, **gpus}}
    gone = [key for key, gpus in usage.items() if gpus < FORGOTTEN]
    UserUsage.objects.bulk_create(
        [
            UserUsage(queue_id=queue, user=user, gpus=gpus, at=now)
            for (queue, user), gpus in usage.items()
        ],
        update_conflicts=True,
        unique_fields=["queue", "user"],
        update_fields=["gpus", "at"],
        batch_size=200,
    )
    if gone:
        UserUsage.objects.filter(queue__cluster=cluster, gpus__lt=FORGOTTEN).delete()
    return True


def _usage(workloads: Iterable[Workload]) -> Mapping[Key, int]:
    usage: dict[Key, int] = {}
    for work in workloads:
        if work.queue_id is not None and work.allocated_gpus:
            key = work.queue_id, work.user
            usage[key] = usage.get(key, 0) + work.allocated_gpus
    return usage


def _decay(cluster: Cluster, since: datetime, now: datetime) -> float:
    span_s = max(0.0, (now - since).total_seconds())
    return float(2.0 ** (-span_s / max(1, cluster.usage_half_life_s)))
