"""Quota that is handed over: so many GPUs more for a queue during a range, taken from another or not.

Where a giver is named, every queue between it and the nearest queue above both hands the same amount on, so
that all sums stay as they are. What other edits say inside the range is kept: the amount comes on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Q, Sum

from scheduling.models import MILLI, GpuClass, Node, Queue, Quota, QuotaChange
from scheduling.models.queues import above
from scheduling.services.errors import ServiceError
from scheduling.services.queues.checks import Timelines, breaks_sum, timelines_of
from scheduling.services.queues.faults import QuotaCell, as_typed, figure
from scheduling.services.queues.save import save_quotas
from scheduling.services.queues.tree import lock_tree
from scheduling.services.queues.values import Field, instants, value_at


@dataclass(frozen=True, slots=True)
class Shift:
    """``gpus`` (milli-GPU; negative takes back) more of ``field`` for ``queue`` during [start, end).

    ``giver`` is of nominal quota only; ``end`` None is without end.
    """

    queue: Queue
    gpu_class: GpuClass
    gpus: int
    start: datetime
    end: datetime | None = None
    field: Field = Field.NOMINAL
    giver: Queue | None = None

    @property
    def parts(self) -> list[tuple[Queue, int]]:
        """Each queue whose figure changes, and by how much: what gets first, then what gives."""
        if self.giver is None:
            return [(self.queue, self.gpus)]
        meet = _meet(self.queue, self.giver)
        gets = [(queue, self.gpus) for queue in _up_to(self.queue, meet)]
        return gets + [(queue, -self.gpus) for queue in _up_to(self.giver, meet)]

    @property
    def top(self) -> Queue:
        """The queue strictly below which everything changes."""
        meet = self.queue.parent if self.giver is None else _meet(self.queue, self.giver)
        if meet is None:
            raise ServiceError(
                "root", f"{self.queue.name} is the whole cluster.", "Name a queue below it.",
                field="queue",
            )  # fmt: skip
        return meet


def _meet(one: Queue, other: Queue) -> Queue:
    """The nearest queue above both."""
    over = {queue.pk: queue for queue in Queue.objects.filter(above(one.cluster_id, one.path))}
    shared = Queue.objects.filter(above(other.cluster_id, other.path), pk__in=over)
    return max(shared, key=lambda queue: len(queue.path))


def _up_to(queue: Queue, top: Queue) -> Iterator[Queue]:
    """``queue`` and those above it, below ``top``."""
    chain = Queue.objects.filter(above(queue.cluster_id, queue.path)).order_by("-path")
    yield queue
    yield from (over for over in chain if len(over.path) > len(top.path))


@dataclass(frozen=True, slots=True)
class ShiftedFigure:
    """One figure at a moment, milli-GPU; None is unlimited."""

    queue: Queue
    before: int | None
    after: int | None


def figures(shift: Shift, at: datetime) -> list[ShiftedFigure]:
    """What the shift would make of the figures in force at ``at``. Raises as ``shift_quotas``."""
    parts = shift.parts
    timelines = timelines_of([queue for queue, _ in parts], at)
    return [_figure(shift, queue, by, timelines, at) for queue, by in parts]


def _figure(
    shift: Shift, queue: Queue, by: int, timelines: Timelines, at: datetime
) -> ShiftedFigure:
    before = value_at(timelines.get((queue.pk, shift.gpu_class.pk), ()), at).get(shift.field)
    if before is None:
        raise ServiceError(
            "no_limit", f"{queue.name} has no limit on {shift.gpu_class}.",
            "Nothing has to be asked for.", field="gpus",
        )  # fmt: skip
    after = int(before) + by
    if after < 0:
        raise ServiceError(
            "gives_too_much",
            f"{queue.name} has {figure(int(before))} {shift.gpu_class} and cannot give {figure(-by)}.",
            f"Take {figure(int(before))} at most, or another queue.",
            field="giver",
        )
    return ShiftedFigure(queue, int(before), after)


@transaction.atomic
def shift_quotas(
    shift: Shift, *, author: AbstractBaseUser | None, reason: str
) -> list[QuotaChange]:
    """Save the shift: one change for each stretch of its range in which the figures differ.

    Raises QuotaError where a sum would not hold, or ServiceError at ``gpus`` or ``giver``.
    """
    cluster = lock_tree(shift.queue.cluster)
    top = shift.top
    now = cluster.now()
    start = max(shift.start, now)
    parts = shift.parts
    timelines = timelines_of([queue for queue, _ in parts], start)
    mine = [timelines.get((queue.pk, shift.gpu_class.pk), []) for queue, _ in parts]
    moments = [*instants(mine, start, shift.end), shift.end]
    return [
        save_quotas(
            queue=top,
            cells=[
                _cell(shift, _figure(shift, queue, by, timelines, begin)) for queue, by in parts
            ],
            author=author,
            reason=reason[:500],
            effective_from=None if begin == now else begin,
            effective_until=end,
        )
        for begin, end in pairwise(moments)
        if begin is not None
    ]


def _cell(shift: Shift, figure: ShiftedFigure) -> QuotaCell:
    value = as_typed(shift.field, figure.after)
    return QuotaCell(figure.queue.name, shift.gpu_class.name, shift.field, value)


def edited_since(
    shift: Shift, changes: Sequence[QuotaChange], at: datetime, known: Sequence[int] = ()
) -> QuotaChange | None:
    """The newest later edit of one of the shift's figures that holds, or will, after ``at``.

    ``known`` are changes that stand on top of the shift rather than in its place.
    """
    last = max((change.pk for change in changes), default=0)
    later = QuotaChange.objects.filter(
        Q(effective_until=None) | Q(effective_until__gt=at), cluster=shift.queue.cluster, pk__gt=last
    ).exclude(pk__in=[*known])  # fmt: skip
    if shift.end is not None:
        later = later.filter(effective_from__lt=shift.end)
    names = {queue.name for queue, _ in shift.parts}
    place = (shift.gpu_class.name, shift.field.value)
    touching = (
        change
        for change in later.select_related("author")
        if any(c["queue"] in names and (c["gpu_class"], c["field"]) == place for c in change.cells)
    )
    return next(touching, None)


def room(queue: Queue, gpu_class: GpuClass, at: datetime) -> int:
    """Milli-GPU of nominal quota that the parent of ``queue`` has and none of its queues was given at
    ``at``; below the root what is installed counts. Negative where more was given than there is."""
    return given_to(queue.parent, gpu_class, at) - sum(
        _nominal(queue.parent.children.all() if queue.parent else (), gpu_class, at).values()
    )


def given_to(queue: Queue | None, gpu_class: GpuClass, at: datetime) -> int:
    """Nominal quota of ``queue`` in force at ``at``, milli-GPU; of the root, what is installed."""
    if queue is None or queue.is_root:
        nodes = Node.objects.filter(gpu_class=gpu_class)
        return nodes.aggregate(all=Sum("gpus"))["all"] or 0
    return _nominal([queue], gpu_class, at).get(queue.pk, 0)


def _nominal(queues: Iterable[Queue], gpu_class: GpuClass, at: datetime) -> dict[int, int]:
    rows = Quota.objects.filter(queue__in=list(queues), gpu_class=gpu_class).in_force(at)
    return dict(rows.values_list("queue", "nominal_gpus"))


@dataclass(frozen=True, slots=True)
class Giver:
    """A queue that could hand so much on: its nominal quota, and what of it nobody holds now."""

    queue: Queue
    nominal: int
    idle: int


def givers(queue: Queue, gpu_class: GpuClass, gpus: int, at: datetime) -> list[Giver]:
    """Queues beside ``queue``, or beside one above it, that have ``gpus`` to give: most idle first."""
    over = Queue.objects.filter(above(queue.cluster_id, queue.path))
    line = {queue.pk, *over.values_list("pk", flat=True)}
    beside = Queue.objects.filter(parent__in=over).exclude(pk__in=line)
    nominal = _nominal(beside, gpu_class, at)
    usage = dict(gpu_class.shares.filter(queue__in=beside).values_list("queue", "allocated"))
    found = [
        Giver(q, nominal[q.pk], max(0, nominal[q.pk] - round(usage.get(q.pk, 0))))
        for q in beside
        if nominal.get(q.pk, 0) >= gpus
    ]
    near = {q.pk: len(q.path.split("/")) for q in beside}
    return sorted(found, key=lambda g: (-near[g.queue.pk], -g.idle, g.queue.path))


@dataclass(frozen=True, slots=True)
class QuotaSum:
    """GPUs of nominal quota below ``parent``, a queue's name; it is refused as a save would refuse it."""

    parent: str
    before: float
    after: float
    given: float
    is_refused: bool

    @property
    def over(self) -> float:
        return max(0.0, self.after - self.given)


def sums(figures: Sequence[ShiftedFigure], gpu_class: GpuClass, at: datetime) -> Iterator[QuotaSum]:
    """Of each queue above one whose nominal quota is changed."""
    after = {one.queue.pk: one.after or 0 for one in figures}
    parents = {one.queue.parent for one in figures if one.queue.parent is not None}
    children = _children(parents, gpu_class, at)
    for parent in sorted(parents, key=lambda queue: queue.path):
        mine = children.get(parent.pk, {})
        changed = {q.queue.pk: after[q.queue.pk] for q in figures if q.queue.parent_id == parent.pk}
        before, will = sum(mine.values()), sum({**mine, **changed}.values())
        had = given_to(parent, gpu_class, at)
        given = after.get(parent.pk, had)
        is_refused = breaks_sum(parent, will, given, will - before - (given - had))
        yield QuotaSum(parent.name, before / MILLI, will / MILLI, given / MILLI, is_refused)


def _children(
    parents: set[Queue], gpu_class: GpuClass, at: datetime
) -> Mapping[int | None, Mapping[int, int]]:
    """Parent -> child -> nominal milli-GPU in force."""
    queues = Queue.objects.filter(parent__in=parents)
    rows = Quota.objects.filter(queue__in=queues, gpu_class=gpu_class).in_force(at)
    found: dict[int | None, dict[int, int]] = {}
    for parent, queue, gpus in rows.values_list("queue__parent", "queue", "nominal_gpus"):
        found.setdefault(parent, {})[queue] = gpus
    return found
