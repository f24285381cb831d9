"""A week of another recording, mapped on the cluster's queues: told beside the windows of its own past, and
no part of the rule of promotion."""

from __future__ import annotations

import logging
from datetime import timedelta

from scheduling.engine import model as m
from scheduling.services.errors import ServiceError
from scheduling.services.lab import traces
from scheduling.services.lab.mapped import period_of_trace
from scheduling.services.lab.taken import priority_of
from scheduling.services.learned.windows import LEAST_WORKLOADS, WARM_UP, Span
from scheduling.simulation.ahead.period import Period

log = logging.getLogger(__name__)

DAYS = timedelta(days=7)
MOST_JOBS = 4000
"""Of a recording that has more in its first days none is told."""
MOST_LOAD = 1.2
"""GPU-hours asked for, of those that the cluster has: beyond it every order waits without end."""


def taken(world: m.Snapshot) -> tuple[str, Span, Period] | None:
    """(name, days, work) of the first recording that is kept; None where there is none that says anything."""
    for name in traces.kept()[:1]:
        try:
            span, period = _cut(name, world)
        except ServiceError as error:
            log.info("trace %s: %s", name, error)
            continue
        if sum(period.judged) >= LEAST_WORKLOADS and len(period.jobs) <= MOST_JOBS:
            if load_of(world, period) <= MOST_LOAD:
                return name, span, period
            log.info("trace %s asks for more than the cluster has", name)
    return None


def _cut(name: str, world: m.Snapshot) -> tuple[Span, Period]:
    """Raises ServiceError."""
    trace = traces.of_kept(name)
    since = trace.origin + WARM_UP
    end = min(since + DAYS, trace.submitted_at(len(trace) - 1) + timedelta(seconds=1))
    if end <= since:
        raise ServiceError("bad_trace", "The trace is shorter than its warm-up.")
    span = Span.of(since, end)
    period, _ = period_of_trace(trace, world, since, end, WARM_UP, priority_of(world))
    return span, period


def load_of(world: m.Snapshot, period: Period) -> float:
    """GPU-seconds that the period asks for, as a part of what the cluster has in it."""
    has = sum(node.gpus for node in world.nodes if node.ready and not node.dedicated)
    asked = sum(
        job.workload.gpus * job.workload.members.max * job.duration_s for job in period.jobs
    )
    return asked / max(1.0, has * (period.until - period.begin).total_seconds())
