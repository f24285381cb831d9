"""What work asked for against what it used, by name without its counters, and what would have done.

Half of the GPUs of the class, or half of that, would do where what is used of them fits into so many at
``FULL`` activity, and memory with some room; of one GPU alone another class would, whose worth beside it (the
exchange rate) covers the activity. It is an estimate from means: how fast the run would be there nobody has
tried.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from django.db.models import F, Max, Sum

from portal.accounts.models import User
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from portal.reports.timelines import workload_filter
from portal.teams.access import visible_workloads
from scheduling.models import MILLI, GpuClass, GpuUse
from scheduling.services.run_times.runs import kin_of

FULL = 0.8
"""Activity of GPUs that are well used."""
ROOM = 1.15
"""Memory that would have to be there for each MiB that was used."""
LEAST_GPU_HOURS = 10.0
"""Less than that is not worth a change."""


@dataclass(frozen=True, slots=True)
class AskedRow:
    """``gpus`` of one run; memory of one GPU, the 95th percentile over the runs; ``saves`` in the range, None
    where the person reads no costs. ``would_do`` is empty where it fits as it was asked."""

    name: str
    queue: str
    people: int
    user: str
    runs: int
    gpus: float
    gpu_class: str
    position: int
    gpu_hours: float
    memory_mib: float
    memory_total_mib: float
    activity: float
    would_do: str
    part: float
    """Of the GPU-hours' worth that would be saved."""
    saves: float | None
    newest: str
    """The uid of the last run."""
    newest_id: int
    queue_id: int


@dataclass(slots=True)
class _Group:
    users: set[str] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    gpu_s: float = 0.0
    active_gpu_s: float = 0.0
    peaks: list[float] = field(default_factory=list)
    total_mib: float = 0.0
    newest: tuple[int, str] = (0, "")
    """Id and uid of the last run."""
    queue_id: int = 0


Key = tuple[str, str, int, float]
"""Stem, queue, class and GPUs of a run."""


def asked_against_used(
    scope: Scope, filters: ReportFilters, user: User, *, reads_costs: bool
) -> tuple[AskedRow, ...]:
    """Of work that the person may see, what would save most first. Two queries."""
    groups = _groups(scope, filters, user)
    memory = _memory(scope, groups)
    rows = [
        _row(scope, key, group, memory, reads_costs=reads_costs)
        for key, group in groups.items()
        if group.gpu_s >= 3600 * LEAST_GPU_HOURS
    ]
    return tuple(sorted(rows, key=lambda r: (-r.part * _worth(scope, r), -r.gpu_hours, r.name)))


def _worth(scope: Scope, row: AskedRow) -> float:
    rates = {c.name: float(c.exchange_rate) for c in scope.classes.values()}
    return row.gpu_hours * rates[row.gpu_class]


def _groups(scope: Scope, filters: ReportFilters, user: User) -> dict[Key, _Group]:
    rows = (
        GpuUse.objects.filter(
            workload_filter(filters, "workload__"),
            workload__in=visible_workloads(user),
            workload__queue__in=list(scope.leaves),
            gpu_class__in=list(scope.classes),
            start__gte=filters.start,
            start__lt=filters.end,
        )
        .order_by()
        .values_list("workload_id", "gpu_class_id")
        .annotate(
            all=Sum("gpu_s"),
            active=Sum("active_gpu_s"),
            peak=Max("memory_peak_mib"),
            there=Max("memory_total_mib"),
            gpus=F("workload__gpus") * F("workload__min_members") * 1.0,
            called=F("workload__name"),
            whose=F("workload__user"),
            place=F("workload__queue__name"),
            uid=F("workload__uid"),
            queue=F("workload__queue_id"),
        )
    )
    found: dict[Key, _Group] = defaultdict(_Group)
    columns = ("all", "active", "peak", "there", "gpus", "called", "whose", "place", "uid", "queue")
    for pk, gpu_class, *values in rows.values_list("workload_id", "gpu_class_id", *columns):
        all_s, active_s, peak, there, gpus, name, whose, place, uid, queue = values
        group = found[kin_of(name), place, gpu_class, float(gpus) / MILLI]
        group.users.add(whose)
        group.runs.add(pk)
        group.newest = max(group.newest, (pk, uid))
        group.queue_id = queue
        group.gpu_s += all_s
        group.active_gpu_s += active_s
        group.peaks.append(peak)
        group.total_mib = max(group.total_mib, there)
    return found


def _memory(scope: Scope, groups: Mapping[Key, _Group]) -> dict[int, float]:
    """MiB of one GPU of each class, as far as it was measured."""
    found: dict[int, float] = {}
    for (_, _, gpu_class, _), group in groups.items():
        found[gpu_class] = max(found.get(gpu_class, 0.0), group.total_mib)
    return {pk: mib for pk, mib in found.items() if mib and pk in scope.classes}


def _row(
    scope: Scope, key: Key, group: _Group, memory: Mapping[int, float], *, reads_costs: bool
) -> AskedRow:
    stem, queue, pk, gpus = key
    own = scope.classes[pk]
    activity = group.active_gpu_s / group.gpu_s
    peak = float(np.quantile(group.peaks, 0.95))
    would, part = would_do(own, gpus, activity, peak, memory, scope.classes)
    cost = group.gpu_s / 3600 * float(own.price_per_gpu_hour)
    return AskedRow(
        name=f"{stem}-*" if len(group.runs) > 1 else stem,
        queue=queue,
        people=len(group.users),
        user=next(iter(group.users)) if len(group.users) == 1 else "",
        runs=len(group.runs),
        gpus=gpus,
        gpu_class=own.name,
        position=own.position,
        gpu_hours=group.gpu_s / 3600,
        memory_mib=peak,
        memory_total_mib=group.total_mib,
        activity=activity,
        would_do=would,
        part=part,
        saves=cost * part if reads_costs else None,
        newest=group.newest[1],
        newest_id=group.newest[0],
        queue_id=group.queue_id,
    )


def would_do(
    own: GpuClass,
    gpus: float,
    activity: float,
    peak_mib: float,
    memory: Mapping[int, float],
    classes: Mapping[int, GpuClass],
) -> tuple[str, float]:
    """(what would have done, the part of the cost that it saves); ("", 0) where it fits as asked."""
    there = memory.get(own.pk, 0.0)
    if gpus > 1:
        least = max(1.0, gpus * activity / FULL, gpus * peak_mib * ROOM / there if there else 0.0)
        fewer = gpus / 2 ** math.floor(math.log2(gpus / least)) if least < gpus else gpus
        return (f"{fewer:g} × {own.name}", 1 - fewer / gpus) if fewer < gpus else ("", 0.0)
    fits = [c for c in _cheaper(own, classes.values()) if _fits(c, own, activity, peak_mib, memory)]
    if not fits:
        return "", 0.0
    price = float(own.price_per_gpu_hour)
    best = min(fits, key=lambda c: (c.price_per_gpu_hour, c.position))
    return f"1 × {best.name}", 1 - float(best.price_per_gpu_hour) / price


def _cheaper(own: GpuClass, classes: Iterable[GpuClass]) -> Sequence[GpuClass]:
    return [c for c in classes if c.price_per_gpu_hour < own.price_per_gpu_hour]


def _fits(
    other: GpuClass, own: GpuClass, activity: float, peak_mib: float, memory: Mapping[int, float]
) -> bool:
    beside = float(other.exchange_rate / own.exchange_rate)
    return activity <= FULL * beside and peak_mib * ROOM <= memory.get(other.pk, 0.0)
