"""Capacity: how many GPUs of which class hold an SLO of waits, and when demand passes what there is.

Curves come from a study, demand from the forecast report of the whole cluster. Waits are seconds, GPUs those
of the class (slices where it has slices).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.display.units import unit
from portal.reports.filters import ReportFilters
from portal.reports.forecast import ClassAhead, Crossing, ForecastReport, forecast
from scheduling.models import MILLI, Cluster, GpuClass, Queue, Study, StudyKind, StudyState
from scheduling.services.ledger.ready import Means, ready_in
from scheduling.services.studies.capacity.curves import (
    Curve,
    NeededGpus,
    Rung,
    curves_of,
    needed,
    recorded,
)

RANGE = "30d"
"""Of the demand that is known."""
LEAST_LATER = timedelta(days=1)
"""Of what came, to hold an earlier study against."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One class: its SLO, the curve of the study and what demand is forecast; each may be missing."""

    gpu_class: GpuClass
    curve: Curve | None
    ahead: ClassAhead | None
    queue: Queue | None = None
    """Whose own quota the curve is of; None: all work on all nodes."""

    @property
    def slo_s(self) -> int | None:
        return self.gpu_class.wait_slo_s

    @property
    def unit(self) -> str:
        return unit(self.gpu_class)

    @property
    def installed(self) -> float | None:
        """When the study was made; without one, now."""
        if self.curve is not None:
            return self.curve.installed
        return self.ahead.installed if self.ahead is not None else None

    @property
    def needed(self) -> NeededGpus | None:
        """None without an SLO, and where the study has too little to tell."""
        if self.curve is None or self.slo_s is None or not self.curve.is_told:
            return None
        return needed(self.curve.rungs, self.slo_s)

    @property
    def over(self) -> float | None:
        """Installed above needed; negative is short of it."""
        found = self.needed
        if found is None or found.gpus is None or self.curve is None:
            return None
        return self.curve.installed - found.gpus

    @property
    def state(self) -> str:
        """ "no study", "too few", "no SLO set", "never", "missed" or "holds"."""
        if self.curve is None:
            return "no study"
        if not self.curve.is_told:
            return "too few"
        if self.slo_s is None:
            return "no SLO set"
        if all(rung.median_s > self.slo_s for rung in self.curve.rungs):
            return "never"
        return "missed" if self.curve.as_it_is.median_s > self.slo_s else "holds"

    def passes(self, gpus: float | None) -> Crossing | None:
        """When the weekly mean of the demand first exceeds ``gpus``; None where no forecast is told."""
        if self.ahead is None or gpus is None:
            return None
        return replace(self.ahead, capacity=gpus).passing


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What an earlier study told of a class as it was, and what came in the days after it."""

    study: Study
    until: datetime
    gpu_class: GpuClass
    gpus: float
    """Of the rung that comes nearest to what was ready in those days."""
    forecast: Rung
    came_s: float
    workloads: int
    demand: float | None = None
    """Of those days by that of the study's: 1.2 is a fifth more; None where nobody worked it out."""
    again: Rung | None = None
    """What came replayed on as many GPUs: the part of the difference that is no other demand."""

    @property
    def holds(self) -> bool:
        """Whether what came lies in the middle 90 % of the replays."""
        return _holds(self.forecast, self.came_s)


def _holds(rung: Rung, came_s: float) -> bool:
    return rung.low_s <= came_s <= rung.high_s


@dataclass(frozen=True)
class CapacityReport:
    cluster: Cluster
    study: Study | None
    answers: tuple[Answer, ...]
    came: tuple[Hindsight, ...]
    forecast: ForecastReport
    queue: Queue | None = None

    def answer(self, name: str) -> Answer | None:
        """That of the class called ``name``, else of the one that is most pressing."""
        named = next((one for one in self.answers if one.gpu_class.name == name), None)
        return named or min(self.answers, key=_pressing, default=None)

    def tables(self) -> tuple[Table, ...]:
        return (
            _class_table(self),
            _curve_table(self),
            _came_table(self),
            *self.forecast.tables()[1:],
        )

    def as_dict(self) -> dict[str, Any]:
        study = self.study
        row = None
        if study is not None:
            row = {
                "id": study.pk, "state": study.state, "progress": study.progress, "author": study.author,
                "begin": study.period[0].isoformat(), "end": study.period[1].isoformat(), "days": study.days,
                "queue": self.queue.path if self.queue else "",
                "step_gpus": study.question["step_gpus"] / MILLI,
                "replications": study.replays, "cpu_s": round(study.cpu_s, 1), "fault": study.fault,
            }  # fmt: skip
        tables = {table.name: table.as_dicts() for table in self.tables()}
        return {"report": "capacity", "cluster": self.cluster.name, "study": row, **tables}


def _pressing(one: Answer) -> tuple[int, float]:
    order = ("never", "missed", "holds", "no SLO set", "too few", "no study")
    ratio = 0.0
    if one.curve is not None and one.curve.rungs and one.slo_s:
        ratio = one.curve.as_it_is.median_s / one.slo_s
    return order.index(one.state), -ratio


def studies_of(cluster: Cluster) -> QuerySet[Study]:
    """The one that looked at the latest days first; without what only a worker reads."""
    rows = Study.objects.filter(cluster=cluster, kind=StudyKind.CAPACITY)
    return rows.defer("world", "work").order_by("-end", "-id")


def newest_study(cluster: Cluster, queue: Queue | None = None) -> Study | None:
    """Of ``queue`` (None: all) the newest study that has told something, else the newest."""
    rows = studies_of(cluster).select_related("queue").filter(queue=queue)
    return rows.filter(state=StudyState.DONE).first() or rows.first()


def capacity(
    cluster: Cluster, study: Study | None, user: User, queue: Queue | None = None
) -> CapacityReport:
    """Of ``queue``, or of that of the study, without what is ahead: demand is forecast of the whole cluster.
    Raises Http404 where the person has no report here."""
    queue = study.queue if study is not None else queue
    ahead = forecast(cluster, ReportFilters.last(RANGE, cluster.now()), user)
    curves = {curve.gpu_class: curve for curve in curves_of(study)} if study else {}
    rows = {row.gpu_class.name: row for row in ahead.rows}
    if queue is not None:
        mine = [one for one in cluster.gpu_classes.all() if one.name in curves or not curves]
        answers = tuple(Answer(one, curves.get(one.name), None, queue) for one in mine)
        return CapacityReport(cluster, study, answers, (), ahead, queue)
    answers = tuple(
        Answer(one, curves.get(one.name), rows.get(one.name)) for one in cluster.gpu_classes.all()
    )
    return CapacityReport(cluster, study, answers, _hindsights(cluster), ahead)


def _hindsights(cluster: Cluster) -> tuple[Hindsight, ...]:
    """Of the newest study after which as many days have come as it looked back on, else of the oldest after
    which a day has come."""
    now = cluster.now()
    old = studies_of(cluster).filter(queue=None, state=StudyState.DONE, end__lte=now - LEAST_LATER)
    study = _whole(old, now) or old.last()
    if study is None:
        return ()
    begin, end = study.period
    until = min(now, end + timedelta(days=study.days))
    came = recorded(cluster, end, until)
    classes = {one.name: one for one in cluster.gpu_classes.all()}
    before, then = (ready_in(cluster, *window) for window in ((begin, end), (end, until)))
    again = _again(cluster, study, until)
    found = []
    for curve in curves_of(study):
        name = curve.gpu_class
        if not curve.is_told or name not in came:
            continue
        ready = then[name].ready / MILLI if name in then else curve.installed
        rung = nearest(curve.rungs, ready)
        found.append(
            Hindsight(
                study, until, classes[name], rung.gpus, rung, came[name].p90_s, came[name].workloads,
                _ratio(before.get(name), then.get(name)), _same(again.get(name), rung.gpus),
            )
        )  # fmt: skip
    return tuple(found)


def nearest(rungs: Sequence[Rung], gpus: float) -> Rung:
    """Of equals the smaller."""
    return min(rungs, key=lambda rung: (abs(rung.gpus - gpus), rung.gpus))


def _ratio(before: Means | None, then: Means | None) -> float | None:
    if before is None or then is None or not before.demand or then.demand is None:
        return None
    return then.demand / before.demand


def _again(cluster: Cluster, study: Study, until: datetime) -> dict[str, Curve]:
    """Curves of the study that has lived the days after ``study``, where there is one, to within a day."""
    near = (until - timedelta(days=1), until + timedelta(days=1))
    rows = studies_of(cluster).filter(queue=None, state=StudyState.DONE, end__range=near)
    others = (one for one in rows.exclude(pk=study.pk) if one.days == study.days)
    other = next(others, None)
    return {one.gpu_class: one for one in curves_of(other)} if other else {}


def _same(curve: Curve | None, gpus: float) -> Rung | None:
    return curve.rung(gpus) if curve is not None and curve.is_told else None


def _whole(old: QuerySet[Study], now: datetime) -> Study | None:
    return next((one for one in old if one.period[1] + timedelta(days=one.days) <= now), None)


def _class_table(report: CapacityReport) -> Table:
    columns = (
        "gpu_class", "installed", "slo_s", "recorded_p90_s", "workloads", "replayed_p90_s", "needed",
        "needed_low_edge", "needed_high_edge", "over", "passes_p50", "passes_early", "passes_late", "state",
    )  # fmt: skip
    return Table("classes", "By GPU class", columns, [_class_row(one) for one in report.answers])


def _class_row(one: Answer) -> tuple[Cell, ...]:
    curve, found, at = one.curve, one.needed, one.passes(one.installed)
    return (
        one.gpu_class.name, one.installed, one.slo_s,
        curve.recorded_p90_s if curve else None, curve.workloads if curve else None,
        curve.as_it_is.median_s if curve and curve.is_told else None,
        *((found.gpus, found.low, found.high) if found else (None, None, None)),
        one.over,
        *((at.middle, at.early, at.late) if at else (None, None, None)),
        one.state,
    )  # fmt: skip


def _curve_table(report: CapacityReport) -> Table:
    columns = (
        "gpu_class",
        "steps_more",
        "gpus",
        "p90_median_s",
        "p90_low_s",
        "p90_high_s",
        "replays",
        "passes_p50",
    )
    rows = [
        _rung_row(one, rung)
        for one in report.answers
        if one.curve is not None
        for rung in one.curve.rungs
    ]
    return Table("curve", "P90 wait against GPUs", columns, rows)


def _rung_row(one: Answer, rung: Rung) -> tuple[Cell, ...]:
    at = one.passes(rung.gpus)
    return (
        one.gpu_class.name, rung.nodes, rung.gpus, rung.median_s, rung.low_s, rung.high_s,
        len(rung.p90_s), at.middle if at else None,
    )  # fmt: skip


def _came_table(report: CapacityReport) -> Table:
    columns = (
        "gpu_class", "gpus", "made_at", "until", "told_p90_s", "told_low_s", "told_high_s", "came_p90_s",
        "workloads", "in_band", "demand_ratio", "again_p90_s", "again_low_s", "again_high_s",
    )  # fmt: skip
    rows: Sequence[Iterable[Cell]] = [
        (
            one.gpu_class.name, one.gpus, one.study.period[1], one.until, one.forecast.median_s,
            one.forecast.low_s, one.forecast.high_s, one.came_s, one.workloads, str(one.holds).lower(),
            one.demand,
            *((one.again.median_s, one.again.low_s, one.again.high_s) if one.again else (None, None, None)),
        )
        for one in report.came
    ]  # fmt: skip
    return Table(
        "came", "What an earlier study told, and what came", columns, [tuple(r) for r in rows]
    )
