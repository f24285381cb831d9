"""What leaves received against what they were entitled to, hour by hour, and who lent to whom.

Entitled is the fair share that the division gave, never above what a queue asks for; received is what it
held. Jain's index is of received over entitled (R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984): 1 where all
fare alike. A queue is *starved* in an hour in which it waits with less than ``STARVED`` of its share. What a
queue held above its nominal was lent by those whose nominal stood idle, in proportion to what did; what no
queue's nominal covers was nobody's, or of queues outside of the scope.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from django.db.models import Case, Count, IntegerField, Q, Value, When
from numpy.typing import NDArray

from portal.display.periods import HOUR_S, Floats, Periods, epochs
from portal.display.spread import share
from portal.reports.filters import OTHERS, OUTSIDE, ReportFilters
from portal.reports.samples import best_resolution, gpu_hours_of_shares, is_known
from portal.reports.scope import Scope
from scheduling.models import MILLI, Action, Decision, UsageSample, headline
from scheduling.models.ledger import Resolution

STARVED = 0.8
MOST_ROWS = 300_000
"""Of hours; more are read by the day."""
SPELLS, LENDERS, BORROWERS = 5, 9, 6
"""With a line, a row, a column of their own."""
NOBODYS = "no queue's nominal"
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LeafBalance:
    """GPU-hours of one leaf; ``difference`` in each period is mean GPUs above (below: negative) its share."""

    name: str
    path: str
    entitled: float
    received: float
    starved_hours: float
    difference: Floats

    @property
    def part(self) -> float | None:
        return share(self.received, self.entitled)

    @property
    def difference_hours(self) -> float:
        return self.received - self.entitled


@dataclass(frozen=True, slots=True)
class Starvation:
    queue: str
    gpu_class: str
    """Of which it was short of most; ``why`` is of this one."""
    since: datetime
    hours: float
    gpus: float
    """Short of its share on average, of all classes of which it was starved."""
    why: str


@dataclass(frozen=True, slots=True)
class Lending:
    """GPU-hours ``of`` lenders (rows) to borrowers (columns)."""

    lenders: tuple[str, ...]
    borrowers: tuple[str, ...]
    of: Matrix

    @property
    def total(self) -> float:
        return float(self.of.sum())


@dataclass(frozen=True, slots=True)
class QueueCourse:
    """The queue that missed most, over time: mean GPUs in each step."""

    path: str
    starts: tuple[datetime, ...]
    received: Floats
    entitled: Floats
    nominal: Floats


@dataclass(frozen=True)
class Entitlement:
    periods: Periods
    queues: tuple[LeafBalance, ...]
    """The largest shortfall first."""
    inequality: Floats
    """1 − Jain by period; NaN where nobody was entitled to anything."""
    short: float
    over: float
    lending: Lending
    starved: tuple[Starvation, ...]
    spells: int
    chosen: QueueCourse | None
    jain_before: float | None
    """Of the range before; None where none is compared with, or it is not fully known."""

    @property
    def entitled(self) -> float:
        return sum(row.entitled for row in self.queues)

    @property
    def received(self) -> float:
        return sum(row.received for row in self.queues)

    @property
    def part(self) -> float | None:
        return share(self.received, self.entitled)

    @property
    def difference_hours(self) -> float:
        return self.received - self.entitled

    @property
    def jain(self) -> float | None:
        return jain(
            np.array([r.received for r in self.queues]), np.array([r.entitled for r in self.queues])
        )

    @property
    def starved_hours(self) -> float:
        return sum(row.starved_hours for row in self.queues)

    @property
    def starved_queues(self) -> int:
        return sum(row.starved_hours > 0 for row in self.queues)


def jain(received: Floats, entitled: Floats) -> float | None:
    """Over those that are entitled to anything; None without one."""
    known = entitled > 1e-9
    if not known.any():
        return None
    parts = received[known] / entitled[known]
    squares = float((parts**2).sum())
    return float(parts.sum()) ** 2 / (len(parts) * squares) if squares else 1.0


@dataclass(frozen=True)
class _Cube:
    """GPUs by step, leaf and class, whole ones; ``hours`` covered by each step."""

    starts: Floats
    hours: Floats
    leaves: tuple[int, ...]
    received: Matrix
    entitled: Matrix
    pending: Matrix
    nominal: Matrix


def entitlement(scope: Scope, filters: ReportFilters) -> Entitlement | None:
    """None where nothing was sampled, or a user or type is asked for: samples know neither."""
    cube = None if filters.by_work else _read(scope, filters)
    if cube is None:
        return None
    periods = Periods.of(filters.start, filters.end, filters.tz)
    which = periods.index(cube.starts)
    gap = cube.received - cube.entitled
    spells = _spells(scope, cube)
    queues = _queues(scope, cube, which, len(periods.starts))
    weights = cube.hours[:, None, None]
    return Entitlement(
        periods=periods,
        queues=queues,
        inequality=_inequality(cube, which, len(periods.starts)),
        short=float((np.clip(-gap, 0, None) * weights).sum()),
        over=float((np.clip(gap, 0, None) * weights).sum()),
        lending=_lending(scope, cube),
        starved=_starved(scope, spells[:SPELLS]),
        spells=len(spells),
        chosen=_chosen(scope, cube, queues),
        jain_before=_jain_before(scope, filters) if filters.compare else None,
    )


def _jain_before(scope: Scope, filters: ReportFilters) -> float | None:
    """Added up by the database: three queries."""
    earlier = filters.before()
    if not is_known(scope, earlier):
        return None
    usage = gpu_hours_of_shares(scope, earlier, best_resolution(scope, earlier))
    weights = scope.unit.weights
    sums: dict[int, Floats] = defaultdict(lambda: np.zeros(2))
    for queue, pk, *hours in usage:
        sums[queue] += weights[pk] * np.array(hours)
    received, entitled = np.array(list(sums.values())).reshape(-1, 2).T
    return jain(received, entitled)


def _read(scope: Scope, filters: ReportFilters) -> _Cube | None:
    leaves, classes = sorted(scope.leaves), list(scope.classes)
    resolution = best_resolution(scope, filters)
    hours = filters.span.total_seconds() / HOUR_S
    if resolution == Resolution.HOUR and len(leaves) * len(classes) * hours > MOST_ROWS:
        resolution = Resolution.DAY
    if resolution is None:
        return None
    rows = (
        UsageSample.objects.filter(
            queue__in=leaves, gpu_class__in=classes, resolution=resolution,
            start__gte=filters.start, start__lt=filters.end,
        )
        .order_by()
        .values_list(
            "start", "queue_id", "gpu_class_id", "seconds", "allocated_gpus", "fair_share_gpus",
            "pending_gpus", "nominal_gpus",
        )
    )  # fmt: skip
    found = list(rows)
    if not found:
        return None
    return _cube(scope, found, leaves, classes)


def _cube(scope: Scope, rows: list[Any], leaves: list[int], classes: list[int]) -> _Cube:
    starts, queues, pks, seconds, *values = zip(*rows, strict=True)
    moments = {start: i for i, start in enumerate(sorted(set(starts)))}
    at = {queue: i for i, queue in enumerate(leaves)}
    of = {pk: i for i, pk in enumerate(classes)}
    step = np.array([moments[start] for start in starts])
    place = (step, np.array([at[queue] for queue in queues]), np.array([of[pk] for pk in pks]))
    weights = scope.unit.weights
    weight = np.array([weights[pk] for pk in pks]) / MILLI
    hours = np.zeros(len(moments))
    np.maximum.at(hours, step, np.array(seconds) / HOUR_S)
    parts = [np.zeros((len(moments), len(leaves), len(classes))) for _ in values]
    for part, column in zip(parts, values, strict=True):
        part[place] = np.array(column) * weight
    return _Cube(epochs(list(moments)), hours, tuple(leaves), *parts)


def _queues(
    scope: Scope, cube: _Cube, which: NDArray[np.int64], count: int
) -> tuple[LeafBalance, ...]:
    weights = cube.hours[:, None, None]
    covered = np.bincount(which, cube.hours, count)
    starving = np.asarray(_starving(cube).any(axis=2))
    rows = []
    for i, pk in enumerate(cube.leaves):
        queue = scope.queues[pk]
        received = float((cube.received[:, i] * weights[:, 0]).sum())
        entitled = float((cube.entitled[:, i] * weights[:, 0]).sum())
        if not received and not entitled:
            continue
        gap = (cube.received[:, i] - cube.entitled[:, i]).sum(axis=1) * cube.hours
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = np.nan_to_num(np.bincount(which, gap, count) / covered)
        starved = float((starving[:, i] * cube.hours).sum())
        rows.append(LeafBalance(queue.name, queue.path, entitled, received, starved, difference))
    return tuple(sorted(rows, key=lambda row: (row.received - row.entitled, row.path)))


def _starving(cube: _Cube) -> NDArray[np.bool_]:
    waits = cube.pending > 1e-9
    return np.asarray(waits & (cube.received < STARVED * cube.entitled - 1e-9))


def _inequality(cube: _Cube, which: NDArray[np.int64], count: int) -> Floats:
    weighed = cube.hours[:, None]
    received, entitled = cube.received.sum(axis=2) * weighed, cube.entitled.sum(axis=2) * weighed
    found = np.full(count, np.nan)
    for period in range(count):
        chosen = which == period
        index = jain(received[chosen].sum(axis=0), entitled[chosen].sum(axis=0))
        found[period] = np.nan if index is None else 1 - index
    return found


def _lending(scope: Scope, cube: _Cube) -> Lending:
    """By class and step: what is borrowed, split over whose nominal stood idle."""
    above = np.clip(cube.received - cube.nominal, 0, None)
    idle = np.clip(cube.nominal - cube.received, 0, None)
    borrowed, there = above.sum(axis=1), idle.sum(axis=1)
    nobodys = np.clip(borrowed - there, 0, None)
    with np.errstate(invalid="ignore", divide="ignore"):
        taken = np.where(there > 0, np.minimum(borrowed, there) / there, 0.0)
        to = np.where(borrowed > 0, 1 / borrowed, 0.0)
    lent = idle * taken[:, None, :]
    parts = above * (to * 1.0)[:, None, :] * cube.hours[:, None, None]
    between = np.einsum("tlc,tbc->lb", lent, parts)
    rest = np.einsum("tc,tbc->b", nobodys, parts)
    names = [scope.queues[pk].name for pk in cube.leaves]
    return _folded(names, between, rest, NOBODYS if scope.is_whole else OUTSIDE)


def _folded(names: Sequence[str], between: Matrix, rest: Floats, last: str) -> Lending:
    """The largest lenders and borrowers by name, all others as one."""
    rows = np.vstack([between, rest[None, :]])
    lenders, borrowers = [*names, last], list(names)
    order = np.argsort(-rows.sum(axis=1), kind="stable")
    rows, lenders = rows[order], [lenders[i] for i in order]
    order = np.argsort(-rows.sum(axis=0), kind="stable")
    rows, borrowers = rows[:, order], [borrowers[i] for i in order]
    rows, lenders = _keep(rows, lenders, LENDERS)
    columns, borrowers = _keep(rows.T, borrowers, BORROWERS)
    return Lending(tuple(lenders), tuple(borrowers), columns.T)


def _keep(rows: Matrix, names: list[str], most: int) -> tuple[Matrix, list[str]]:
    known = rows.sum(axis=1) > 0
    rows, names = rows[known], [n for n, is_known in zip(names, known, strict=True) if is_known]
    if len(names) <= most:
        return rows, names
    others = rows[most - 1 :].sum(axis=0, keepdims=True)
    return np.vstack([rows[: most - 1], others]), [*names[: most - 1], OTHERS]


_Spell = tuple[int, int, datetime, datetime, float, float]
"""Queue, the class of which it was short of most, since, until, hours, GPUs short."""


def _spells(scope: Scope, cube: _Cube) -> list[_Spell]:
    """Consecutive steps in which a queue is starved of any class, the longest first."""
    starving = _starving(cube)
    flags = np.asarray(starving.any(axis=2), np.int8)
    short = np.clip(cube.entitled - cube.received, 0, None) * starving * cube.hours[:, None, None]
    classes, found = list(scope.classes), list[_Spell]()
    for i, pk in enumerate(cube.leaves):
        edges = np.flatnonzero(np.diff(np.pad(flags[:, i], 1)))
        for first, last in edges.reshape(-1, 2).tolist():
            hours = float(cube.hours[first:last].sum())
            missed = short[first:last, i].sum(axis=0)
            since = datetime.fromtimestamp(cube.starts[first], UTC)
            end = cube.starts[last - 1] + cube.hours[last - 1] * HOUR_S
            worst, mean = classes[int(missed.argmax())], float(missed.sum()) / hours
            found.append((pk, worst, since, datetime.fromtimestamp(end, UTC), hours, mean))
    return sorted(found, key=lambda spell: (-spell[4], -spell[5], spell[0]))


def _starved(scope: Scope, spells: Sequence[_Spell]) -> tuple[Starvation, ...]:
    """Each with what its work mostly waited for meanwhile. One query."""
    whys = _mostly(spells) if spells else {}
    return tuple(
        Starvation(
            scope.queues[pk].path, scope.classes[worst].name, since, hours, gpus, whys.get(at, "")
        )
        for at, (pk, worst, since, _, hours, gpus) in enumerate(spells)
    )


def _mostly(spells: Sequence[_Spell]) -> dict[int, str]:
    """The most frequent reason in each spell, by its place; of equals the first by its code."""
    within = [
        Q(workload__queue=pk, cycle__at__gte=since, cycle__at__lt=until)
        & (Q(gpu_class=worst) | Q(gpu_class=None))
        for pk, worst, since, until, _, _ in spells
    ]
    place = Case(
        *(When(one, then=Value(at)) for at, one in enumerate(within)), output_field=IntegerField()
    )
    said = Decision.objects.filter(reduce(or_, within), action__in=(Action.WAIT, Action.RESERVE))
    counts = said.order_by().annotate(place=place).values_list("place", "reason")
    last_wins = sorted(counts.annotate(n=Count("pk")), key=lambda row: (-row[2], row[1]))[::-1]
    return {at: headline(reason) for at, reason, _ in last_wins}


def _chosen(scope: Scope, cube: _Cube, queues: Sequence[LeafBalance]) -> QueueCourse | None:
    """The first of ``queues``, if it missed anything."""
    if not queues or queues[0].received >= queues[0].entitled:
        return None
    i = next(i for i, pk in enumerate(cube.leaves) if scope.queues[pk].path == queues[0].path)
    step = max(1, -(-len(cube.starts) // 400))
    groups = np.arange(len(cube.starts)) // step

    def means(values: Matrix) -> Floats:
        sums = np.bincount(groups, values[:, i].sum(axis=1) * cube.hours)
        return np.asarray(sums / np.bincount(groups, cube.hours))

    return QueueCourse(
        queues[0].path,
        tuple(datetime.fromtimestamp(s, UTC) for s in cube.starts[::step].tolist()),
        means(cube.received), means(cube.entitled), means(cube.nominal),
    )  # fmt: skip
