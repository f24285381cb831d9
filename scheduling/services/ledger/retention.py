"""How long things are kept, in cluster time; running it again drops nothing more."""

from __future__ import annotations

from datetime import datetime

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
    Workload,
)
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.lifetimes import (
    CONTESTED_KEPT,
    CYCLES_KEPT,
    FORECASTS_KEPT,
    HOURS_KEPT,
    MINUTES_KEPT,
    MOST_RUNS,
    RECORDS_KEPT,
    RUNS_KEPT,
    USE_KEPT,
)
from scheduling.services.ledger.workdays import rolled_to

ACTS = ("admit", "evict")
"""Decisions that are kept as long as their work: what was done to whom, and why."""


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
    outcomes = ForecastOutcome.objects.filter(workload__cluster=cluster)
    gone += outcomes.filter(told_at__lt=now - FORECASTS_KEPT).delete()[0]
    used = GpuUse.objects.filter(workload__cluster=cluster, start__lt=now - USE_KEPT)
    idled = IdleSpell.objects.filter(workload__cluster=cluster, until__lt=now - USE_KEPT)
    gone += used.delete()[0] + idled.delete()[0]
    old = Cycle.objects.filter(cluster=cluster, at__lt=now - CYCLES_KEPT)
    gone += Decision.objects.filter(cycle__in=old).exclude(action__in=ACTS).delete()[0]
    gone += old.exclude(decisions__action__in=ACTS).exclude(evictions__isnull=False).delete()[0]
    return gone + _runs(cluster, now)


def _runs(cluster: Cluster, now: datetime) -> int:
    """Drop work that ended long ago, as far as its days are rolled up; how many rows."""
    until = min(now - RUNS_KEPT, rolled_to(cluster) or now - RUNS_KEPT)
    old = Workload.objects.filter(cluster=cluster, finished_at__lt=until).order_by("finished_at")
    some = list(old.values_list("pk", flat=True)[:MOST_RUNS])
    return Workload.objects.filter(pk__in=some).delete()[0] if some else 0


def _records(cluster: Cluster, now: datetime) -> int:
    """Drop old records of cycles; how many."""
    records = CycleRecord.objects.filter(cycle__cluster=cluster)
    plain = records.filter(cycle__at__lt=now - RECORDS_KEPT, cycle__evicted=0)
    old = records.filter(cycle__at__lt=now - CONTESTED_KEPT)
    return plain.delete()[0] + old.delete()[0]
