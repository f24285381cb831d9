"""What a workload held, class by class, as its steps say: the one ledger that is charged by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from django.db.models import BigIntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from scheduling.models import MILLI, GpuClass, Transition, Workload
from scheduling.services.ledger.prices import Change, cut

Step = tuple[datetime, int, int | None]
"""When, milli-GPU held from then on, and of which class, by id."""
OF_STEP: Final = Coalesce("gpu_class_id", "workload__gpu_class_id")
"""The class by which a transition's GPUs count."""
LAST_CLASS: Final = Coalesce(
    "gpu_class_id",
    Subquery(
        Transition.objects.filter(workload=OuterRef("pk"), gpu_class__isnull=False)
        .order_by("-at", "-pk")
        .values("gpu_class_id")[:1]
    ),
    output_field=BigIntegerField(),
)
"""Of work: the class that it holds, or that it held before it was put back to wait."""


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
