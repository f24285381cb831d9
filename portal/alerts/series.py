"""What rules watch, over time: the same functions tell what holds now, what fired, and what an edit would.

Each takes moments in ascending order and reads the ledger; a value stands for the time up to its moment. NaN
is not known, or nothing to say. With each value goes what it is about: the id of a workload, a queue or a
class, or 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from portal.alerts.models import Figure, Rule
from portal.display.periods import Floats, Ints, epochs
from portal.reports.budgets import in_force, spendings
from portal.reports.entitlements import STARVED
from portal.reports.models import Budget
from scheduling.models import (
    MILLI,
    ClusterMode,
    Cycle,
    Eviction,
    IdleSpell,
    Queue,
    UsageSample,
    Workload,
)
from scheduling.models.ledger import Resolution
from scheduling.services.words.rules import IN_VAIN

P90_OF = timedelta(hours=24)
EVICTIONS_OF = timedelta(days=7)
DAY = timedelta(days=1)
LEAST = 5
"""Fewer starts have no ninth decile."""
BY_MINUTES = timedelta(hours=3)
AT_A_TIME = 20
"""Rows that a search for the first that suits reads in one go."""


@dataclass(frozen=True, slots=True)
class Series:
    """``gpu_class``: ids of the classes that values are of, 0 where of none."""

    values: Floats
    who: Ints
    gpu_class: Ints

    @classmethod
    def unknown(cls, times: Floats) -> Series:
        nobody = np.zeros(len(times), np.int64)
        return cls(np.full(len(times), np.nan), nobody, nobody.copy())


def series(rule: Rule, times: Floats) -> Series:
    """The figure of ``rule`` at ``times``, seconds since 1970."""
    return READ[Figure(rule.figure)](rule, times)


def _leaves(rule: Rule) -> Q:
    """A condition on ``queue``."""
    if rule.queue is None:
        return Q(queue__cluster=rule.cluster_id)
    path = rule.queue.path
    return Q(queue__cluster=rule.cluster_id) & (
        Q(queue__path=path) | Q(queue__path__startswith=f"{path}/")
    )


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


Lasting = tuple[int, int, float, float]
"""Id of the workload or queue, its GPU class or 0, begin and end."""


def _longest(times: Floats, spells: Iterable[Lasting]) -> Series:
    """At each moment how long the longest of those that last has lasted."""
    found = Series.unknown(times)
    for who, gpu_class, begin, end in spells:
        first, last = np.searchsorted(times, (begin, end))
        part = slice(int(first), int(last))
        lasted = times[part] - begin
        longer = ~(found.values[part] >= lasted)
        found.values[part] = np.where(longer, lasted, found.values[part])
        found.who[part] = np.where(longer, who, found.who[part])
        found.gpu_class[part] = np.where(longer, gpu_class, found.gpu_class[part])
    found.values[np.isnan(found.values)] = 0.0
    return found


def _longest_wait(rule: Rule, times: Floats) -> Series:
    start, end = _at(times[0]), _at(times[-1])
    rows = Workload.objects.filter(
        _leaves(rule),
        Q(first_started_at=None) | Q(first_started_at__gt=start),
        Q(finished_at=None) | Q(finished_at__gt=start),
        submitted_at__lte=end, held=False, gpus__gt=0,
    )  # fmt: skip
    columns = rows.values_list(
        "pk", "submitted_at", "first_started_at", "finished_at", "gpu_classes"
    )
    if len(times) == 1:
        # At one moment who was submitted first has waited longest: a look reads no others.
        first = columns.order_by("submitted_at", "pk").iterator(chunk_size=AT_A_TIME)
        return _longest(times, islice(_waits(rule, first, end), 1))
    return _longest(times, _waits(rule, columns, end))


def _waits(rule: Rule, columns: Iterable[tuple[Any, ...]], end: datetime) -> Iterator[Lasting]:
    return (
        (pk, 0, submitted.timestamp(), (first or finished or end + DAY).timestamp())
        for pk, submitted, first, finished, names in columns
        if _asks_for(rule, names)
    )


def _asks_for(rule: Rule, names: list[str]) -> bool:
    return rule.gpu_class is None or not names or rule.gpu_class.name in names


def _wait_p90(rule: Rule, times: Floats) -> Series:
    since = _at(times[0]) - P90_OF
    rows = Workload.objects.filter(
        _leaves(rule), first_started_at__gt=since, first_started_at__lte=_at(times[-1])
    )
    if rule.gpu_class is not None:
        rows = rows.filter(gpu_class=rule.gpu_class)
    if len(times) == 1:
        course = Series.unknown(times)
        course.values[0] = _ninth_decile(rows)
        return course
    found = list(rows.order_by("first_started_at").values_list("first_started_at", "submitted_at"))
    starts = epochs([first for first, _ in found if first])
    waits = starts - epochs([submitted for _, submitted in found])
    lows = np.searchsorted(starts, times - P90_OF.total_seconds(), side="right")
    highs = np.searchsorted(starts, times, side="right")
    course = Series.unknown(times)
    for i, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        if high - low >= LEAST:
            course.values[i] = np.quantile(waits[low:high], 0.9)
    return course


def _ninth_decile(started: QuerySet[Workload]) -> float:
    """Of how long they waited, seconds, as NumPy interpolates; reads the two next to it. NaN of too few."""
    count = started.count()
    if count < LEAST:
        return np.nan
    below, part = divmod(9 * (count - 1), 10)
    waits = started.annotate(waited=F("first_started_at") - F("submitted_at")).order_by("waited")
    two = [one.total_seconds() for one in waits.values_list("waited", flat=True)[below : below + 2]]
    return float(two[0] + part / 10 * (two[-1] - two[0]))


Rows = list[tuple[int, int, datetime, float, float, float, float, float]]


def _samples(rule: Rule, times: Floats, condition: Q) -> Rows:
    """Hours, and lately minutes where there are any, in order: queue, class, start, then allocated, fair
    share, pending, nominal and ready, milli-GPU."""
    start, end = _at(times[0]) - timedelta(hours=24), _at(times[-1])
    minutes = Q(resolution=Resolution.MINUTE, start__gt=end - BY_MINUTES, start__lte=end)
    known = UsageSample.objects.filter(minutes, condition)
    first = known.order_by("start").values_list("start", flat=True).first()
    until = first.replace(minute=0, second=0, microsecond=0) if first else end
    hours = Q(resolution=Resolution.HOUR, start__gte=start, start__lt=until)
    rows = UsageSample.objects.filter(hours | minutes, condition)
    if rule.gpu_class is not None:
        rows = rows.filter(gpu_class=rule.gpu_class)
    columns = (
        "queue_id", "gpu_class_id", "start", "allocated_gpus", "fair_share_gpus", "pending_gpus",
        "nominal_gpus", "ready_gpus",
    )  # fmt: skip
    return list(rows.order_by("start").values_list(*columns))


def _starvation(rule: Rule, times: Floats) -> Series:
    """How long the worst-off queue has held less than ``STARVED`` of its fair share while it waits. The root
    is no queue of anybody's: it holds less where GPUs are free that what waits does not fit."""
    begun: dict[tuple[int, int], float] = {}
    spells = []
    somebodys = _leaves(rule) & Q(queue__parent__isnull=False)
    for queue, gpu_class, start, allocated, fair, pending, _, _ in _samples(rule, times, somebodys):
        key, at = (queue, gpu_class), start.timestamp()
        if pending > 0 and allocated < STARVED * fair:
            begun.setdefault(key, at)
        elif key in begun:
            spells.append((*key, begun.pop(key), at))
    spells += [(*key, at, times[-1] + 1) for key, at in begun.items()]
    return _longest(times, spells)


def _idle_gpus(rule: Rule, times: Floats) -> Series:
    rows = IdleSpell.objects.filter(
        Q(until=None) | Q(until__gt=_at(times[0])),
        workload__in=Workload.objects.filter(_leaves(rule)),
        gpus__gte=rule.least_gpus * MILLI,
        since__lte=_at(times[-1]),
    )
    if rule.gpu_class is not None:
        rows = rows.filter(gpu_class=rule.gpu_class)
    columns = rows.values_list("workload_id", "gpu_class_id", "since", "until")
    spells = (
        (pk, gpu_class, since.timestamp(), until.timestamp() if until else times[-1] + 1)
        for pk, gpu_class, since, until in columns
    )
    return _longest(times, spells)


def _evicted_again(rule: Rule, times: Floats) -> Series:
    """The most evictions in the seven days before of one workload that has not ended."""
    rows = Eviction.objects.filter(
        _leaves(rule), at__gt=_at(times[0]) - EVICTIONS_OF, at__lte=_at(times[-1])
    )
    if rule.gpu_class is not None:
        rows = rows.filter(gpu_class=rule.gpu_class)
    columns = rows.order_by("at").values_list("at", "workload_id", "workload__finished_at")
    found = [(at.timestamp(), pk, ended) for at, pk, ended in columns]
    over = sorted({(ended.timestamp(), pk) for _, pk, ended in found if ended}, reverse=True)
    course, counts = Series.unknown(times), Counter[int]()
    low = high = 0
    for i, now in enumerate(times.tolist()):
        while high < len(found) and found[high][0] <= now:
            counts[found[high][1]] += 1
            high += 1
        while low < high and found[low][0] <= now - EVICTIONS_OF.total_seconds():
            counts[found[low][1]] -= 1  # Below zero of what ended: no most.
            low += 1
        while over and over[-1][0] <= now:
            counts.pop(over.pop()[1], None)
        top = max(counts.items(), key=lambda pair: pair[1], default=(0, 0))
        course.values[i], course.who[i] = top[1], top[0]
    return course


def _in_vain(rule: Rule, times: Floats) -> Series:
    """Evictions of the 24 hours before whose room somebody was promised and did not get."""
    rows = Eviction.objects.filter(
        _leaves(rule), in_vain__in=IN_VAIN, at__gt=_at(times[0]) - DAY, at__lte=_at(times[-1])
    )
    if rule.gpu_class is not None:
        rows = rows.filter(gpu_class=rule.gpu_class)
    found = epochs(list(rows.order_by("at").values_list("at", flat=True)))
    course = Series.unknown(times)
    until = np.searchsorted(found, times, side="right")
    course.values[:] = until - np.searchsorted(found, times - DAY.total_seconds(), side="right")
    return course


def _oversubscribed(rule: Rule, times: Floats) -> Series:
    """GPUs that queues below the root are guaranteed above what is ready, of the worst class."""
    tops = Q(queue__cluster=rule.cluster_id) & (
        Q(queue__parent=None) | Q(queue__parent__parent=None)
    )
    roots = set(
        Queue.objects.filter(cluster=rule.cluster_id, parent=None).values_list("pk", flat=True)
    )
    excess: dict[float, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for queue, gpu_class, start, _, _, _, nominal, ready in _samples(rule, times, tops):
        excess[start.timestamp()][gpu_class] += -ready if queue in roots else nominal
    starts = np.array(sorted(excess))
    worst = [max((over, pk) for pk, over in excess[at].items()) for at in starts.tolist()]
    return _steps(times, starts, worst)


def _steps(times: Floats, starts: Floats, worst: list[tuple[float, int]]) -> Series:
    """The last (milli-GPU, class) that began before each moment."""
    course = Series.unknown(times)
    for i, at in enumerate((np.searchsorted(starts, times, side="right") - 1).tolist()):
        if at >= 0:
            course.values[i], course.gpu_class[i] = worst[at][0] / MILLI, worst[at][1]
    return course


def _mirror_stale(rule: Rule, times: Floats) -> Series:
    """The largest lag since the moment before, as far as a cycle was kept."""
    step = times[1] - times[0] if len(times) > 1 else 600.0
    rows = Cycle.objects.filter(
        cluster=rule.cluster_id,
        lag_s__isnull=False,
        at__gt=_at(times[0] - step),
        at__lte=_at(times[-1]),
    ).order_by("at")
    found = list(rows.values_list("at", "lag_s"))
    course = Series.unknown(times)
    which = np.searchsorted(times, epochs([at for at, _ in found]))
    for i, (_, lag_s) in zip(which.tolist(), found, strict=True):
        course.values[i] = np.fmax(course.values[i], lag_s or 0.0)
    return course


def _engine_stalled(rule: Rule, times: Floats) -> Series:
    """Real seconds since the last finished cycle; of now alone, as nobody keeps when there was none."""
    course, cluster = Series.unknown(times), rule.cluster
    if cluster.planned_at is not None and cluster.mode != ClusterMode.PAUSED:
        course.values[-1] = max(0.0, (timezone.now() - cluster.planned_at).total_seconds())
    return course


def _budget(rule: Rule, times: Floats) -> Series:
    """Days before its end on which a budget runs out, of the worst one; of now alone."""
    now = _at(times[-1])
    known = Budget.objects.filter(_leaves(rule)).select_related("queue__cluster")
    rows = in_force(known, rule.cluster)
    course = Series.unknown(times)
    for one in spendings(rule.cluster, rows, now):
        days = (one.budget.end - one.runs_out).days if one.runs_out else 0
        if not course.values[-1] >= days:
            course.values[-1], course.who[-1] = days, one.budget.queue_id
    return course


READ: Mapping[Figure, Callable[[Rule, Floats], Series]] = {
    Figure.LONGEST_WAIT: _longest_wait,
    Figure.WAIT_P90: _wait_p90,
    Figure.STARVATION: _starvation,
    Figure.IDLE_GPUS: _idle_gpus,
    Figure.EVICTED_AGAIN: _evicted_again,
    Figure.IN_VAIN: _in_vain,
    Figure.BUDGET: _budget,
    Figure.OVERSUBSCRIBED: _oversubscribed,
    Figure.ENGINE_STALLED: _engine_stalled,
    Figure.MIRROR_STALE: _mirror_stale,
}
OF_WORK = frozenset({Figure.LONGEST_WAIT, Figure.IDLE_GPUS, Figure.EVICTED_AGAIN})
OF_QUEUES = frozenset({Figure.STARVATION, Figure.BUDGET})
LASTING = frozenset({Figure.LONGEST_WAIT, Figure.STARVATION, Figure.IDLE_GPUS})
"""Spans of the cluster's time that grow by themselves: since when they are over a bound follows from them."""
OF_NOW = frozenset({Figure.BUDGET, Figure.ENGINE_STALLED})
"""Whose past nobody keeps."""
OF_PROCESSES = frozenset({Figure.ENGINE_STALLED, Figure.MIRROR_STALE})
"""High where the worker that looks at rules may be dead itself."""
