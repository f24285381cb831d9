"""Readings of GPUs booked over the time since the last ones: by workload and hour, and into the samples.

A reading stands for the time since the one before, as a scrape does; a longer gap than ``MOST_GAP_S`` was not
watched and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from scheduling.cluster.metrics import PodUse
from scheduling.models import Cluster, GpuUse, Queue, UsageSample, Workload
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.rollup import floor_minute
from scheduling.services.tables.bulk import write_columns

IDLE_BELOW = 0.05
"""SM activity below which nothing runs on a GPU."""
HOUR = timedelta(hours=1)
KEY = ("workload_id", "gpu_class_id", "start")
FIGURES = [
    "gpu_s", "active_gpu_s", "idle_gpu_s", "memory_mib", "memory_peak_mib", "memory_total_mib",
    "energy_j",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasuredGpuUse:
    """What a workload, which holds GPUs, does with them."""

    work: Workload
    use: PodUse

    @property
    def is_idle(self) -> bool:
        return self.use.activity < IDLE_BELOW


def together(parts: Iterable[PodUse]) -> PodUse:
    """The pods of one workload as one."""
    found = list(parts)
    count = sum(part.devices for part in found)

    def mean(name: str) -> float:
        return sum(float(getattr(part, name)) * part.devices for part in found) / count

    return PodUse(
        devices=count,
        activity=mean("activity"),
        memory_mib=mean("memory_mib"),
        memory_total_mib=mean("memory_total_mib"),
        power_w=sum(part.power_w for part in found),
    )


def book_work(measured: Iterable[MeasuredGpuUse], since: datetime, now: datetime) -> None:
    """Add the time from ``since``, or its start, to ``now`` to the hours of each workload."""
    parts = [
        (one, begin, end)
        for one in measured
        for begin, end in hours_between(max(since, one.work.started_at or since), now)
    ]
    pks = {one.work.pk for one, _, _ in parts}
    starts = {_hour(begin) for _, begin, _ in parts}
    known = {
        (use.workload_id, use.gpu_class_id, use.start): use
        for use in GpuUse.objects.filter(workload__in=pks, start__in=starts)
    }
    for one, begin, end in parts:
        key = (one.work.pk, one.work.gpu_class_id or 0, _hour(begin))
        row = known.setdefault(key, GpuUse(**dict(zip(KEY, key, strict=True))))
        add(row, one.use, (end - begin).total_seconds())
    GpuUse.objects.bulk_create(
        known.values(),
        update_conflicts=True,
        unique_fields=["workload", "gpu_class", "start"],
        update_fields=FIGURES,
        batch_size=200,
    )


class BookedHour(Protocol):
    """Has the ``FIGURES`` of a workload's hour."""

    gpu_s: float
    active_gpu_s: float
    idle_gpu_s: float
    memory_mib: float
    memory_peak_mib: float
    memory_total_mib: float
    energy_j: float


def add(row: BookedHour, use: PodUse, seconds: float) -> None:
    """``seconds`` of ``use`` on top of what ``row`` has."""
    gpu_s = use.devices * seconds
    before, row.gpu_s = row.gpu_s, row.gpu_s + gpu_s
    row.active_gpu_s += gpu_s * use.activity
    row.idle_gpu_s += gpu_s * (use.activity < IDLE_BELOW)
    row.memory_mib = (row.memory_mib * before + use.memory_mib * gpu_s) / row.gpu_s
    row.memory_peak_mib = max(row.memory_peak_mib, use.memory_mib)
    row.memory_total_mib = max(row.memory_total_mib, use.memory_total_mib)
    row.energy_j += use.power_w * seconds


def hours_between(since: datetime, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """[since, now) cut at whole hours."""
    while since < now:
        end = min(now, _hour(since) + HOUR)
        yield since, end
        since = end


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def book_samples(
    cluster: Cluster, measured: Iterable[MeasuredGpuUse], since: datetime, now: datetime
) -> None:
    """Say in the minutes since ``since`` what of the allocated GPUs of each queue was really used."""
    shares = _shares(cluster, measured)
    samples = UsageSample.objects.filter(
        queue__cluster=cluster, resolution=Resolution.MINUTE, allocated_gpus__gt=0,
        start__gte=floor_minute(since), start__lte=now,
    )  # fmt: skip
    rows = [s for s in samples if (s.queue_id, s.gpu_class_id) in shares]
    for sample in rows:
        sample.used_gpus = sample.allocated_gpus * shares[sample.queue_id, sample.gpu_class_id]
    write_columns(rows, ["used_gpus"])


def _shares(
    cluster: Cluster, measured: Iterable[MeasuredGpuUse]
) -> Mapping[tuple[int, int], float]:
    """(queue, class) -> activity of the GPUs that are held there or below."""
    above = dict(Queue.objects.filter(cluster=cluster).values_list("pk", "parent_id"))
    active: dict[tuple[int, int], float] = {}
    devices: dict[tuple[int, int], int] = {}
    for one in measured:
        queue, use = one.work.queue_id, one.use
        while queue is not None:
            key = (queue, one.work.gpu_class_id or 0)
            active[key] = active.get(key, 0.0) + use.activity * use.devices
            devices[key] = devices.get(key, 0) + use.devices
            queue = above.get(queue)
    return {key: active[key] / devices[key] for key in active}
