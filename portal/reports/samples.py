"""Readings from usage samples, added up by the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.expressions import Combinable

from portal.display.periods import DAY_S, HOUR_S, Floats, epochs, step_s
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from portal.reports.usage import NO_SPANS, PER_GPU_HOUR, ClassOverTime, Readings, Spans, Usage
from scheduling.models import Cluster, UsageSample, Workload
from scheduling.models.ledger import Resolution
from scheduling.services.tables.among import among

FINEST_S = {Resolution.MINUTE: 60, Resolution.HOUR: HOUR_S, Resolution.DAY: DAY_S}
SAMPLE = timedelta(hours=1)
SUMS = ("installed", "capacity", "nominal", "allocated", "measured", "used", "pending")


def gpu_s(column: str | Combinable, **options: Any) -> Sum:
    """Milli-GPU-seconds of a column over the rows of a group."""
    value = F(column) if isinstance(column, str) else column
    return Sum(value * F("seconds"), default=0.0, **options)


def _sums(of: Q = Q(), prefix: str = "") -> dict[str, Sum]:  # noqa: B008 - never changed
    """SUMS of the rows that fulfil ``of``; a name begins with ``prefix``."""
    measured = of & Q(used_gpus__isnull=False)
    sums = {
        "installed": gpu_s("installed_gpus", filter=of),
        "capacity": gpu_s("ready_gpus", filter=of),
        "nominal": gpu_s("nominal_gpus", filter=of),
        "allocated": gpu_s("allocated_gpus", filter=of),
        "measured": gpu_s("allocated_gpus", filter=measured),
        "used": gpu_s("used_gpus", filter=of),
        "pending": gpu_s("pending_gpus", filter=of),
    }
    return {f"{prefix}{name}": total for name, total in sums.items()}


OWN, TOP = "own_", "top_"


def _both(scope: Scope) -> dict[str, Sum]:
    """Sums over leaves, which hold the work, and over tops, which carry what it is measured against."""
    leaves, tops = among("queue", scope.leaves), among("queue", scope.tops)
    return {**_sums(leaves, OWN), **_sums(tops, TOP)}


def _prefixed(row: Mapping[str, Any], prefix: str) -> dict[str, float]:
    return {name: row[f"{prefix}{name}"] for name in SUMS}


def _rows(scope: Scope, filters: ReportFilters, queues: Iterable[int]) -> QuerySet[UsageSample]:
    """Those of the time since the first work that the cluster knows of: what older ones say was held is
    charged to nobody, and would be a share of GPU-hours that no other figure counts."""
    _, work = scope.once("firsts", lambda: _firsts(scope))
    return UsageSample.objects.filter(
        among("queue", queues),
        gpu_class__in=list(scope.classes),
        start__gte=filters.start if work is None else max(filters.start, work),
        start__lt=filters.end,
    ).order_by()


def best_resolution(scope: Scope, filters: ReportFilters) -> Resolution | None:
    """The first that has samples in the range, in the filters' order of preference."""
    rows = _rows(scope, filters, scope.tops)
    key = ("resolution", filters.start, filters.end)
    return scope.once(key, lambda: _first_there(rows, filters.resolutions()))


def _first_there(
    rows: QuerySet[UsageSample], resolutions: Iterable[Resolution]
) -> Resolution | None:
    """Whether there are any is one question, of all of them."""
    wanted = list(resolutions)
    there = [Exists(rows.filter(resolution=one)) for one in wanted]
    found = Cluster.objects.order_by().values_list(*there)[:1].get() if wanted else ()
    return next((one for one, is_there in zip(wanted, found, strict=True) if is_there), None)


def is_known(scope: Scope, filters: ReportFilters) -> bool:
    """True when samples and work both reach back to the begin of the range: then it can be compared with.
    Samples of what nodes hold may be older than the first workload that the cluster knows of."""
    least = reaching(filters)
    firsts = scope.once("firsts", lambda: _firsts(scope))
    return all(first is not None and first <= least for first in firsts)


def has_work(scope: Scope, filters: ReportFilters) -> bool:
    """As ``is_known``, of what work alone tells."""
    _, first = scope.once("firsts", lambda: _firsts(scope))
    return first is not None and first <= reaching(filters)


def reaching(filters: ReportFilters) -> datetime:
    """What is known from here on reaches back to the begin of the range: coarse samples are of an hour."""
    return filters.start + min(filters.span / 10, SAMPLE)


def known_since(cluster: Cluster) -> datetime | None:
    """Since when there are both samples and work; None while one is missing. One query."""
    samples = UsageSample.objects.filter(queue__cluster=OuterRef("pk")).order_by("start")
    work = Workload.objects.filter(cluster=OuterRef("pk")).order_by("submitted_at")
    first = Subquery(samples.values("start")[:1]), Subquery(work.values("submitted_at")[:1])
    found = Cluster.objects.filter(pk=cluster.pk).values_list(*first).get()
    return None if None in found else max(found)


def _firsts(scope: Scope) -> tuple[datetime | None, datetime | None]:
    """When the first sample begins, and when the first work was submitted. One query."""
    rows = UsageSample.objects.filter(queue__in=list(scope.tops)).order_by()
    sampled = rows.values("queue__cluster").annotate(at=Min("start")).values("at")
    work = Workload.objects.filter(cluster=scope.cluster).order_by("submitted_at")
    known = Cluster.objects.filter(pk=scope.cluster.pk)
    return known.values_list(Subquery(sampled), Subquery(work.values("submitted_at")[:1])).get()


def _usage(own: Mapping[str, Any], top: Mapping[str, Any], *, whole: bool) -> Usage:
    """``own``: sums over leaves; ``top``: over the scope's top queues. Milli-GPU-seconds in."""
    capacity = top.get("capacity" if whole else "nominal", 0.0)
    return Usage.of(
        installed=top.get("installed", 0.0) / PER_GPU_HOUR,
        capacity=capacity / PER_GPU_HOUR,
        known=own.get("allocated", 0.0) / PER_GPU_HOUR,
        measured=own.get("measured", 0.0) / PER_GPU_HOUR,
        used=own.get("used", 0.0) / PER_GPU_HOUR,
        pending=own.get("pending", 0.0) / PER_GPU_HOUR,
    )


def class_usage(
    scope: Scope, filters: ReportFilters, resolution: Resolution | None
) -> dict[int, Usage]:
    """GPU-hours of each class of the scope, without a series."""
    if resolution is None:
        return {}
    rows = _rows(scope, filters, scope.leaves | scope.tops).filter(resolution=resolution)
    return {
        row["gpu_class_id"]: _usage(_prefixed(row, OWN), _prefixed(row, TOP), whole=scope.is_whole)
        for row in rows.values("gpu_class_id").annotate(**_both(scope))
    }


def read(scope: Scope, filters: ReportFilters) -> Readings:
    """Series, class totals and leaf totals from the best samples there are."""
    resolution = best_resolution(scope, filters)
    if resolution is None:
        return Readings(np.empty(0), HOUR_S)
    own, top = _by_start(scope, filters, resolution)
    step = step_s(filters.span, FINEST_S[resolution])
    origin = min(own.first, top.first)
    count = int((max(own.last, top.last) - origin) // step) + 1
    spans = _spans(np.append(own.starts, top.starts), np.append(own.seconds, top.seconds))
    covered = spans.covered(origin, step, count)
    lines, classes = {}, {}
    for pk in scope.classes:
        own_sums = own.binned(pk, origin, step, count)
        top_sums = top.binned(pk, origin, step, count)
        lines[pk] = _line(own_sums, top_sums, covered, whole=scope.is_whole)
        classes[pk] = _usage(
            {name: float(own_sums[i].sum()) for i, name in enumerate(SUMS)},
            {name: float(top_sums[i].sum()) for i, name in enumerate(SUMS)},
            whole=scope.is_whole,
        )
    return Readings(
        starts_s=origin + step * np.arange(count, dtype=np.float64),
        step_s=step,
        spans=spans,
        lines=lines,
        classes=classes,
        queues=queue_usage(scope, filters, resolution),
        until_s=max(own.until, top.until),
    )


class _Sums:
    """Milli-GPU-seconds by (start, class), as columns."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        columns = list(zip(*rows, strict=True)) or [()] * (len(SUMS) + 3)
        self.starts: Floats = epochs(columns[0])
        self.classes = np.array(columns[1], dtype=np.int64)
        self.seconds = np.array(columns[2], dtype=np.float64)
        self.values = np.array(columns[3:], dtype=np.float64)
        self.first = float(self.starts.min()) if rows else np.inf
        self.last = float(self.starts.max()) if rows else -np.inf
        self.until = float((self.starts + self.seconds).max()) if rows else -np.inf

    def binned(self, pk: int, origin: float, step: int, count: int) -> Floats:
        """(sums, steps) of one class."""
        chosen = self.classes == pk
        index = ((self.starts[chosen] - origin) // step).astype(np.int64)
        return np.array([np.bincount(index, row[chosen], count) for row in self.values])


def _by_start(scope: Scope, filters: ReportFilters, resolution: Resolution) -> tuple[_Sums, _Sums]:
    """Of leaves and of tops.

    Seconds of a start are the longest of its rows, so that a class without rows counts as zero.
    """
    columns = [f"{prefix}{name}" for prefix in (OWN, TOP) for name in SUMS]
    rows = (
        _rows(scope, filters, scope.leaves | scope.tops)
        .filter(resolution=resolution)
        .values("start", "gpu_class_id")
        .annotate(covered=Max("seconds"), **_both(scope))
        .values_list("start", "gpu_class_id", "covered", *columns)
    )
    found = list(rows)
    count = 3 + len(SUMS)
    return (
        _Sums([row[:count] for row in found]),
        _Sums([(*row[:3], *row[count:]) for row in found]),
    )


def spans_of(scope: Scope, filters: ReportFilters, resolution: Resolution | None) -> Spans:
    """The time that samples of the scope cover in the range."""
    if resolution is None:
        return NO_SPANS
    rows = (
        _rows(scope, filters, scope.leaves | scope.tops)
        .filter(resolution=resolution)
        .values("start")
        .annotate(covered=Max("seconds"))
        .values_list("start", "covered")
    )
    starts, seconds = list(zip(*rows, strict=True)) or ((), ())
    return _spans(epochs(starts), np.array(seconds, dtype=np.float64))


def _spans(starts: Floats, seconds: Floats) -> Spans:
    """One for each start, as long as the longest of its samples."""
    unique, inverse = np.unique(starts, return_inverse=True)
    longest = np.zeros(len(unique))
    np.maximum.at(longest, inverse, seconds)
    return Spans(unique, unique + longest)


def _line(own: Floats, top: Floats, covered: Floats, *, whole: bool) -> ClassOverTime:
    with np.errstate(invalid="ignore", divide="ignore"):
        own_gpus, top_gpus = own / covered / 1000, top / covered / 1000
    used, allocated, measured = (SUMS.index(name) for name in ("used", "allocated", "measured"))
    with np.errstate(invalid="ignore", divide="ignore"):
        # What was measured stands for the whole step, where only a part of it was.
        part = np.where(own[measured] > 0, own[used] / own[measured], np.nan)
    idle = own[allocated] == 0
    return ClassOverTime(
        installed=top_gpus[SUMS.index("installed")],
        capacity=top_gpus[SUMS.index("capacity" if whole else "nominal")],
        allocated=own_gpus[allocated],
        used=np.where(idle, 0.0 * own_gpus[allocated], part * own_gpus[allocated]),
    )


def gpu_hours_of_shares(
    scope: Scope, filters: ReportFilters, resolution: Resolution | None
) -> list[tuple[int, int, float, float]]:
    """(leaf, class, held, of the fair share), GPU- or slice-hours. One query."""
    if resolution is None:
        return []
    rows = _rows(scope, filters, scope.leaves).filter(resolution=resolution)
    sums = rows.values("queue_id", "gpu_class_id").annotate(
        held=gpu_s("allocated_gpus"), share=gpu_s("fair_share_gpus")
    )
    return [
        (queue, pk, use / PER_GPU_HOUR, share / PER_GPU_HOUR)
        for queue, pk, use, share in sums.values_list("queue_id", "gpu_class_id", "held", "share")
    ]


def queue_usage(
    scope: Scope, filters: ReportFilters, resolution: Resolution | None
) -> dict[tuple[int, int], Usage]:
    """By leaf and class; a leaf's capacity is its own nominal quota. One query a scope and range."""
    if resolution is None:
        return {}
    key = ("queues", filters.start, filters.end, resolution)
    return scope.once(key, lambda: _queue_usage(scope, filters, resolution))


def _queue_usage(
    scope: Scope, filters: ReportFilters, resolution: Resolution
) -> dict[tuple[int, int], Usage]:
    rows = (
        _rows(scope, filters, scope.leaves)
        .filter(resolution=resolution)
        .values("queue_id", "gpu_class_id")
        .annotate(**_sums())
    )
    return {(row["queue_id"], row["gpu_class_id"]): _usage(row, row, whole=False) for row in rows}
