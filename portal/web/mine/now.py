"""What of the person's own work waits and runs, and what of it needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from portal.accounts.models import User
from portal.display.units import gpus_each
from portal.selectors.queue import protection
from portal.selectors.reasons import Ends, ended_by
from portal.selectors.workloads import Row, rows
from portal.web.frame.division import shares_of
from portal.web.mine.active import Active
from portal.web.mine.ahead import BarParts, Span, TimeAxis
from scheduling.models import Cluster, Share, State, Workload
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
    drawn: BarParts
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
class WorkPart:
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
    waiting: WorkPart
    running: WorkPart

    @property
    def lines(self) -> list[WorkOnAxis]:
        return [*self.waiting.lines, *self.running.lines]


def now_and_next(cluster: Cluster, user: User, active: Sequence[Active]) -> Now:
    """Of ``active``, all that is the person's. Three queries at most, and one more once a revision, however
    much work there is."""
    now = cluster.now()
    waiting = sorted((one for one in active if one.is_waiting), key=_planned)
    holding = sorted((one for one in active if not one.is_waiting), key=_newest, reverse=True)
    shown = _read([one.pk for one in (*waiting[:MOST], *holding[:MOST])])
    spans = [(row, _span(row, now)) for row in rows(cluster, shown, user)]
    axis = TimeAxis.over((span for _, span in spans), now)
    shares = shares_of(cluster)
    lines = [_line(row, span, axis, shares, now) for row, span in spans]
    demand, usage = _sums(cluster, waiting, holding)
    return Now(
        axis,
        WorkPart([line for line in lines if line.work.is_waiting], len(waiting), demand),
        WorkPart([line for line in lines if not line.work.is_waiting], len(holding), usage),
    )


def _sums(
    cluster: Cluster, waiting: Sequence[Active], holding: Sequence[Active]
) -> tuple[float, float]:
    """Asked for and held; milli-GPU, a slice counts its part."""
    classes = list(cluster.gpu_classes.all())
    by_id = {c.pk: float(gpus_each(c)) for c in classes}
    by_name = {c.name: float(gpus_each(c)) for c in classes}
    wished = (by_name.get(next(iter(one.gpu_classes), ""), 1.0) for one in waiting)
    on = (by_id.get(one.gpu_class_id or 0, 1.0) for one in holding)
    return (
        sum(one.gpus * one.min_members * each for one, each in zip(waiting, wished, strict=True)),
        sum(one.gpus * one.members * each for one, each in zip(holding, on, strict=True)),
    )


def _planned(one: Active) -> tuple[bool, int, datetime, int]:
    """By the place that the plan gives, what has none last."""
    return one.position is None, one.position or 0, one.submitted_at, one.pk


def _newest(one: Active) -> tuple[datetime, int]:
    return one.submitted_at, one.pk


def _read(ids: Sequence[int]) -> list[Workload]:
    """Whole rows, in the order of ``ids``."""
    related = ("queue", "gpu_class", "priority_class", "cluster", "start_forecast__gpu_class")
    found = Workload.objects.select_related(*related).in_bulk(ids)
    return [found[pk] for pk in ids if pk in found]


def _line(
    row: Row, span: Span, axis: TimeAxis, shares: Mapping[int, Mapping[int, Share]], now: datetime
) -> WorkOnAxis:
    work = row.workload
    of_class = {} if work.is_waiting else shares.get(work.gpu_class_id or 0, {})
    share = of_class.get(work.queue_id or 0)
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
