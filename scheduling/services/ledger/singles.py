"""What work held and how it ended, by queue, class, user and type, from single workloads alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Greatest

from scheduling.models import Cluster, Eviction, GpuUse, Outcome, Transition, Workload
from scheduling.services.ledger.holds import LAST_CLASS, OF_STEP
from scheduling.services.ledger.lives import Stretch, Whose, stretches_of
from scheduling.services.tables.among import among
from scheduling.services.tables.instants import Epoch

EVER_S = float("-inf")
OF_WORK = ("queue_id", "gpu_class_id", "user", "type")


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
        """Most of what is added is nothing."""
        for name, more in zip(FIGURES, _figures_of(other), strict=True):
            if more:
                setattr(self, name, getattr(self, name) + more)


FIGURES = tuple(f.name for f in fields(Work))
_figures_of = attrgetter(*FIGURES)
Worked = dict[Kin, Work]
Window = tuple[datetime, datetime]
"""[start, end)"""


@dataclass(frozen=True)
class WorkFilter:
    """Whose work: leaves and classes by id, and a user or type, empty for all."""

    queues: tuple[int, ...]
    gpu_classes: tuple[int, ...]
    user: str = ""
    type: str = ""

    @classmethod
    def all_of(cls, cluster: Cluster) -> WorkFilter:
        return cls(
            tuple(cluster.queues.values_list("pk", flat=True)),
            tuple(cluster.gpu_classes.values_list("pk", flat=True)),
        )

    def condition(self, prefix: str = "", gpu_class: str = "gpu_class") -> Q:
        """On rows of a class, by the column ``gpu_class``, of work that they point at by ``prefix``."""
        return self.people(prefix) & Q(**{f"{gpu_class}__in": list(self.gpu_classes)})

    def people(self, prefix: str = "") -> Q:
        """The same whatever class it is in, or waits for."""
        found = among(f"{prefix}queue", self.queues)
        for name in ("user", "type"):
            if value := getattr(self, name):
                found &= Q(**{f"{prefix}{name}": value})
        return found


def between(chosen: WorkFilter, *windows: Window) -> Worked:
    """The same of all ``windows`` together, from single workloads alone. Four queries.

    What it held, used and lost counts for the class of that time, all else for the one that it held last.
    """
    if not windows:
        return {}
    lived = list(_stretches(chosen, windows))
    parts = (
        _allocated(lived, windows), _used(chosen, windows), _evicted(chosen, windows),
        _spent(lived, windows), _started_and_ended(chosen, windows),
    )  # fmt: skip
    found: Worked = {}
    for part in parts:
        join(found, part)
    return found


def join(found: Worked, more: Iterable[tuple[Kin, Work]]) -> None:
    """Add to ``found``, which keeps what it did not know."""
    for kin, work in more:
        if (known := found.get(kin)) is None:
            found[kin] = work
        else:
            known.add(work)


def held_between(chosen: WorkFilter, *windows: Window) -> Worked:
    """Of what was held alone. One query."""
    return dict(_allocated(_stretches(chosen, windows), windows)) if windows else {}


def used_between(chosen: WorkFilter, *windows: Window) -> Worked:
    """Of what was held and measured alone. Two queries."""
    found = held_between(chosen, *windows)
    if windows:
        join(found, _used(chosen, windows))
    return found


def by_work(gpu_class: str, prefix: str = "workload__") -> tuple[str, ...]:
    """The columns of a ``Kin``; the class is that of ``gpu_class``."""
    return f"{prefix}queue_id", gpu_class, f"{prefix}user", f"{prefix}type"


def within(column: str, windows: Sequence[Window]) -> Q:
    found = Q()
    for start, end in windows:
        found |= Q(**{f"{column}__gte": start, f"{column}__lt": end})
    return found


def _stretches(chosen: WorkFilter, windows: Sequence[Window]) -> Iterator[Stretch]:
    last = max(end for _, end in windows)
    return stretches_of(steps_of(chosen, windows), chosen.gpu_classes, last)


def _allocated(lived: Iterable[Stretch], windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    spans = [(start.timestamp(), end.timestamp()) for start, end in windows]
    found: dict[Whose, float] = defaultdict(float)
    for stretch in lived:
        for start_s, end_s in spans:
            if gpu_s := stretch.gpu_s(start_s, end_s):
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
            found[one.whose, one.outcome] += one.gpu_s(EVER_S, one.finished_s)
    for (whose, outcome), gpu_s in found.items():
        if outcome in Outcome.values:
            yield Kin(*whose), _ended(outcome, 0, gpu_s)


def _ended(outcome: str, count: int, gpu_s: float) -> Work:
    work = Work()
    setattr(work, outcome, count)
    setattr(work, f"{outcome}_gpu_s", gpu_s)
    return work


def steps_of(chosen: WorkFilter, windows: Sequence[Window]) -> QuerySet[Transition]:
    """Up to the end of a window, of work that was not over before its start."""
    alive = Q()
    for start, end in windows:
        goes_on = Q(workload__finished_at=None) | Q(workload__finished_at__gte=start)
        alive |= goes_on & Q(at__lt=end)
    return Transition.objects.filter(alive, chosen.people("workload__"))


def _used(chosen: WorkFilter, windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    """Of the hours that begin in them."""
    rows = GpuUse.objects.filter(chosen.condition("workload__"), within("start", windows))
    sums = (
        rows.order_by()
        .values_list(*by_work("gpu_class_id"))
        .annotate(measured=Sum("gpu_s"), active=Sum("active_gpu_s"))
    )
    for *names, measured, active in sums:
        yield Kin(*names), Work(measured_gpu_s=measured, active_gpu_s=active)


def _evicted(chosen: WorkFilter, windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    rows = Eviction.objects.annotate(held_class=OF_STEP).filter(
        chosen.condition("workload__", "held_class"), within("at", windows)
    )
    by = by_work("held_class")
    sums = rows.order_by().values_list(*by).annotate(count=Count("pk"), lost=Sum("lost_gpu_s"))
    for *names, count, lost in sums:
        yield Kin(*names), Work(evictions=count, lost_gpu_s=lost)


def _started_and_ended(chosen: WorkFilter, windows: Sequence[Window]) -> Iterator[tuple[Kin, Work]]:
    """Work that started for the first time, and work that had run and ended. Where its steps are kept no
    more, all that it held counts for its last class."""
    began, ended = within("first_started_at", windows), within("finished_at", windows)
    rows = Workload.objects.annotate(held_class=LAST_CLASS).filter(
        chosen.condition(gpu_class="held_class"), began | ended, first_started_at__isnull=False
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
    for row in (
        rows.order_by().values(*by_work("held_class", prefix=""), "outcome").annotate(**sums)
    ):
        kin = Kin(row["queue_id"], row["held_class"], row["user"], row["type"])
        yield kin, Work(started=row["started"], waited_s=row["waited_s"])
        if row["ended"] and row["outcome"] in Outcome.values:
            yield kin, _ended(row["outcome"], row["ended"], row["unknown_gpu_s"])
