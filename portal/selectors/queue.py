"""What the queue page shows of one queue and GPU class, each figure from one place. Milli-GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Count, F, Q, Subquery, Sum, TextField
from django.db.models.functions import Cast

from portal.accounts.models import User
from portal.display.division import Division
from portal.display.entitlement import Figures, axis
from portal.display.format import duration, zone
from portal.display.spread import Spread
from portal.display.steps import Frame, Sample, StepChart, area, line, line_labels
from portal.selectors.loans import loans_in
from portal.selectors.overview import Since, first_of, visible_evictions, waiting_since
from portal.selectors.run_times import end_of
from portal.teams.access import visible_workloads
from portal.teams.reading import seen_of
from scheduling.models import Cluster, Eviction, GpuClass, Node, Queue, Share, UsageSample, Workload
from scheduling.models.ledger import Resolution
from scheduling.models.queues import below
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services.queues import leads

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

DAYS = 7
EVEN_S = 60.0
"""Less than that is neither ahead nor behind."""
ROWS = 10
"""Of what waits, and of what runs; the list of workloads has the rest."""
SIZES = ((2, "1–2 GPUs"), (8, "3–8 GPUs"), (32, "9–32 GPUs"), (None, "33 and more"))
"""Upper bounds in GPUs of the whole gang."""


def subtree(queue: Queue) -> Q:
    """Condition on ``queue``: itself or below."""
    return below(queue.cluster_id, queue.path, on="queue__")


@dataclass(frozen=True, slots=True)
class Lead:
    """How far what ended in a subtree was ahead of the quota of its own queue alone, on average."""

    ended: int
    late: int
    lead_s: float

    @property
    def text(self) -> str:
        if abs(self.lead_s) < EVEN_S:
            return "As on its own quota"
        word = "ahead of" if self.lead_s > 0 else "behind"
        return f"{duration(abs(self.lead_s))} {word} its own quota"


def lead(cluster: Cluster, queue: Queue, now: datetime) -> Lead:
    """Of the last days. One query."""
    works = leads.ended(cluster, now - timedelta(days=DAYS), now).filter(subtree(queue))
    found = leads.by_queue(works).values()
    ended = sum(one.ended for one in found)
    total_s = sum(one.lead_s * one.ended for one in found)
    return Lead(ended, sum(one.late for one in found), total_s / ended if ended else 0.0)


def division(
    cluster: Cluster,
    user: User,
    gpu_class: GpuClass,
    shares: Iterable[Share],
    tree: Sequence[Queue],
) -> Division:
    """The newest division of the class. One query, and three more where something is lent."""
    ready = Node.objects.filter(cluster=cluster, gpu_class=gpu_class, ready=True).aggregate(
        gpus=Sum(F("gpus") - F("foreign_gpus"))
    )
    shares = list(shares)
    return Division.of(
        shares,
        tree,
        ready["gpus"] or 0,
        seen_of(user, tree),
        {queue: by for (queue, _), by in loans_in(shares, cluster).items()},
    )


@dataclass(frozen=True)
class NextInLine:
    """The first in planned order, and how many there are of which demand."""

    rows: list[WithAnnotations[Workload, Since]]
    count: int
    gpus: int

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True, slots=True)
class Sums:
    """How much of a subtree waits and accepts a class, and how much holds it. GPUs in milli."""

    waiting: int
    asked_gpus: int
    holding: int
    held_gpus: int


def sums(queue: Queue, user: User, gpu_class: GpuClass) -> Sums:
    """Of what ``user`` sees. One query."""
    mine = visible_workloads(user).filter(subtree(queue), state__in=(*WAITING, *HOLDING))
    waits = Q(state__in=WAITING) & _accepts(gpu_class)
    holds = Q(state__in=HOLDING, gpu_class=gpu_class)
    found = mine.annotate(classes=NAMES).aggregate(
        waiting=Count("id", filter=waits),
        asked_gpus=Sum(F("gpus") * F("min_members"), filter=waits, default=0),
        holding=Count("id", filter=holds),
        held_gpus=Sum(F("gpus") * F("members"), filter=holds, default=0),
    )
    return Sums(**found)


NAMES = Cast("gpu_classes", TextField())


def _accepts(gpu_class: GpuClass) -> Q:
    """Condition on a workload with its ``NAMES`` as ``classes``."""
    return Q(gpu_classes=[]) | Q(classes__contains=f'"{gpu_class.name}"')


def pending(queue: Queue, user: User, gpu_class: GpuClass, of: Sums) -> NextInLine:
    """What waits in the subtree and accepts the class: by queue, then in the plan's order. One query."""
    mine = waiting_since(visible_workloads(user).filter(subtree(queue)))
    mine = mine.annotate(classes=NAMES).filter(_accepts(gpu_class))
    place = F("position").asc(nulls_last=True)
    ordered = mine.order_by("queue__path", place, "since", "id")
    return NextInLine(first_of(ordered, ROWS) if of.waiting else [], of.waiting, of.asked_gpus)


@dataclass(frozen=True)
class RunningWorkload:
    """A workload that holds GPUs, and what protects it from reclaim."""

    workload: Workload
    protection: str
    protected_until: datetime | None
    ends: tuple[datetime, datetime] | None
    """P50 and P90, as learned."""


@dataclass(frozen=True)
class Holding:
    rows: list[RunningWorkload]
    count: int
    gpus: int

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


def running(
    queue: Queue, user: User, gpu_class: GpuClass, of: Sums, by: Division, now: datetime
) -> Holding:
    """What holds the class in the subtree, longest first. One query."""
    mine = visible_workloads(user).filter(subtree(queue), state__in=HOLDING, gpu_class=gpu_class)
    ordered = mine.select_related("queue", "priority_class", "prediction").order_by(
        "started_at", "id"
    )
    first = ordered[:ROWS] if of.holding else ()
    rows = [
        RunningWorkload(w, *protection(w, by.share(w.queue), now), end_of(w))
        for w in first
        if w.queue
    ]
    return Holding(rows, of.holding, of.held_gpus)


def protection(work: Workload, share: Share, now: datetime) -> tuple[str, datetime | None]:
    """(why it stays, until when): the strongest of the rules that hold for it now."""
    kind = work.priority_class
    if kind is not None and not kind.preemptible:
        return "not preemptible", None
    if kind is not None and work.started_at is not None:
        until = work.started_at + timedelta(seconds=kind.min_run_time_s)
        if until > now:
            return "min run time to", until
    if share.allocated <= share.nominal:
        return "inside nominal", None
    if share.allocated <= share.fair_share:
        return "inside fair share", None
    return "may be reclaimed", None


@dataclass(frozen=True)
class Waits:
    """Waits of what started in the last seven days, by size of the gang, and the week before."""

    sizes: list[tuple[str, Spread]]
    every: Spread
    before: Spread | None
    """None where work is not known for all of it."""


def waits(queue: Queue, gpu_class: GpuClass, now: datetime) -> Waits:
    """From submission to first start, seconds. One query."""
    begin = now - timedelta(days=DAYS)
    earlier = begin - timedelta(days=DAYS)
    first = Workload.objects.filter(cluster=queue.cluster_id).order_by("submitted_at")
    started = (
        Workload.objects.filter(
            subtree(queue),
            gpu_class=gpu_class,
            first_started_at__gte=earlier,
            first_started_at__lte=now,
        )
        .annotate(known_since=Subquery(first.values("submitted_at")[:1]))
        .values_list("first_started_at", "submitted_at", "gpus", "min_members", "known_since")
    )
    this: list[tuple[float, float]] = []
    before: list[float] = []
    is_known = False
    for at, submitted, size, members, since in started.iterator():
        is_known = is_known or since <= earlier
        if at is None:  # excluded by the range; said for the types
            continue
        wait = (at - submitted).total_seconds()
        if at >= begin:
            this.append((size * members / 1000, wait))
        else:
            before.append(wait)
    week_before = _spread(before) if is_known else None
    return Waits(_by_size(this), _spread([wait for _, wait in this]), week_before)


def _by_size(waits: Sequence[tuple[float, float]]) -> list[tuple[str, Spread]]:
    rows, least = [], 0.0
    for most, name in SIZES:
        top = float("inf") if most is None else most
        inside = [wait for size, wait in waits if least < size <= top]
        if inside:
            rows.append((name, _spread(inside)))
        least = top
    return rows


def _spread(seconds: Sequence[float]) -> Spread:
    return Spread.of(np.array(seconds, dtype=np.float64))


@dataclass(frozen=True)
class QueueEviction:
    """An eviction seen from one queue."""

    eviction: Eviction
    direction: str
    """'in': for this queue; 'out': from it; 'inside': both."""


def evictions(
    cluster: Cluster, queue: Queue, user: User, gpu_class: GpuClass, tree: Iterable[Queue]
) -> list[QueueEviction]:
    """The newest of the class from, for and inside the subtree."""
    inside = [one.pk for one in tree if one.is_within(queue)]
    either = Q(queue__in=inside) | Q(for_queue__in=inside)
    rows = visible_evictions(cluster, user).filter(either, gpu_class=gpu_class)
    shown = rows.select_related(
        "workload__queue", "queue", "for_queue", "for_workload__queue", "gpu_class"
    )[:8]
    return [QueueEviction(row, _direction(row, queue)) for row in shown]


def _direction(row: Eviction, top: Queue) -> str:
    if row.queue is None or not row.queue.is_within(top):
        return "in"
    return "inside" if row.for_queue is None or row.for_queue.is_within(top) else "out"


@dataclass(frozen=True, kw_only=True)
class History(StepChart):
    """Seven days; hours are added up a while after they have passed, so it ends before now."""

    table: list[UsageSample]


def history(queue: Queue, gpu_class: GpuClass, now: datetime, zone_name: str) -> History | None:
    """Hourly means of the last seven days; None while there are none. One query."""
    begin = (now - timedelta(days=DAYS)).astimezone(zone(zone_name))
    samples = list(
        UsageSample.objects.filter(
            queue=queue,
            gpu_class=gpu_class,
            resolution=Resolution.HOUR,
            start__gte=begin,
            start__lt=now,
        ).order_by("start")
    )
    if not samples:
        return None
    fields = ("allocated_gpus", "fair_share_gpus", "nominal_gpus")
    top = max(getattr(sample, field) for sample in samples for field in fields)
    frame = Frame(begin, now.astimezone(begin.tzinfo), axis([Figures(top, 0, 0, top, top)]))
    drawn = {
        name: frame.stretches(Sample(s.start, 3600, getattr(s, name)) for s in samples)
        for name in fields
    }
    last = samples[-1]
    return History(
        axis=frame.axis,
        days=frame.days(),
        area=area(drawn["allocated_gpus"]),
        allocated=line(drawn["allocated_gpus"]),
        fair_share=line(drawn["fair_share_gpus"]),
        nominal=line(drawn["nominal_gpus"]),
        labels=line_labels(
            frame,
            [
                ("fair share", last.fair_share_gpus),
                ("nominal", last.nominal_gpus),
                ("allocated", last.allocated_gpus),
            ],
            gap=9,
        ),
        table=samples,
        until=last.start + timedelta(hours=1),
    )
