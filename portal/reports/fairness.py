"""Fairness: what sharing was worth to whom, against the quota of each queue alone, and who lost by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.reports.entitlements import Entitlement, entitlement
from portal.reports.filters import ReportFilters
from portal.reports.outages import Outage, outage_table, outages
from portal.reports.scope import Scope, report_scope
from portal.reports.timelines import workload_filter
from portal.teams.access import visible_workloads
from scheduling.models import Cluster, Workload, headline
from scheduling.services.queues.leads import Late, QueueLead, by_queue, ended, ended_late

LATE_SHOWN = 50
EVICTED = "evicted"


@dataclass(frozen=True)
class LeafLead:
    """A leaf: ``lead_s`` is how much earlier its work was on average than on its own quota alone."""

    name: str
    path: str
    ended: int
    late: int
    lead_s: float

    @property
    def late_share(self) -> float:
        return self.late / self.ended


@dataclass(frozen=True)
class LateRow:
    """One that ended later than alone; ``cause`` is the code of its wait, ``why`` in words."""

    work: Workload
    late_s: float
    cause: str
    why: str


@dataclass(frozen=True)
class FairnessReport:
    """Of work that ended in the range and is known to have begun on its queue's quota alone."""

    filters: ReportFilters
    queues: tuple[LeafLead, ...]
    """Those that sharing is worth most to first."""
    late: tuple[LateRow, ...]
    """That the person may see, the latest first."""
    late_all: int
    causes: tuple[tuple[str, int], ...]
    """Why those that are late were, in words, the most frequent first; they add up."""
    entitlement: Entitlement | None
    """None where nothing was sampled, or a user or type is asked for."""
    down: tuple[Outage, ...]

    @property
    def ended(self) -> int:
        return sum(row.ended for row in self.queues)

    @property
    def lead_s(self) -> float:
        """On average over all of it."""
        total = sum(row.lead_s * row.ended for row in self.queues)
        return total / self.ended if self.ended else 0.0

    @property
    def is_empty(self) -> bool:
        return not self.ended and self.entitlement is None

    def tables(self) -> tuple[Table, ...]:
        return (
            _queue_table(self), _late_table(self), _entitled_table(self), _lent_table(self),
            _starved_table(self), outage_table(self.down),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "fairness",
            "filters": self.filters.as_dict(),
            "ended": self.ended,
            "mean_lead_s": round(self.lead_s, 1),
            "ended_later_than_alone": self.late_all,
            "causes": dict(self.causes),
            "jain_of_received_over_entitled": self.entitlement.jain if self.entitlement else None,
            "jain_before": self.entitlement.jain_before if self.entitlement else None,
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def fairness(cluster: Cluster, filters: ReportFilters, user: User) -> FairnessReport:
    """Nine queries, and three more to compare. Raises Http404 and ValidationError as
    ``report_scope`` does.
    """
    scope = report_scope(cluster, filters, user)
    works = list(_ended(scope, filters))
    late = ended_late(works)
    seen = _visible_ids(user, late)
    return FairnessReport(
        filters=filters,
        queues=_rows(scope, by_queue(works)),
        late=tuple(_late(one) for one in late if one.workload.pk in seen)[:LATE_SHOWN],
        late_all=len(late),
        causes=_causes(late),
        entitlement=entitlement(scope, filters),
        down=outages(scope, filters),
    )


def _ended(scope: Scope, filters: ReportFilters) -> QuerySet[Workload]:
    rows = ended(scope.cluster, filters.start, filters.end).filter(workload_filter(filters))
    rows = rows.filter(queue__in=scope.leaves, gpu_class__in=scope.classes)
    return rows.select_related("queue")


def _visible_ids(user: User, late: Sequence[Late]) -> set[int]:
    rows = visible_workloads(user).filter(pk__in=[one.workload.pk for one in late])
    return set(rows.values_list("pk", flat=True))


def _rows(scope: Scope, leads: Any) -> tuple[LeafLead, ...]:
    found = [_row(scope, pk, lead) for pk, lead in leads.items()]
    return tuple(sorted(found, key=lambda row: (-row.lead_s, row.path)))


def _row(scope: Scope, pk: int, lead: QueueLead) -> LeafLead:
    queue = scope.queues[pk]
    return LeafLead(queue.name, queue.path, lead.ended, lead.late, lead.lead_s)


def _late(one: Late) -> LateRow:
    return LateRow(one.workload, one.late_s, one.why, why(one.why))


def _causes(late: Sequence[Late]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for one in late:
        counts[why(one.why)] = counts.get(why(one.why), 0) + 1
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def why(cause: str) -> str:
    """The code of a wait in words."""
    if cause == EVICTED:
        return "Evicted"
    return headline(cause) if cause else "Not known: its waits are no longer kept"


def _queue_table(report: FairnessReport) -> Table:
    columns = ("queue", "path", "ended", "mean_lead_s", "ended_later", "ended_later_share")
    rows = [
        (row.name, row.path, row.ended, row.lead_s, row.late, row.late_share)
        for row in report.queues
    ]
    return Table("queues", "What sharing was worth", columns, rows)


def _late_table(report: FairnessReport) -> Table:
    columns = ("workload", "uid", "queue", "user", "ended_at", "late_s", "cause", "why")
    rows = [
        (
            row.work.name, row.work.uid, row.work.queue_label, row.work.user,
            row.work.finished_at, row.late_s, row.cause, row.why,
        )
        for row in report.late
    ]  # fmt: skip
    return Table("late", "Ended later than alone", columns, rows)


def _entitled_table(report: FairnessReport) -> Table:
    columns = (
        "queue",
        "entitled_gpu_hours",
        "received_gpu_hours",
        "received_share",
        "starved_hours",
    )
    found = report.entitlement
    rows: list[tuple[Cell, ...]] = [
        (row.path, row.entitled, row.received, row.part, row.starved_hours)
        for row in (found.queues if found else ())
    ]
    return Table("entitled", "Received against entitled", columns, rows)


def _lent_table(report: FairnessReport) -> Table:
    found = report.entitlement
    rows: list[tuple[Cell, ...]] = [
        (lender, borrower, float(found.lending.of[i, j]))
        for i, lender in enumerate(found.lending.lenders if found else ())
        for j, borrower in enumerate(found.lending.borrowers if found else ())
        if found is not None
    ]
    return Table("lent", "Who lent whom", ("lender", "borrower", "gpu_hours"), rows)


def _starved_table(report: FairnessReport) -> Table:
    found = report.entitlement
    rows: list[tuple[Cell, ...]] = [
        (one.queue, one.gpu_class, one.since, one.hours, one.gpus, one.why)
        for one in (found.starved if found else ())
    ]
    return Table(
        "starved",
        "Starved longest",
        ("queue", "gpu_class", "since", "hours", "gpus_short", "why"),
        rows,
    )
