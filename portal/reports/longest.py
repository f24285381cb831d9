"""Longest waits: who waited longest and why, and what all waiting was for.

Counted is the time from submission to the first start, as far as it lies in the range. What a workload waited
for is read from the ledger: each reason holds from the cycle that gave it until the next one that gave
another; before the first cycle that saw it the first reason is taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.reports import samples
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope, report_scope
from portal.reports.timelines import workload_filter
from portal.teams.access import visible_workloads
from scheduling.models import Action, Cluster, Decision, Reason, Workload
from scheduling.services.ledger.holds import LAST_CLASS
from scheduling.services.tables.among import among
from scheduling.services.tables.instants import Epoch

SHOWN = 12
WAITING_FOR = (Action.WAIT, Action.RESERVE)


@dataclass(frozen=True, slots=True)
class WaitCause:
    """What several reasons have in common, and what shortens such waits."""

    name: str
    title: str
    remedy: str
    reasons: frozenset[Reason]


CAUSES = (
    WaitCause("share", "Past share or nominal", "quota, or another class", frozenset({
        Reason.ABOVE_FAIR_SHARE, Reason.WAITS_FOR_QUOTA, Reason.NON_PREEMPTIBLE_OVER_NOMINAL,
    })),
    WaitCause("limit", "At a limit", "a higher limit", frozenset({
        Reason.AT_LIMIT, Reason.HOURS_SPENT, Reason.QUEUE_AT_JOB_LIMIT, Reason.USER_AT_LIMIT,
    })),
    WaitCause("order", "Behind others in order", "order; more capacity", frozenset({
        Reason.WAITS_FOR_TURN, Reason.RESERVED_FOR_OTHER, Reason.KEPT_FOR_SHORT,
    })),
    WaitCause("room", "No free room", "more capacity", frozenset({
        Reason.NO_FREE_GPUS, Reason.NO_FREE_CPUS, Reason.NO_FREE_MEMORY, Reason.NO_FREE_OTHER,
        Reason.NO_ROOM_ON_ITS_NODES,
    })),
    WaitCause("down", "Nodes down", "repair", frozenset({Reason.NODES_OUT})),
    WaitCause("fragmented", "Fragmented", "consolidation; smaller pods", frozenset({
        Reason.FRAGMENTED, Reason.NO_ROOM_IN_TOPOLOGY, Reason.NO_ROOM_FOR_SEGMENTS,
    })),
    WaitCause("victims", "Waits for victims", "shorter min run time", frozenset({
        Reason.AWAITS_VICTIMS, Reason.RESERVED, Reason.VICTIMS_PROTECTED, Reason.BUDGET_SPENT,
        Reason.EVICTION_CAP,
    })),
    WaitCause("asked", "Held, or as it was asked", "its owner", frozenset({
        Reason.HELD, Reason.NEVER_FITS, Reason.MISROUTED, Reason.NO_SUCH_CLASS, Reason.NOT_ALLOWED,
        Reason.GANG_INCOMPLETE, Reason.RUN_TIME_OVER, Reason.NOT_BEFORE, Reason.AFTER_OTHERS,
        Reason.ARRAY_AT_LIMIT,
    })),
    WaitCause("unknown", "Not known", "its waits are no longer kept", frozenset()),
)  # fmt: skip
UNKNOWN = CAUSES[-1]
QUOTA = ("share", "limit")
"""Causes that another quota would end."""
BY_REASON: Mapping[str, WaitCause] = {
    reason.value: cause for cause in CAUSES for reason in cause.reasons
}


class WorkloadWait(NamedTuple):
    """Of one workload, seconds within the range: in all, and by cause."""

    pk: int
    queue: int
    begin_s: float
    total_s: float
    by_cause: Mapping[str, float]

    @property
    def mostly(self) -> list[str]:
        """Names of its causes, the longest first."""
        return sorted(self.by_cause, key=lambda name: -self.by_cause[name])


@dataclass(frozen=True, slots=True)
class LongestRow:
    """``said`` is the last decision that gave the cause of most of its wait; None where that is not known."""

    work: Workload
    waited: WorkloadWait
    said: Decision | None = None


@dataclass(frozen=True, slots=True)
class CauseRow:
    cause: WaitCause
    hours: float
    workloads: int


@dataclass(frozen=True)
class LongestReport:
    filters: ReportFilters
    rows: tuple[LongestRow, ...]
    """Of work that the person may see."""
    causes: tuple[CauseRow, ...]
    """The longest first; they add up to all waiting."""
    queues: tuple[tuple[str, float, int], ...]
    """(path, hours, workloads) of each leaf, the longest first."""
    count: int
    """Workloads that waited within the range at all."""
    longest_hours: float
    """That the longest hundredth of them took together."""
    longest_count: int
    before_quota_share: float | None

    @property
    def hours(self) -> float:
        return sum(row.hours for row in self.causes)

    @property
    def is_empty(self) -> bool:
        return not self.count

    def share(self, *names: str) -> float:
        """Part of all waiting that these causes took."""
        mine = sum(row.hours for row in self.causes if row.cause.name in names)
        return mine / self.hours if self.hours else 0.0

    def tables(self) -> tuple[Table, ...]:
        return _longest_table(self), _cause_table(self), _queue_table(self)

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "longest",
            "filters": self.filters.as_dict(),
            "workloads": self.count,
            "hours": round(self.hours, 3),
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def longest(cluster: Cluster, filters: ReportFilters, user: User) -> LongestReport:
    """Seven queries, and two more to compare. Raises as ``report_scope`` does."""
    scope = report_scope(cluster, filters, user)
    found = sorted(waited(scope, filters), key=lambda one: (-one.total_s, one.pk))
    top = found[: max(1, len(found) // 100)]
    return LongestReport(
        filters=filters,
        rows=_rows(user, found, filters.end),
        causes=_causes(found),
        queues=_queues(scope, found),
        count=len(found),
        longest_hours=sum(one.total_s for one in top) / 3600,
        longest_count=len(top),
        before_quota_share=_before(scope, filters),
    )


def waited(scope: Scope, filters: ReportFilters) -> Iterator[WorkloadWait]:
    """Each workload that waited within the range. Two queries."""
    start_s, end_s = filters.start.timestamp(), filters.end.timestamp()
    works = _works(scope, filters)
    reasons = _reasons(works, filters.end)
    columns = works.values_list(
        "pk", "queue_id", Epoch("submitted_at"), Epoch("first_started_at"), Epoch("finished_at")
    )
    for pk, queue, submitted_s, started_s, finished_s in columns:
        begin = max(start_s, submitted_s)
        end = end_s if started_s is None else min(end_s, started_s)
        end = end if finished_s is None else min(end, finished_s)
        if end > begin:
            course = reasons.get(pk, [])
            yield WorkloadWait(pk, queue, begin, end - begin, _by_cause(course, begin, end))


def _works(scope: Scope, filters: ReportFilters) -> QuerySet[Workload]:
    """Those whose first wait reaches into the range; what never ran is of the class it asks for first."""
    begun = Q(first_started_at=None, finished_at=None) | Q(first_started_at__gt=filters.start)
    never = Q(first_started_at=None, finished_at__gt=filters.start)
    rows = Workload.objects.filter(
        begun | never,
        workload_filter(filters),
        among("queue", scope.leaves),
        cluster=scope.cluster,
        submitted_at__lt=filters.end,
    )
    if filters.gpu_classes:
        names = [gpu_class.name for gpu_class in scope.classes.values()]
        asks = Q(held_class=None, gpu_classes__0__in=names)
        ran = Q(held_class__in=list(scope.classes))
        rows = rows.annotate(held_class=LAST_CLASS).filter(ran | asks)
    return rows.order_by()


def _reasons(works: QuerySet[Workload], end: datetime) -> dict[int, list[tuple[float, str]]]:
    """Workload -> (since when, why), in order."""
    rows = Decision.objects.filter(
        workload__in=works.values("pk"), action__in=WAITING_FOR, cycle__at__lt=end
    )
    lines = rows.order_by("workload_id", "cycle__at").values_list(
        "workload_id", Epoch("cycle__at"), "reason"
    )
    return {
        pk: [(at, reason) for _, at, reason in mine]
        for pk, mine in groupby(lines, key=lambda row: row[0])
    }


def _by_cause(course: Sequence[tuple[float, str]], begin: float, end: float) -> dict[str, float]:
    if not course:
        return {UNKNOWN.name: end - begin}
    spent: dict[str, float] = defaultdict(float)
    for i, (at, reason) in enumerate(course):
        since = begin if i == 0 else max(begin, at)
        until = min(end, course[i + 1][0]) if i + 1 < len(course) else end
        if until > since:
            spent[BY_REASON.get(reason, UNKNOWN).name] += until - since
    return dict(spent)


def _rows(user: User, found: Sequence[WorkloadWait], end: datetime) -> tuple[LongestRow, ...]:
    """The first of those that the person may see; looked for among many times as many."""
    first = found[: SHOWN * 20]
    seen = visible_workloads(user).filter(pk__in=[one.pk for one in first])
    works = seen.select_related("queue", "cluster", "gpu_class").in_bulk()
    shown = [one for one in first if one.pk in works][:SHOWN]
    said = _said(shown, end)
    return tuple(LongestRow(works[one.pk], one, said.get(one.pk)) for one in shown)


def _said(shown: Sequence[WorkloadWait], end: datetime) -> dict[int, Decision]:
    """By workload. One query."""
    mostly = {one.pk: one.mostly[0] for one in shown}
    rows = Decision.objects.filter(
        workload__in=list(mostly), action__in=WAITING_FOR, cycle__at__lt=end
    )
    course = rows.select_related("workload__queue", "for_workload__queue").order_by("cycle__at")
    return {
        row.workload_id: row
        for row in course
        if BY_REASON.get(row.reason, UNKNOWN).name == mostly[row.workload_id]
    }


def _causes(found: Iterable[WorkloadWait]) -> tuple[CauseRow, ...]:
    hours: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for one in found:
        for name, seconds in one.by_cause.items():
            hours[name] += seconds / 3600
            counts[name] += 1
    rows = [CauseRow(cause, hours[cause.name], counts[cause.name]) for cause in CAUSES]
    return tuple(sorted((row for row in rows if row.workloads), key=lambda row: -row.hours))


def _queues(scope: Scope, found: Iterable[WorkloadWait]) -> tuple[tuple[str, float, int], ...]:
    hours: dict[int, float] = defaultdict(float)
    counts: dict[int, int] = defaultdict(int)
    for one in found:
        hours[one.queue] += one.total_s / 3600
        counts[one.queue] += 1
    rows = [(scope.queues[pk].path, hours[pk], counts[pk]) for pk in hours]
    return tuple(sorted(rows, key=lambda row: (-row[1], row[0])))


def _before(scope: Scope, filters: ReportFilters) -> float | None:
    """What part of waiting was quota in the period before; None where none is compared with, where work does
    not reach back to its begin, or where of most of it the reason is not known."""
    if not filters.compare or not samples.has_work(scope, filters.before()):
        return None
    spent: dict[str, float] = defaultdict(float)
    for one in waited(scope, filters.before()):
        for name, seconds in one.by_cause.items():
            spent[name] += seconds
    total = sum(spent.values())
    if 2 * spent[UNKNOWN.name] >= total:
        return None
    return sum(spent[name] for name in QUOTA) / total


def _longest_table(report: LongestReport) -> Table:
    names = [cause.name for cause in CAUSES]
    columns = ("workload", "uid", "queue", "user", "gpus", "submitted_at", "waited_s",
               *(f"{name}_s" for name in names))  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            row.work.name, row.work.uid, row.work.queue_label, row.work.user,
            row.work.gpus * row.work.min_members / 1000, row.work.submitted_at, row.waited.total_s,
            *(row.waited.by_cause.get(name, 0.0) for name in names),
        )
        for row in report.rows
    ]  # fmt: skip
    return Table("longest", "Who waited longest", columns, rows)


def _cause_table(report: LongestReport) -> Table:
    columns = ("cause", "hours", "share", "workloads", "what_shortens_it")
    rows = [
        (row.cause.title, row.hours, report.share(row.cause.name), row.workloads, row.cause.remedy)
        for row in report.causes
    ]
    return Table("causes", "All waiting by reason", columns, rows)


def _queue_table(report: LongestReport) -> Table:
    return Table("queues", "All waiting by queue", ("path", "hours", "workloads"), report.queues)
