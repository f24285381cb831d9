"""Demand by the hour: the GPUs that would have run had nothing waited.

Each workload counts from its submission on, at its smallest gang, for as long as its useful work took: what
runs held less what evictions threw away. Of work that has not ended what was predicted stands in; work that
left before it started counts as none, because nobody knows how long it would have run. Hours are worked out
again for ``LATE`` after they have passed: by then most work has told how long it took.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import Q, QuerySet
from numpy.typing import NDArray

from scheduling.models import MILLI, Cluster, Queue, State, UsageSample, Workload
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.holds import until
from scheduling.services.ledger.rollup import floor
from scheduling.services.tables.bulk import write_columns
from scheduling.services.tables.passes import keep, last_of

Floats = NDArray[np.float64]
LATE = timedelta(days=7)
UNKNOWN_S = 3600.0
"""Of work of which nothing is predicted."""
HOUR_S = 3600
TASK = "book demand"
Place = tuple[int, int]
"""Queue and class by id."""


@dataclass(frozen=True, slots=True)
class WantedSpan:
    """``gpus`` (milli) wanted from ``begin`` to ``end``, seconds since 1970."""

    place: Place
    begin: float
    end: float
    gpus: int


def book(cluster: Cluster, *, since: datetime | None = None) -> int:
    """Bring the demand of the hours from ``since`` on into line with the workloads; how many rows changed.

    Only hours that were sampled carry it. Running it again changes nothing; without ``since`` hours are
    worked out once an hour, since all of them are over, and once more where one was sampled meanwhile.
    """
    now = floor(cluster.now(), Resolution.HOUR)
    first = floor(since or now - LATE, Resolution.HOUR)
    count = round((now - first).total_seconds() / HOUR_S)
    if count <= 0:
        return 0
    mark = now.isoformat()
    if since is None and last_of(cluster, TASK).mark == mark and not _open(cluster, first, now):
        return 0
    edges = first.timestamp() + HOUR_S * np.arange(count + 1, dtype=np.float64)
    demand = with_inner(hourly(wanted_spans(cluster, first, cluster.now()), edges), _above(cluster))
    changed = _write(cluster, first, now, demand)
    if since is None:
        keep(cluster, TASK, mark)
    return changed


def _open(cluster: Cluster, first: datetime, last: datetime) -> bool:
    """Whether an hour was sampled that carries no demand yet."""
    return _hours(cluster, first, last).filter(demand_gpus=None).exists()


def hourly(wanted: Iterable[WantedSpan], edges: Floats) -> dict[Place, Floats]:
    """Mean milli-GPU between ``edges``, by place."""
    by_place: dict[Place, list[WantedSpan]] = defaultdict(list)
    for one in wanted:
        by_place[one.place].append(one)
    return {place: _means(ones, edges) for place, ones in by_place.items()}


def _means(ones: list[WantedSpan], edges: Floats) -> Floats:
    """By differences of what is held up to each edge, counted from the first for the sake of precision."""
    gpus = np.array([one.gpus for one in ones], dtype=np.float64)
    origin, times = edges[0], edges - edges[0]
    usage = until(times, np.array([one.begin for one in ones]) - origin, gpus)
    usage -= until(times, np.array([one.end for one in ones]) - origin, gpus)
    return np.asarray(np.maximum(0.0, np.diff(usage) / np.diff(edges)))


def with_inner(
    leaves: Mapping[Place, Floats], above: Mapping[int, int | None]
) -> dict[Place, Floats]:
    """The same for every queue: inner ones ask for what is asked below them."""
    found: dict[Place, Floats] = {}
    for (leaf, gpu_class), gpus in leaves.items():
        queue: int | None = leaf
        while queue is not None:
            known = found.get((queue, gpu_class))
            found[queue, gpu_class] = gpus if known is None else known + gpus
            queue = above.get(queue)
    return found


def _above(cluster: Cluster) -> dict[int, int | None]:
    return dict(Queue.objects.filter(cluster=cluster).values_list("pk", "parent_id"))


class _Row(NamedTuple):
    """Of a workload, what tells how long it was wanted; named as its columns."""

    queue_id: int
    gpu_class_id: int | None
    gpu_classes: list[str]
    gpus: int
    min_members: int
    members: int
    state: str
    submitted_at: datetime
    started_at: datetime | None
    first_started_at: datetime | None
    used_gpu_s: float
    lost_gpu_s: float
    prediction__p50_s: float | None

    @property
    def size(self) -> int:
        """Milli-GPU of its smallest gang."""
        return self.gpus * self.min_members

    def length_s(self, now: datetime) -> float:
        """Of its useful work at that size, as far as it is known."""
        ran_s = max(0.0, (self.used_gpu_s - self.lost_gpu_s) * MILLI / self.size)
        if self.state == State.FINISHED:
            return ran_s if self.first_started_at else 0.0
        if self.state == State.RUNNING and self.started_at:
            usage = self.gpus * self.members / self.size
            ran_s += (now - self.started_at).total_seconds() * usage
            return ran_s + (self.prediction__p50_s or 0.0)
        rest_s = self.prediction__p50_s
        return ran_s + (UNKNOWN_S if rest_s is None else rest_s)


def wanted_spans(cluster: Cluster, start: datetime, now: datetime) -> Iterator[WantedSpan]:
    """What each workload wanted that was not over at ``start``."""
    classes = dict(cluster.gpu_classes.values_list("name", "pk"))
    alive = Q(finished_at=None) | Q(finished_at__gt=start)
    rows = Workload.objects.filter(
        alive, cluster=cluster, queue__isnull=False, gpus__gt=0, min_members__gt=0,
        submitted_at__lt=now,
    )  # fmt: skip
    for values in rows.order_by().values_list(*_Row._fields).iterator(chunk_size=5000):
        row = _Row._make(values)
        first = next((classes[name] for name in row.gpu_classes if name in classes), None)
        gpu_class, length = row.gpu_class_id or first, row.length_s(now)
        if gpu_class is not None and length > 0:
            begin = row.submitted_at.timestamp()
            end = min(now.timestamp(), begin + length)
            yield WantedSpan((row.queue_id, gpu_class), begin, end, row.size)


def _hours(cluster: Cluster, first: datetime, last: datetime) -> QuerySet[UsageSample]:
    return UsageSample.objects.filter(
        queue__cluster=cluster, resolution=Resolution.HOUR, start__gte=first, start__lt=last
    )


def _write(
    cluster: Cluster, first: datetime, last: datetime, demand: Mapping[Place, Floats]
) -> int:
    rows = _hours(cluster, first, last).only("queue_id", "gpu_class_id", "start", "demand_gpus")
    changed = []
    for row in rows:
        hours = demand.get((row.queue_id, row.gpu_class_id))
        at = round((row.start - first).total_seconds() / HOUR_S)
        gpus = 0.0 if hours is None else round(float(hours[at]), 3)
        if row.demand_gpus != gpus:
            row.demand_gpus = gpus
            changed.append(row)
    with transaction.atomic():
        write_columns(changed, ["demand_gpus"])
    return len(changed)
