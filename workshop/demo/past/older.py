"""What was asked of the cluster in the months before the lived past, by the hour.

Single workloads of that time are no longer kept, as after some years of a live cluster. The same organisation
submits, less the further back; what it held is what it asked for as far as there was room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice

import numpy as np
from django.db import transaction

from scheduling.models import MILLI, Cluster, Queue, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.demand import Floats, Place, WantedSpan, hourly, with_inner
from scheduling.services.tables.bulk import insert_rows
from scheduling.simulation.run.jobs import Submission
from workshop.scenario import Organisation, generate

WEEKS = 24
FIRST_LOAD = 0.72
"""Of the load now, that many weeks ago; it grew evenly."""
HOUR_S = 3600
AT_ONCE = 1000
MOST_ALLOCATED = 0.98
"""Of what was ready; the rest is never whole."""


def write_older(
    cluster: Cluster, organisation: Organisation, capacity: Mapping[str, tuple[int, int]],
    until: datetime, seed: int,
) -> int:  # fmt: skip
    """Hourly samples of the weeks before ``until``; how many. ``capacity``: class -> (installed, ready)."""
    last = until.replace(minute=0, second=0, microsecond=0)
    first = last - timedelta(weeks=WEEKS)
    edges = np.arange(first.timestamp(), last.timestamp() + 1, HOUR_S)
    queues = {queue.name: queue for queue in cluster.queues.all()}
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    ids = {name: queue.pk for name, queue in queues.items()}
    wanted = _spans(
        _submitted(organisation, first, seed), ids, {n: c.pk for n, c in classes.items()}
    )
    above = {queue.pk: queue.parent_id for queue in queues.values()}
    demand = with_inner(hourly(wanted, edges), above)
    ready = {c.pk: capacity[name] for name, c in classes.items()}
    root = next(queue for queue in queues.values() if queue.parent_id is None)
    rows = (
        row
        for place, gpus in demand.items()
        for row in _rows(place, gpus, demand[root.pk, place[1]], ready[place[1]], edges, root)
    )
    return sum(map(_write, iter(lambda: list(islice(rows, AT_ONCE)), [])))


def _write(rows: list[UsageSample]) -> int:
    """In a transaction of their own: while it lasts nobody else writes on SQLite."""
    with transaction.atomic():
        insert_rows(rows)
    return len(rows)


def _submitted(organisation: Organisation, first: datetime, seed: int) -> Iterator[Submission]:
    for week in range(WEEKS):
        load = organisation.load * (FIRST_LOAD + (1 - FIRST_LOAD) * week / WEEKS)
        begin = first + timedelta(weeks=week)
        yield from generate(replace(organisation, load=load), begin, 7, seed)


def _spans(
    submitted: Iterator[Submission], queues: Mapping[str, int], classes: Mapping[str, int]
) -> Iterator[WantedSpan]:
    for one in submitted:
        work = one.workload
        begin = one.submitted.timestamp()
        place = (queues[work.queue], classes[work.gpu_classes[0]])
        # A submission's duration is that of all its members.
        yield WantedSpan(place, begin, begin + one.duration_s, work.gpus * work.members.max)


def _rows(
    place: Place,
    gpus: Floats,
    of_all: Floats,
    capacity: tuple[int, int],
    edges: Floats,
    root: Queue,
) -> Iterator[UsageSample]:
    installed, ready = capacity
    part = np.minimum(1.0, MOST_ALLOCATED * ready / np.maximum(of_all, MILLI))
    is_root = place[0] == root.pk
    for at, demand, usage in zip(
        edges.tolist(), gpus.tolist(), (gpus * part).tolist(), strict=False
    ):
        yield UsageSample(
            queue_id=place[0],
            gpu_class_id=place[1],
            resolution=Resolution.HOUR,
            start=datetime.fromtimestamp(at, UTC),
            seconds=HOUR_S,
            installed_gpus=installed if is_root else 0,
            ready_gpus=ready if is_root else 0,
            allocated_gpus=usage,
            fair_share_gpus=usage,
            demand_gpus=demand,
        )
