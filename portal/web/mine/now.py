"""What of the person's own work waits and runs, and what of it needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import F, QuerySet

from portal.accounts.models import User
from portal.display.units import gpus_each
from portal.selectors.queue import protection
from portal.selectors.reasons import Ends, ended_by
from portal.selectors.workloads import Row, rows
from portal.web.mine.ahead import Drawn, Span, TimeAxis
from portal.web.workloads.sorting import BY_STATE, in_order
from scheduling.models import Cluster, Share, State, Workload
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services.starts.tell import predicted_start

MOST = 10
"""Rows shown of what waits, and of what runs; the list has the rest."""
NEEDS_OWNER: Final = ended_by(Ends.OWNER)
"""Reasons that no wait ends: whoever submitted it has to change something."""


@dataclass(frozen=True, slots=True)
class WorkOnAxis:
    """A workload on the axis of time, and what may end its stay."""

    row: Row
    span: Span
    drawn: Drawn
    protection: str = ""
    protected_until: datetime | None = None

    @property
    def work(self) -> Workload:
        return self.row.workload

    @property
    def needs_owner(self) -> bool:
        return self.work.is_waiting and self.work.reason in NEEDS_OWNER

    @property
    def may_be_reclaimed(self) -> bool:
        return self.protection == "may be reclaimed"


@dataclass(frozen=True, slots=True)
class Part:
    """What waits, or what runs: the first of it, and how much there is in all."""

    lines: Sequence[WorkOnAxis]
    count: int
    gpus: float

    @property
    def more(self) -> int:
        return self.count - len(self.lines)


@dataclass(frozen=True, slots=True)
class Now:
    axis: TimeAxis
    waiting: Part
    running: Part

    @property
    def lines(self) -> list[WorkOnAxis]:
        return [*self.waiting.lines, *self.running.lines]


def own(cluster: Cluster, user: User) -> QuerySet[Workload]:
    """What the person submitted, wherever it runs."""
    name = user.get_username()
    return Workload.objects.filter(cluster=cluster, user=name).exclude(user="")


def now_and_next(cluster: Cluster, user: User) -> Now:
    """Six queries at most, however much work there is."""
    now = cluster.now()
    wait, hold = _sizes(cluster, user)
    shown = _first(cluster, user, WAITING) if wait else []
    shown += _first(cluster, user, HOLDING) if hold else []
    shares = _shares(shown)
    spans = [(row, _span(row, now)) for row in rows(cluster, shown, user)]
    axis = TimeAxis.over((span for _, span in spans), now)
    lines = [_line(row, span, axis, shares, now) for row, span in spans]
    return Now(
        axis,
        Part([line for line in lines if line.work.is_waiting], len(wait), sum(wait)),
        Part([line for line in lines if not line.work.is_waiting], len(hold), sum(hold)),
    )


def _sizes(cluster: Cluster, user: User) -> tuple[list[float], list[float]]:
    """What each asks for that waits, and what each holds; milli-GPU, a slice counts its part."""
    each = {c.name: float(gpus_each(c)) for c in cluster.gpu_classes.all()}
    wait: list[float] = []
    hold: list[float] = []
    active = own(cluster, user).filter(state__in=(*WAITING, *HOLDING))
    for state, gpus, least, size, names, name in active.values_list(
        "state", "gpus", "min_members", "members", "gpu_classes", "gpu_class__name"
    ):
        if state in WAITING:
            wait.append(gpus * least * each.get(next(iter(names), ""), 1.0))
        else:
            hold.append(gpus * size * each.get(name or "", 1.0))
    return wait, hold


def _first(cluster: Cluster, user: User, states: Sequence[str]) -> list[Workload]:
    mine = own(cluster, user).filter(state__in=states)
    ordered = in_order(mine, BY_STATE, cluster.now())
    if states == WAITING:
        ordered = mine.order_by(F("position").asc(nulls_last=True), "submitted_at", "id")
    related = ("queue", "gpu_class", "priority_class", "cluster", "start_forecast__gpu_class")
    return list(ordered.select_related(*related)[:MOST])


def _shares(work: Sequence[Workload]) -> dict[tuple[int | None, int | None], Share]:
    running = [w for w in work if not w.is_waiting]
    rows = Share.objects.filter(
        queue__in={w.queue_id for w in running if w.queue_id},
        gpu_class__in={w.gpu_class_id for w in running if w.gpu_class_id},
    )
    return {(share.queue_id, share.gpu_class_id): share for share in rows}


def _line(
    row: Row,
    span: Span,
    axis: TimeAxis,
    shares: dict[tuple[int | None, int | None], Share],
    now: datetime,
) -> WorkOnAxis:
    work = row.workload
    share = None if work.is_waiting else shares.get((work.queue_id, work.gpu_class_id))
    if share is None:
        return WorkOnAxis(row, span, axis.draw(span))
    return WorkOnAxis(row, span, axis.draw(span), *protection(work, share, now))


def _span(row: Row, now: datetime) -> Span:
    work = row.workload
    if work.is_waiting:
        forecast = getattr(work, "start_forecast", None)
        if forecast is None:
            return Span(row.since, False)
        start = predicted_start(forecast, now)
        return Span(row.since, False, start.p50, start.p90, why_not=start.why_not)
    if work.state != State.RUNNING or work.started_at is None:
        return Span(row.since, True)
    p50, p90 = (
        None if seconds is None else work.started_at + timedelta(seconds=seconds)
        for seconds in (work.predicted_p50_s, work.predicted_p90_s)
    )
    limit = work.run_time_limit_s
    latest = None if limit is None else work.started_at + timedelta(seconds=limit)
    if p50 is None or p90 is None or p50 <= now:
        p50 = p90 = None
    return Span(row.since, True, p50, p90, latest)
