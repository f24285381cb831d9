"""Reservations: for whom GPUs were kept until when, who started by then, and which were given up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from portal.accounts.models import User
from portal.display.csv import Table
from portal.display.format import counted, number, percent
from portal.reports.declaration import Finding, Letter, Report
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope, report_scope
from portal.reports.timelines import workload_filter
from portal.teams.access import visible_workloads
from scheduling.models import Action, Cluster, Decision, Reason, Workload

SHOWN = 100
STARTED, GIVEN_UP, OPEN, WITHDRAWN = CAME = ("started", "given up", "open", "withdrawn")


@dataclass(frozen=True, slots=True)
class Reservation:
    """One stretch in which each line of its workload was a reservation, or a claim on what others leave."""

    work: Workload
    since: datetime
    until: datetime | None
    """The start that was named first."""
    ended: datetime | None
    came: str

    @property
    def later_s(self) -> float | None:
        """Seconds from the time that was named to the start; negative where it started sooner."""
        if self.came != STARTED or self.until is None or self.ended is None:
            return None
        return (self.ended - self.until).total_seconds()


@dataclass(frozen=True)
class ReservationsReport:
    filters: ReportFilters
    all: tuple[Reservation, ...]
    """The newest first."""
    seen: frozenset[int]
    """Workloads that the person may see."""

    @property
    def is_empty(self) -> bool:
        return not self.all

    def count(self, came: str) -> int:
        return sum(one.came == came for one in self.all)

    @property
    def given_up_share(self) -> float | None:
        """Of those on which Weir decided; people withdraw others."""
        over = self.count(GIVEN_UP) + self.count(STARTED)
        return self.count(GIVEN_UP) / over if over else None

    def tables(self) -> tuple[Table, ...]:
        return _queue_table(self.all), _table(
            [o for o in self.all if o.work.pk in self.seen][:SHOWN]
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "reservations",
            "filters": self.filters.as_dict(),
            "reservations": len(self.all),
            "started": self.count(STARTED),
            "given_up": self.count(GIVEN_UP),
            "open": self.count(OPEN),
            "withdrawn": self.count(WITHDRAWN),
            "given_up_share": self.given_up_share,
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def reservations(cluster: Cluster, filters: ReportFilters, user: User) -> ReservationsReport:
    """Three queries. Raises Http404 and ValidationError as ``report_scope`` does."""
    scope = report_scope(cluster, filters, user)
    found = [
        one
        for _, lines in groupby(_lines(scope, filters), key=lambda line: line.workload_id)
        for one in _of_workload(list(lines), filters.end)
        if one.since >= filters.start
    ]
    found.sort(key=lambda one: (one.since, one.work.pk), reverse=True)
    seen = visible_workloads(user).filter(pk__in={one.work.pk for one in found})
    return ReservationsReport(filters, tuple(found), frozenset(seen.values_list("pk", flat=True)))


def _lines(scope: Scope, filters: ReportFilters) -> Iterable[Decision]:
    """News of each workload that had a reservation in the range, in order."""
    wide = Decision.objects.filter(
        workload_filter(filters, "workload__"),
        workload__queue__in=list(scope.leaves),
        cycle__at__gte=filters.start,
        cycle__at__lt=filters.end,
    )
    if filters.gpu_classes:
        wide = wide.filter(gpu_class__in=list(scope.classes))
    reserved = wide.filter(action=Action.RESERVE, reason=Reason.RESERVED).values("workload")
    rows = Decision.objects.filter(
        workload__in=reserved, cycle__at__gte=filters.start, cycle__at__lt=filters.end
    )
    return rows.select_related("workload__queue", "cycle").order_by("workload", "cycle__at", "pk")


def _of_workload(lines: Sequence[Decision], until: datetime) -> Iterator[Reservation]:
    first: Decision | None = None
    for line in lines:
        if line.reason == Reason.RESERVED:
            first = first or line
        elif first and line.reason != Reason.AWAITS_VICTIMS:
            came = STARTED if line.action == Action.ADMIT else GIVEN_UP
            yield Reservation(first.workload, first.cycle.at, first.until, line.cycle.at, came)
            first = None
    if first:
        yield _last(first, until)


def _last(first: Decision, until: datetime) -> Reservation:
    """Of which no line up to ``until`` says what came: it may have ended by somebody's hand."""
    ended = first.workload.finished_at
    if ended is None or ended >= until:
        return Reservation(first.workload, first.cycle.at, first.until, None, OPEN)
    return Reservation(first.workload, first.cycle.at, first.until, ended, WITHDRAWN)


def _queue_table(found: Sequence[Reservation]) -> Table:
    columns = ("queue", "reservations", "started", "given_up", "open", "withdrawn", "mean_later_s")
    by_queue: dict[str, list[Reservation]] = {}
    for one in found:
        by_queue.setdefault(one.work.queue.path if one.work.queue else "", []).append(one)
    rows = [
        (
            queue, len(mine), *(sum(o.came == came for o in mine) for came in CAME),
            _mean([one.later_s for one in mine if one.later_s is not None]),
        )
        for queue, mine in sorted(by_queue.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]  # fmt: skip
    return Table("queues", "By queue", columns, rows)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _table(found: Sequence[Reservation]) -> Table:
    columns = (
        "workload",
        "uid",
        "queue",
        "gpus",
        "since",
        "start_named",
        "ended",
        "came",
        "later_s",
    )
    rows = [
        (
            one.work.name, one.work.uid, one.work.queue_label,
            one.work.gpus * one.work.min_members / 1000,
            one.since, one.until, one.ended, one.came, one.later_s,
        )
        for one in found
    ]  # fmt: skip
    return Table("single", "Single reservations", columns, rows)


def finding(report: ReservationsReport) -> Finding:
    bold = f"{counted(len(report.all), 'reservation')}"
    if report.given_up_share is not None:
        bold += f", of which {percent(report.given_up_share)} were given up"
    late = [one.later_s for one in report.all if one.later_s is not None]
    if not late:
        return Finding(f"{bold}.")
    by_then = sum(seconds <= 0 for seconds in late)
    rest = f"{number(by_then)} of {counted(len(late), 'start')} came no later than the time that was named."
    return Finding(f"{bold}.", rest)


REPORT = Report(
    "reservations", "Reservations",
    "For whom GPUs were kept until when, who started by then, and which were given up.",
    reservations, finding,
    Letter("queues", "queue", (("reservations", "{} reservations"), ("given_up", "{} given up"))),
)  # fmt: skip
