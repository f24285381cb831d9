"""How long things are kept, in cluster time; running it again drops nothing more."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from scheduling.models import (
    Cluster,
    Cycle,
    CycleRecord,
    Decision,
    ForecastOutcome,
    GpuUse,
    IdleSpell,
    UsageSample,
)
from scheduling.models.ledger import Resolution

MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=400)
CYCLES_KEPT = timedelta(days=30)
RECORDS_KEPT = timedelta(days=1)
"""Of cycles that only started work."""
FORECASTS_KEPT = timedelta(days=90)
USE_KEPT = timedelta(days=90)
"""What single workloads did with their GPUs; queues and classes keep it in their samples."""
CONTESTED_KEPT = timedelta(days=14)
"""Of cycles that took GPUs from somebody."""
ACTS = ("admit", "evict")
"""Decisions that are kept for ever: what was done to whom, and why."""


@transaction.atomic
def retain(cluster: Cluster) -> int:
    """Drop old minutes, hours, waits and the cycles that only waited; how many rows went.

    Cuts at whole hours and days, so that no period is left half.
    """
    now = cluster.now()
    minutes = (now - MINUTES_KEPT).replace(minute=0, second=0, microsecond=0)
    hours = (now - HOURS_KEPT).replace(hour=0, minute=0, second=0, microsecond=0)
    samples = UsageSample.objects.filter(queue__cluster=cluster)
    gone = samples.filter(resolution=Resolution.MINUTE, start__lt=minutes).delete()[0]
    gone += samples.filter(resolution=Resolution.HOUR, start__lt=hours).delete()[0]
    gone += _records(cluster, now)
    told = ForecastOutcome.objects.filter(workload__cluster=cluster)
    gone += told.filter(told_at__lt=now - FORECASTS_KEPT).delete()[0]
    used = GpuUse.objects.filter(workload__cluster=cluster, start__lt=now - USE_KEPT)
    idled = IdleSpell.objects.filter(workload__cluster=cluster, until__lt=now - USE_KEPT)
    gone += used.delete()[0] + idled.delete()[0]
    old = Cycle.objects.filter(cluster=cluster, at__lt=now - CYCLES_KEPT)
    gone += Decision.objects.filter(cycle__in=old).exclude(action__in=ACTS).delete()[0]
    gone += old.exclude(decisions__action__in=ACTS).exclude(evictions__isnull=False).delete()[0]
    return gone


def _records(cluster: Cluster, now: datetime) -> int:
    """Drop old records of cycles; how many."""
    records = CycleRecord.objects.filter(cycle__cluster=cluster)
    plain = records.filter(cycle__at__lt=now - RECORDS_KEPT, cycle__evicted=0)
    old = records.filter(cycle__at__lt=now - CONTESTED_KEPT)
    return plain.delete()[0] + old.delete()[0]
