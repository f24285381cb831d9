"""Readings from the workloads' own timelines: what samples can't tell, because they know no user."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet

from portal.reports import samples
from portal.reports.buckets import HOUR_S, Floats, Ints, epochs, step_s
from portal.reports.filters import ReportFilters
from portal.reports.scope import Scope
from portal.reports.usage import PER_GPU_HOUR, Line, Readings, Usage
from scheduling.models import Transition


def read(scope: Scope, filters: ReportFilters) -> Readings:
    """What the chosen user's or type's workloads held, against the same capacity as the samples.

    A workload counts for the class and queue it was last in. Nobody measures use by workload.
    """
    whole = samples.read(scope, filters)
    spells = _Spells(scope, filters)
    if not len(whole.starts_s):
        step = step_s(filters.span, HOUR_S)
        count = int(-(-filters.span.total_seconds() // step))
        starts = filters.start.timestamp() + step * np.arange(count, dtype=np.float64)
        whole = Readings(starts, step)
    edges = np.append(whole.starts_s, whole.starts_s[-1] + whole.step_s)
    lines, classes = {}, {}
    for pk in scope.classes:
        chosen = spells.classes == pk
        line = whole.lines.get(pk)
        lines[pk] = _line(line, spells.means(chosen, edges), len(whole.starts_s))
        allocated = spells.gpu_hours(chosen)
        nothing = Usage()
        classes[pk] = replace(
            whole.classes.get(pk, nothing), allocated=allocated, measured=0.0, used=0.0, pending=0.0
        )
    return replace(
        whole, lines=lines, classes=classes, queues=spells.by_queue(whole), source="workloads"
    )


def class_usage(scope: Scope, filters: ReportFilters) -> dict[int, Usage]:
    """GPU-hours of each class, without a series."""
    capacity = samples.class_usage(scope, filters, samples.best_resolution(scope, filters))
    spells = _Spells(scope, filters)
    return {
        pk: replace(
            usage,
            allocated=spells.gpu_hours(spells.classes == pk),
            measured=0.0,
            used=0.0,
            pending=0.0,
        )
        for pk, usage in capacity.items()
    }


def _line(line: Line | None, allocated: Floats, count: int) -> Line:
    zeros = np.zeros(count)
    return Line(
        installed=line.installed if line else zeros,
        capacity=line.capacity if line else zeros,
        allocated=allocated,
        used=np.full(count, np.nan),
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
    """Stretches of time during which a workload held a constant number of GPUs, cut to the range."""

    def __init__(self, scope: Scope, filters: ReportFilters) -> None:
        rows = list(
            _steps(scope, filters).values_list(
                "workload_id", "at", "gpus", "workload__queue_id", "workload__gpu_class_id"
            )
        )
        columns: list[Any] = list(zip(*rows, strict=True)) or [()] * 5
        workload = np.array(columns[0], dtype=np.int64)
        begins = epochs(columns[1])
        gpus = np.array(columns[2], dtype=np.float64)
        low, high = filters.start.timestamp(), filters.end.timestamp()
        ends = np.append(begins[1:], high) if rows else begins
        last = np.append(workload[1:] != workload[:-1], True) if rows else np.empty(0, bool)
        ends = np.clip(np.where(last, high, ends), low, high)
        begins = np.clip(begins, low, high)
        kept = (gpus > 0) & (ends > begins)
        self.begins, self.ends, self.gpus = begins[kept], ends[kept], gpus[kept]
        self.queues: Ints = np.array(columns[3], dtype=np.int64)[kept]
        classes = [pk or 0 for pk in columns[4]]
        self.classes: Ints = np.array(classes, dtype=np.int64)[kept]

    def gpu_hours(self, chosen: np.ndarray[Any, Any]) -> float:
        held = self.gpus[chosen] * (self.ends[chosen] - self.begins[chosen])
        return float(held.sum()) / PER_GPU_HOUR

    def means(self, chosen: np.ndarray[Any, Any], edges: Floats) -> Floats:
        """Mean GPUs held between consecutive edges: differences of the integral over time."""
        integral = self._until(self.begins[chosen], self.gpus[chosen], edges)
        integral -= self._until(self.ends[chosen], self.gpus[chosen], edges)
        return np.asarray(np.diff(integral) / np.diff(edges) / 1000)

    @staticmethod
    def _until(since: Floats, gpus: Floats, edges: Floats) -> Floats:
        """GPU-seconds at each edge of loads that stay for ever ``since``: sum of g * (t - s)."""
        order = np.argsort(since, kind="stable")
        since, gpus = since[order], gpus[order]
        count = np.searchsorted(since, edges)
        total = np.append(0.0, np.cumsum(gpus))
        moment = np.append(0.0, np.cumsum(gpus * since))
        return np.asarray(total[count] * edges - moment[count])

    def by_queue(self, whole: Readings) -> dict[tuple[int, int], Usage]:
        pairs = set(zip(self.queues.tolist(), self.classes.tolist(), strict=True))
        empty = {key: Usage(capacity=usage.capacity) for key, usage in whole.queues.items()} | {
            key: Usage() for key in sorted(pairs) if key not in whole.queues
        }
        return {
            (queue, pk): replace(
                usage, allocated=self.gpu_hours((self.queues == queue) & (self.classes == pk))
            )
            for (queue, pk), usage in empty.items()
        }


def _steps(scope: Scope, filters: ReportFilters) -> QuerySet[Transition]:
    alive = Q(workload__finished_at=None) | Q(workload__finished_at__gt=filters.start)
    return Transition.objects.filter(
        alive,
        workload_filter(filters, "workload__"),
        workload__queue__in=list(scope.leaves),
        workload__gpu_class__in=list(scope.classes),
        at__lt=filters.end,
    ).order_by("workload_id", "at", "id")
