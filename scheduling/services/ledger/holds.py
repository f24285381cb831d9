"""What a workload held, class by class, as its steps say: the one ledger that is charged by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from scheduling.models import MILLI, GpuClass, Transition, Workload
from scheduling.services.ledger.prices import Change, cut

Step = tuple[datetime, int, int | None]
"""When, milli-GPU held from then on, and of which class, by id."""
OF_STEP: Final = Coalesce("gpu_class_id", "workload__gpu_class_id")
"""The class by which a transition's GPUs count."""


@dataclass(frozen=True, slots=True)
class Hold:
    """So many GPUs (or slices) of a class, by id, from one step of a workload to its next."""

    gpu_class: int
    begin: datetime
    end: datetime
    gpus: float

    @property
    def gpu_s(self) -> float:
        return self.gpus * (self.end - self.begin).total_seconds()


def holds_of(work: Workload, steps: Iterable[Transition], now: datetime) -> list[Hold]:
    """What ``work`` held up to ``now``; ``steps`` are all of its. Where those are kept no more, all of it
    counts as one run on the class that it held last, which ended when it did."""
    ordered = sorted(steps, key=lambda step: (step.at, step.pk or 0))
    rows = [(step.at, step.gpus, step.gpu_class_id or work.gpu_class_id) for step in ordered]
    return list(holds_between(rows, work.finished_at, now)) or _unknown(work, now)


def holds_between(
    steps: Sequence[Step], finished: datetime | None, now: datetime
) -> Iterator[Hold]:
    """What one workload held up to ``now``, from each of its ``steps`` in order to the next."""
    ends = [*(at for at, *_ in steps[1:]), finished or now]
    for (at, gpus, pk), end in zip(steps, ends, strict=False):
        until = min(end, now)
        if gpus and pk is not None and until > at:
            yield Hold(pk, at, until, gpus / MILLI)


def _unknown(work: Workload, now: datetime) -> list[Hold]:
    gpu_s, end = work.held_gpu_s(now), work.finished_at or now
    begin = work.started_at or work.submitted_at
    if work.gpu_class_id is None or not gpu_s or begin >= end:
        return []
    return [Hold(work.gpu_class_id, begin, end, gpu_s / (end - begin).total_seconds())]


def charged(
    holds: Iterable[Hold], classes: Mapping[int, GpuClass], changes: Iterable[Change]
) -> float:
    """What ``holds`` cost, each at the prices of its time; of known ``classes`` alone."""
    known = list(changes)
    return sum(
        Hold(hold.gpu_class, part.start, part.end, hold.gpus).gpu_s / 3600
        * part.prices[hold.gpu_class]
        for hold in holds if hold.gpu_class in classes
        for part in cut(classes, known, hold.begin, hold.end)
    )  # fmt: skip


EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Life:
    """Of one workload, with what it held of some classes."""

    workload: int
    queue: int
    user: str
    type: str
    finished: datetime | None
    outcome: str
    holds: Sequence[Hold]

    def by_class(self, start: datetime, end: datetime) -> dict[int, float]:
        """GPU-seconds held in [start, end)."""
        found: dict[int, float] = defaultdict(float)
        for hold in self.holds:
            span_s = (min(hold.end, end) - max(hold.begin, start)).total_seconds()
            if span_s > 0:
                found[hold.gpu_class] += hold.gpus * span_s
        return found


OF_LIFE = ("queue_id", "user", "type", "finished_at", "outcome")


def lives_of(
    steps: QuerySet[Transition], gpu_classes: Iterable[int], until: datetime
) -> list[Life]:
    """Of the workloads of ``steps``, all of theirs up to ``until``. One query."""
    wanted, found = frozenset(gpu_classes), []
    rows = steps.annotate(held_class=OF_STEP).order_by("workload_id", "at", "id")
    columns = ("workload_id", "at", "gpus", "held_class", *(f"workload__{n}" for n in OF_LIFE))
    for pk, mine in groupby(
        rows.values_list(*columns).iterator(chunk_size=5000), key=itemgetter(0)
    ):
        lived = list(mine)
        queue, user, type_, finished, outcome = lived[0][4:]
        held = holds_between([row[1:4] for row in lived], finished, until)
        holds = [hold for hold in held if hold.gpu_class in wanted]
        found.append(Life(pk, queue, user, type_, finished, outcome, holds))
    return found


Floats = NDArray[np.float64]


def until(times: Floats, since: Floats, loads: Floats) -> Floats:
    """Load-seconds up to each of ``times`` of ``loads`` that stay for ever from ``since`` on: the sum of
    load * (time - since) over those that have come.

    Times in seconds from a nearby moment: since 1970, sums of products would lose the seconds.
    """
    order = np.argsort(since, kind="stable")
    since, loads = since[order], loads[order]
    count = np.searchsorted(since, times)
    total, moment = np.append(0.0, np.cumsum(loads)), np.append(0.0, np.cumsum(loads * since))
    return np.asarray(total[count] * times - moment[count])
