"""What sharing is worth: how far work is ahead of the quota of its queue alone, one by one and by queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from scheduling.models import Cluster, Decision, State, Workload
from scheduling.models.workloads import WAITING
from scheduling.services.queues.own_quotas import lead_s

LATE_S, LATE_SHARE = 60.0, 0.05
"""Later than alone is who ends later by more than both: seconds, and a share of its completion time there."""


@dataclass(frozen=True, slots=True)
class QueueLead:
    """Of the workloads of a queue that ended in a period and are known to have begun on its quota alone."""

    ended: int
    late: int
    lead_s: float
    """On average."""


@dataclass(frozen=True, slots=True)
class Late:
    """One that ended later than it would have on the quota of its queue alone, and why."""

    workload: Workload
    late_s: float
    why: str


def ended(cluster: Cluster, since: datetime, until: datetime) -> QuerySet[Workload]:
    """What ran and ended in a period, as far as its start on its own quota is known."""
    return Workload.objects.filter(
        cluster=cluster,
        state=State.FINISHED,
        finished_at__gte=since,
        finished_at__lt=until,
        started_at__isnull=False,
        virtual_start_at__isnull=False,
    )


def by_queue(works: Iterable[Workload]) -> Mapping[int, QueueLead]:
    """Queue id -> how its ``works``, which have ended, fared."""
    leads: dict[int, list[tuple[float, bool]]] = {}
    for work in works:
        lead = _lead_at_end(work)
        if work.queue_id is not None:
            leads.setdefault(work.queue_id, []).append((lead, _is_late(work, lead)))
    return {
        queue: QueueLead(
            len(found), sum(late for _, late in found), sum(lead for lead, _ in found) / len(found)
        )
        for queue, found in leads.items()
    }


def ended_late(works: Iterable[Workload]) -> list[Late]:
    """Those of ``works``, which have ended, that did later than alone, the latest first. One query."""
    late = [(work, lead) for work in works if _is_late(work, lead := _lead_at_end(work))]
    waits = _longest_waits([work for work, _ in late])
    found = [Late(work, -lead, _why(work, waits.get(work.pk, ""))) for work, lead in late]
    return sorted(found, key=lambda one: (-one.late_s, one.workload.pk))


def _lead_at_end(work: Workload) -> float:
    found = lead_s(work, work.finished_at or work.submitted_at)
    return 0.0 if found is None else found


def _is_late(work: Workload, lead: float) -> bool:
    if work.finished_at is None:
        return False
    alone_s = (work.finished_at - work.submitted_at).total_seconds() + lead
    return -lead > LATE_S and -lead > LATE_SHARE * alone_s


def _longest_waits(works: Iterable[Workload]) -> dict[int, str]:
    """Workload id -> the reason of the last wait that the ledger has of it."""
    rows = Decision.objects.filter(workload__in=list(works), action="wait").order_by("id")
    return dict(rows.values_list("workload_id", "reason"))


def _why(work: Workload, reason: str) -> str:
    """The engine's word for its wait; else that it was evicted."""
    if work.eviction_count and not reason:
        return "evicted"
    return reason


def standing(work: Workload, now: datetime) -> float | None:
    """``lead_s`` of work that waits, runs or has ended; None where it is not known."""
    return lead_s(work, work.finished_at or now)


def is_waiting_alone(work: Workload) -> bool:
    """Whether it would still wait on the quota of its queue alone."""
    return work.virtual_start_at is None and work.state in (*WAITING, State.RUNNING, State.ADMITTED)
