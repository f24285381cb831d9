"""What work held and how it ended, by queue, class, user and type: from single workloads, rolled up by day.

Whole days that are rolled up are read as such, the edges of a range and what is newer from single workloads,
so a range of any length is exact and costs what its days cost. A day is rolled up when it is over, and again
for ``LATE`` after that: work may be seen late.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Greatest

from scheduling.models import (
    Cluster,
    Eviction,
    GpuUse,
    Outcome,
    Transition,
    WorkDay,
    Workload,
)
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.holds import OF_STEP
from scheduling.services.ledger.lives import Stretch, Whose, stretches_of
from scheduling.services.ledger.rollup import floor
from scheduling.services.tables.instants import Epoch
from scheduling.services.tables.passes import keep, last_of, mark_of, places_of

DAY = timedelta(days=1)
LATE = timedelta(days=2)
MOST_DAYS = 60
"""With work; of a past that nobody rolled up yet, so many in one pass."""
TASK = "roll up days"
EVER_S = float("-inf")


@dataclass(frozen=True, slots=True, order=True)
class Kin:
    """Work that is told together; queue and class by id."""

    queue: int
    gpu_class: int
    user: str
    type: str


@dataclass(slots=True)
class Work:
    """GPU-seconds and counts, as ``WorkDay`` has them."""

    held_gpu_s: float = 0.0
    measured_gpu_s: float = 0.0
    active_gpu_s: float = 0.0
    lost_gpu_s: float = 0.0
    evictions: int = 0
    started: int = 0
    waited_s: float = 0.0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    succeeded_gpu_s: float = 0.0
    failed_gpu_s: float = 0.0
    cancelled_gpu_s: float = 0.0

    def add(self, other: Work) -> None:
        for name in FIGURES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


FIGURES = tuple(f.name for f in fields(Work))
Worked = dict[Kin, Work]
Window = tuple[datetime, datetime]
"""[start, end)"""


@dataclass(frozen=True)
class Chosen:
    """Whose work: leaves and classes by id, and a user or type, empty for all."""

    queues: tuple[int, ...]
    gpu_classes: tuple[int, ...]
    user: str = ""
    type: str = ""

    @classmethod
    def all_of(cls, cluster: Cluster) -> Chosen:
        return cls(
            tuple(cluster.queues.values_list("pk", flat=True)),
            tuple(cluster.gpu_classes.values_list("pk", flat=True)),
        )

    def condition(self, prefix: str = "") -> Q:
        """On workloads, or on rows that point at one by ``prefix``."""
        return self.people(prefix) & Q(**{f"{prefix}gpu_class__in": list(self.gpu_classes)})

    def people(self, prefix: str = "") -> Q:
        """The same whatever class it is in, or waits for."""
        found = Q(**{f"{prefix}queue__in": list(self.queues)})
        for name in ("user", "type"):
            if value := getattr(self, name):
                found &= Q(**{f"{prefix}{name}": value})
        return found


def read(cluster: Cluster, chosen: Chosen, start: datetime, end: datetime) -> Worked:
    """What happened in [start, end): days that are rolled up, and single workloads at the edges."""
    return _read(cluster, chosen, start, end, between)


def read_held(cluster: Cluster, chosen: Chosen, start: datetime, end: datetime) -> dict[Kin, float]:
    """GPU-seconds held, alone: three queries."""
    found = _read(cluster, chosen, start, end, held_between)
    return {kin: work.held_gpu_s for kin, work in found.items()}


def _read(
    cluster: Cluster, chosen: Chosen, start: datetime, end: datetime, single: Callable[..., Worked]
) -> Worked:
    first, last = _whole_days(cluster, start, end)
    if first >= last:
        return single(chosen, (start, end))
    found = _rolled(chosen, first, last)
    edges = [(begin, stop) for begin, stop in ((start, first), (last, end)) if begin < stop]
    for kin, work in single(chosen, *edges).items():
        found.setdefault(kin, Work()).add(work)
    return found


def _whole_days(cluster: Cluster, start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The days within [start, end) that are rolled up: first and the one after the last."""
    first = floor(start, Resolution.DAY)
    first = first if first == start else first + DAY
    return first, min(floor(end, Resolution.DAY), rolled_to(cluster) or first)


def rolled_to(cluster: Cluster) -> datetime | None:
    """Up to when days are rolled up, without a gap; None before the first."""
    rows = WorkDay.objects.filter(queue__cluster=cluster).order_by("-start")
    newest = rows.values_list("start", flat=True).first()
    return None if newest is None else newest + DAY


def _rolled(chosen: Chosen, first: datetime, last: datetime) -> Worked:
    rows = WorkDay.objects.filter(chosen.condition(), start__gte=first, start__lt=last).order_by()
    sums = {name: Sum(name) for name in FIGURES}
    keys = ("queue_id", "gpu_class_id", "user", "type")
    return {
        Kin(*(row[key] for key in keys)): Work(**{name: row[name] for name in FIGURES})
        for row in rows.values(*keys).annotate(**sums)
    }


def between(chosen: Chosen, *windows: Window) -> Worked:
    """The same of all ``windows`` together, from single workloads alone. Four queries.

    What it held counts for the class that it held, all else for the one that it was last in.
    """
    if not windows:
        return {}
    lived = list(_stretches(chosen, windows))
    parts = (
        _held(lived, windows), _used(chosen, windows), _evicted(chosen, windows),
        _spent(lived, windows), _started_and_ended(chosen, windows),
    )  # fmt: skip
    found: Worked = {}
    for part in parts:
        for kin, work in part:
            found.setdefault(kin, Work()).add(work)
    return found


def held_between(chosen: Chosen, *windows: Window) -> Worked:
    """Of what was held alone. One query."""
    return dict(_held(_stretches(chosen, windows), windows)) if windows else {}


def _within(column: str, windows: Sequence[Window]) -> Q:
    found = Q()
    for start, end in windows:
        found |= Q(**{f"{column}__gte": start, f"{column}__lt": end})
    return found


OF_WORK = ("queue_id", "gpu_class_id", "user", "type")
BY_WORK = tuple(f"workload__{name}" for name in OF_WORK)


def _stretches(chosen: Chosen, windows: Sequence[Window]) -> Iterator[Stretch]:
    last = max(end for _, end in windows)
    return stretches_of(_steps(chosen, windows), chosen.gpu_classes, last)


def _held(lived: Iterable[Stretch], windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    spans = [(start.timestamp(), end.timestamp()) for start, end in windows]
    found: dict[Whose, float] = defaultdict(float)
    for stretch in lived:
        for start_s, end_s in spans:
            if gpu_s := stretch.held(start_s, end_s):
                found[stretch.whose] += gpu_s
    return ((Kin(*whose), Work(held_gpu_s=gpu_s)) for whose, gpu_s in found.items())


def _spent(lived: Iterable[Stretch], windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    """What work that ended had held in all, for the classes that it held."""
    spans = [(start.timestamp(), end.timestamp()) for start, end in windows]
    found: dict[tuple[Whose, str], float] = defaultdict(float)
    for one in lived:
        if one.finished_s is not None and any(
            start <= one.finished_s < end for start, end in spans
        ):
            found[one.whose, one.outcome] += one.held(EVER_S, one.finished_s)
    for (whose, outcome), gpu_s in found.items():
        if outcome in Outcome.values:
            yield Kin(*whose), _ended(outcome, 0, gpu_s)


def _ended(outcome: str, count: int, gpu_s: float) -> Work:
    work = Work()
    setattr(work, outcome, count)
    setattr(work, f"{outcome}_gpu_s", gpu_s)
    return work


def _steps(chosen: Chosen, windows: Sequence[Window]) -> QuerySet[Transition]:
    """Up to the end of a window, of work that was not over at its start."""
    alive = Q()
    for start, end in windows:
        goes_on = Q(workload__finished_at=None) | Q(workload__finished_at__gt=start)
        alive |= goes_on & Q(at__lt=end)
    return Transition.objects.filter(alive, chosen.people("workload__"))


def _used(chosen: Chosen, windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    """Of the hours that begin in them."""
    rows = GpuUse.objects.filter(chosen.condition("workload__"), _within("start", windows))
    sums = (
        rows.order_by()
        .values_list(*BY_WORK)
        .annotate(measured=Sum("gpu_s"), active=Sum("active_gpu_s"))
    )
    for *names, measured, active in sums:
        yield Kin(*names), Work(measured_gpu_s=measured, active_gpu_s=active)


def _evicted(chosen: Chosen, windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    rows = Eviction.objects.filter(chosen.condition("workload__"), _within("at", windows))
    sums = rows.order_by().values_list(*BY_WORK).annotate(count=Count("pk"), lost=Sum("lost_gpu_s"))
    for *names, count, lost in sums:
        yield Kin(*names), Work(evictions=count, lost_gpu_s=lost)


def _started_and_ended(chosen: Chosen, windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    """Work that started for the first time, and work that had run and ended. Where its steps are kept no
    more, all that it held counts for its last class."""
    began, ended = _within("first_started_at", windows), _within("finished_at", windows)
    rows = Workload.objects.filter(
        chosen.condition(), began | ended, first_started_at__isnull=False
    )
    steps = Transition.objects.annotate(held_class=OF_STEP).filter(
        workload=OuterRef("pk"),
        gpus__gt=0,
        held_class__in=chosen.gpu_classes,
        at__lt=OuterRef("finished_at"),
    )
    waited = Greatest(Epoch("first_started_at") - Epoch("submitted_at"), Value(0.0))
    sums = {
        "started": Count("pk", filter=began),
        "waited_s": Sum(waited, filter=began, default=0.0),
        "ended": Count("pk", filter=ended),
        "unknown_gpu_s": Sum("used_gpu_s", filter=ended & ~Q(Exists(steps)), default=0.0),
    }
    for row in rows.order_by().values(*OF_WORK, "outcome").annotate(**sums):
        kin = Kin(*(row[name] for name in OF_WORK))
        yield kin, Work(started=row["started"], waited_s=row["waited_s"])
        if row["ended"] and row["outcome"] in Outcome.values:
            yield kin, _ended(row["outcome"], row["ended"], row["unknown_gpu_s"])


def roll_days(cluster: Cluster, *, since: datetime | None = None) -> int:
    """Bring the days that are over into line with the workloads of ``cluster``; how many rows changed.

    From ``since`` on; by default those that are missing, and of the last ones those of which something came
    since the last pass. Running it again changes nothing.
    """
    chosen = Chosen.all_of(cluster)
    first = since or _due_from(cluster)
    if first is None:
        return 0
    before = {} if since else last_of(cluster, TASK).mark
    marks: dict[str, list[Any]] = {}
    changed, busy = 0, 0
    last = floor(cluster.now(), Resolution.DAY)
    for day in _days(floor(first, Resolution.DAY), last):
        if day + DAY + LATE >= last:  # else nobody looks at it again
            name = day.isoformat()
            marks[name] = [last.isoformat(), *_mark(chosen, (day, day + DAY))]
            if before.get(name) == marks[name]:
                continue
        worked = between(chosen, (day, day + DAY))
        changed += _roll(cluster, day, worked)
        busy += bool(worked)
        if busy >= MOST_DAYS:
            break
    if marks != before:
        keep(cluster, TASK, marks)
    return changed


def _days(first: datetime, last: datetime) -> Iterator[datetime]:
    while first < last:
        yield first
        first += DAY


def _mark(chosen: Chosen, window: Window) -> list[list[Any]]:
    """Of what ``between`` reads; who a user is, or of what type work, is looked at anew with the next day."""
    began, ended = _within("first_started_at", [window]), _within("finished_at", [window])
    works = Workload.objects.filter(chosen.condition(), began | ended)
    used = GpuUse.objects.filter(chosen.condition("workload__"), _within("start", [window]))
    evicted = Eviction.objects.filter(chosen.condition("workload__"), _within("at", [window]))
    outcomes = {name: Count("pk", filter=Q(outcome=name)) for name in Outcome.values}
    steps = _steps(chosen, [window])
    return [
        mark_of(steps, ("gpus", "gpu_class_id"), places=places_of("workload__")),
        mark_of(works, ("used_gpu_s",), began=Count("pk", filter=began), **outcomes),
        mark_of(used, ("gpu_s", "active_gpu_s"), places=places_of("workload__")),
        mark_of(evicted, ("lost_gpu_s",), places=places_of("workload__")),
    ]  # fmt: skip


def _due_from(cluster: Cluster) -> datetime | None:
    done = rolled_to(cluster)
    if done is not None:
        return min(done, cluster.now()) - LATE
    rows = Transition.objects.filter(workload__cluster=cluster)
    begin: datetime | None = rows.aggregate(at=Min("at"))["at"]
    return begin


@transaction.atomic
def _roll(cluster: Cluster, day: datetime, worked: Worked) -> int:
    """The rows of one day as ``worked`` has them; those that nothing speaks for any more go."""
    known = {
        Kin(row.queue_id, row.gpu_class_id, row.user, row.type): row
        for row in WorkDay.objects.filter(queue__cluster=cluster, start=day)
    }
    gone = [row.pk for kin, row in known.items() if kin not in worked]
    changed = [
        WorkDay(
            queue_id=kin.queue, gpu_class_id=kin.gpu_class, user=kin.user, type=kin.type, start=day,
            **_columns(work),
        )
        for kin, work in sorted(worked.items())
        if kin not in known or not _is_same(known[kin], work)
    ]  # fmt: skip
    WorkDay.objects.filter(pk__in=gone).delete()
    WorkDay.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["queue", "gpu_class", "user", "type", "start"],
        update_fields=FIGURES,
        batch_size=200,
    )
    return len(gone) + len(changed)


def _columns(work: Work) -> dict[str, Any]:
    return {name: getattr(work, name) for name in FIGURES}


def _is_same(row: WorkDay, work: Work) -> bool:
    return all(getattr(row, name) == getattr(work, name) for name in FIGURES)
