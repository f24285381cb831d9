"""Readings from the workloads' own timelines: what samples can't tell, because they know no user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet

from portal.display.periods import HOUR_S, Floats, Ints, epochs, step_s
from portal.reports import measurements, samples
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from portal.reports.usage import PER_GPU_HOUR, ClassOverTime, Readings, Spans, Usage
from scheduling.models import Transition
from scheduling.services.ledger.holds import OF_STEP, until


def read(scope: Scope, filters: ReportFilters) -> Readings:
    """What the chosen user's or type's workloads held, against the same capacity as the samples and over the
    same time; over the whole range where nothing was sampled.

    A workload counts for the class that it held, and the queue that it was last in.
    """
    whole = samples.read(scope, filters)
    if not len(whole.starts_s):
        whole = _unsampled(filters)
    spells = _Spells(scope, filters, whole.spans)
    found = measurements.read(scope, filters, workload_filter(filters, "workload__"))
    origin, count = whole.starts_s[0], len(whole.starts_s)
    lines, classes = {}, {}
    for pk in scope.classes:
        gpu_s = spells.gpu_s(spells.classes == pk)
        by_step = whole.spans.binned(gpu_s, origin, whole.step_s, count)
        with np.errstate(invalid="ignore"):
            mean = by_step / whole.covered_s / 1000
        used = found.line(pk, whole.starts_s, mean)
        lines[pk] = _line(whole.lines.get(pk), mean, used)
        usage = whole.classes.get(pk, Usage()).of_known(float(gpu_s.sum()) / PER_GPU_HOUR)
        classes[pk] = measurements.within(usage, found.of_class(pk))
    queues = {
        key: measurements.within(usage, found.queues.get(key, (0.0, 0.0)))
        for key, usage in spells.by_queue(whole).items()
    }
    return replace(whole, lines=lines, classes=classes, queues=queues, source="workloads")


def _unsampled(filters: ReportFilters) -> Readings:
    """The whole range in even steps, without capacity."""
    step = step_s(filters.span, HOUR_S)
    start, end = filters.start.timestamp(), filters.end.timestamp()
    starts = np.arange(start, end, step, dtype=np.float64)
    return Readings(starts, step, Spans(starts, np.minimum(starts + step, end)))


def class_usage(scope: Scope, filters: ReportFilters) -> dict[int, Usage]:
    """GPU-hours of each class, without a series."""
    resolution = samples.best_resolution(scope, filters)
    capacity = samples.class_usage(scope, filters, resolution)
    spells = _Spells(scope, filters, samples.spans_of(scope, filters, resolution))
    found = measurements.read(scope, filters, workload_filter(filters, "workload__"))
    return {
        pk: measurements.within(
            usage.of_known(spells.gpu_hours(spells.classes == pk)), found.of_class(pk)
        )
        for pk, usage in capacity.items()
    }


def _line(line: ClassOverTime | None, allocated: Floats, used: Floats) -> ClassOverTime:
    zeros = np.zeros(len(allocated))
    return ClassOverTime(
        installed=line.installed if line else zeros,
        capacity=line.capacity if line else zeros,
        allocated=allocated,
        used=used,
    )


def workload_filter(filters: ReportFilters, prefix: str = "") -> Q:
    """The user and type of ``filters`` as a condition on workloads."""
    condition = Q()
    if filters.user:
        condition &= Q(**{f"{prefix}user": filters.user})
    if filters.type:
        condition &= Q(**{f"{prefix}type": filters.type})
    return condition


class _Spells:
    """Stretches of time during which a workload held a constant number of GPUs, as far as ``spans`` show."""

    def __init__(self, scope: Scope, filters: ReportFilters, spans: Spans) -> None:
        self.spans = spans
        names = ("workload_id", "at", "gpus", "workload__queue_id", "held_class")
        rows = list(_steps(scope, filters).values_list(*names))
        columns: list[Any] = list(zip(*rows, strict=True)) or [()] * 5
        workload = np.array(columns[0], dtype=np.int64)
        begins = epochs(columns[1])
        gpus = np.array(columns[2], dtype=np.float64)
        low, high = filters.start.timestamp(), filters.end.timestamp()
        ends = np.append(begins[1:], high) if rows else begins
        last = np.append(workload[1:] != workload[:-1], True) if rows else np.empty(0, bool)
        ends = np.clip(np.where(last, high, ends), low, high)
        begins = np.clip(begins, low, high)
        classes = np.array([pk or 0 for pk in columns[4]], dtype=np.int64)
        mask = (gpus > 0) & (ends > begins) & np.isin(classes, list(scope.classes))
        self.begins, self.ends, self.gpus = begins[mask] - low, ends[mask] - low, gpus[mask]
        self._low = low  # times count from here
        self.queues: Ints = np.array(columns[3], dtype=np.int64)[mask]
        self.classes: Ints = classes[mask]

    def gpu_hours(self, chosen: np.ndarray[Any, Any]) -> float:
        return float(self.gpu_s(chosen).sum()) / PER_GPU_HOUR

    def gpu_s(self, chosen: np.ndarray[Any, Any]) -> Floats:
        """Milli-GPU-seconds held in each span: differences of the integral over time."""
        return self._integral(chosen, self.spans.ends) - self._integral(chosen, self.spans.begins)

    def _integral(self, chosen: np.ndarray[Any, Any], edges: Floats) -> Floats:
        """Milli-GPU-seconds held up to each edge."""
        times = edges - self._low
        come = until(times, self.begins[chosen], self.gpus[chosen])
        return come - until(times, self.ends[chosen], self.gpus[chosen])

    def by_queue(self, whole: Readings) -> dict[tuple[int, int], Usage]:
        pairs = set(zip(self.queues.tolist(), self.classes.tolist(), strict=True))
        known = {**dict.fromkeys(sorted(pairs), Usage()), **whole.queues}
        return {
            (queue, pk): Usage(capacity=usage.capacity).of_known(
                self.gpu_hours((self.queues == queue) & (self.classes == pk))
            )
            for (queue, pk), usage in known.items()
        }


def batched(items: Iterable[int], size: int) -> Iterator[list[int]]:
    """Lists of at most ``size``: a database takes only so many values at once."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def _steps(scope: Scope, filters: ReportFilters) -> QuerySet[Any]:
    alive = Q(workload__finished_at=None) | Q(workload__finished_at__gt=filters.start)
    return (
        Transition.objects.filter(
            alive,
            workload_filter(filters, "workload__"),
            workload__queue__in=list(scope.leaves),
            at__lt=filters.end,
        )
        .annotate(held_class=OF_STEP)
        .order_by("workload_id", "at", "id")
    )
