"""Why a start was late: the largest of what happened between the forecast and it, in GPU-hours.

Failures of nodes, holds and edits are not forecast. Runs that lasted beyond what was told, and work that
came after and went before, are; which of the two took more GPU-hours from it is the cause.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from scheduling.models import Cause, ForecastOutcome, QuotaChange, Transition, UsageSample, Workload
from scheduling.models.ledger import Resolution

DOWN_SHARE = 0.02
"""Part of the capacity that is worth speaking of."""


def cause_of(outcome: ForecastOutcome) -> tuple[Cause, str]:
    """And the figures behind it, without names: who may see the workload need not see the others.
    ``started_at`` is known.
    """
    work, begin = outcome.workload, outcome.told_at
    end = outcome.started_at or begin
    if _held(work, begin, end):
        return Cause.HELD, "Its user held it back."
    if said := _edited(work, begin, end):
        return Cause.QUOTA_EDITED, said
    if said := _down(outcome, begin, end):
        return Cause.NODES_DOWN, said
    longer, more = _overrun(outcome, end), _arrived(outcome, end)
    if max(longer, more) <= 0:
        return Cause.UNKNOWN, ""
    if longer >= more:
        return Cause.RUNS_LONGER, f"What ran then held {longer:,.0f} GPU-hours past its P90 start."
    return Cause.MORE_ARRIVED, f"Later arrivals took {more:,.0f} GPU-hours before it started."


def _held(work: Workload, begin: datetime, end: datetime) -> bool:
    steps = Transition.objects.filter(workload=work, at__gte=begin, at__lte=end)
    return work.held or steps.filter(reason="held").exists()


def _edited(work: Workload, begin: datetime, end: datetime) -> str:
    edits = QuotaChange.objects.filter(cluster=work.cluster, at__gte=begin, at__lte=end)
    count = edits.count()
    return (
        f"Quotas were edited {count} time{'' if count == 1 else 's'} in between." if count else ""
    )


def _down(outcome: ForecastOutcome, begin: datetime, end: datetime) -> str:
    """Whether fewer GPUs were ready in between than when it was told."""
    samples = UsageSample.objects.filter(
        queue__cluster=outcome.workload.cluster,
        queue__parent=None,
        gpu_class=outcome.gpu_class,
        resolution__in=(Resolution.MINUTE, Resolution.HOUR),
        ready_gpus__gt=0,
    ).order_by("start")
    before = samples.filter(start__lte=begin).last()
    least = samples.filter(start__gte=begin, start__lte=end).order_by("ready_gpus").first()
    if before is None or least is None:
        return ""
    lost = before.ready_gpus - least.ready_gpus
    if lost <= DOWN_SHARE * before.ready_gpus:
        return ""
    return f"{lost / 1000:,.0f} GPUs fewer were ready."


def _overrun(outcome: ForecastOutcome, end: datetime) -> float:
    """GPU-hours that who ran when it was told held between the told P90 and its start."""
    late = outcome.told_at.timestamp() + outcome.p90_s
    held = _beside(outcome).filter(first_started_at__lte=outcome.told_at)
    return sum(_hours(row, late, end.timestamp()) for row in held)


def _arrived(outcome: ForecastOutcome, end: datetime) -> float:
    """GPU-hours held before its start by who was submitted after it was told."""
    came = _beside(outcome).filter(submitted_at__gt=outcome.told_at, first_started_at__lte=end)
    begin = outcome.told_at.timestamp()
    return sum(_hours(row, begin, end.timestamp()) for row in came)


def _beside(outcome: ForecastOutcome) -> QuerySet[Workload]:
    """Others of its class that had not ended when it was told."""
    rows = Workload.objects.filter(cluster=outcome.workload.cluster, gpu_class=outcome.gpu_class)
    open_then = Q(finished_at=None) | Q(finished_at__gt=outcome.told_at)
    return rows.filter(open_then).exclude(pk=outcome.workload_id).exclude(first_started_at=None)


def _hours(row: Workload, begin_s: float, end_s: float) -> float:
    """GPU-hours that it held within the span."""
    start_s = row.first_started_at.timestamp() if row.first_started_at else end_s
    stop_s = row.finished_at.timestamp() if row.finished_at else end_s
    span_s = min(end_s, stop_s) - max(begin_s, start_s)
    return max(0.0, span_s) / 3600 * row.gpus * (row.members or row.max_members) / 1000
