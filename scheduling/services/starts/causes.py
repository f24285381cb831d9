"""Why a start was late: the largest of what happened between the forecast and it, in GPU-hours.

Failures of nodes, holds and edits are not forecast. Runs that lasted beyond what was told, and work that
came after and went before, are; which of the two took more GPU-hours from it is the cause.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import F, Q
from django.db.models.functions import Coalesce, NullIf
from django.utils.functional import cached_property
from numpy.typing import NDArray

from scheduling.engine.reasons.wording import plural
from scheduling.models import (
    ForecastOutcome,
    LateCause,
    QuotaChange,
    Transition,
    UsageSample,
    Workload,
)
from scheduling.models.ledger import Resolution

Floats = NDArray[np.float64]

DOWN_SHARE = 0.02
"""Part of the capacity that is worth speaking of."""


def causes_of(late: Sequence[ForecastOutcome], mark: str = "P90") -> list[tuple[LateCause, str]]:
    """Of each, and the figures behind it, without names: who may see the workload need not see the others.
    All are of one cluster and have ``started_at``; ``mark`` is what their ``p90_s`` is called.

    Five queries for each GPU class, however many there are of it; rows are those of what was there between
    the earliest forecast among them and the latest start.
    """
    by_class: dict[int | None, list[ForecastOutcome]] = defaultdict(list)
    for one in late:
        by_class[one.gpu_class_id].append(one)
    meanwhile = {key: _Meanwhile(rows, mark) for key, rows in by_class.items()}
    return [meanwhile[one.gpu_class_id].cause_of(one) for one in late]


@dataclass(frozen=True)
class _Meanwhile:
    """What happened on one GPU class between the forecasts of ``late`` and their starts."""

    late: Sequence[ForecastOutcome]
    mark: str

    def cause_of(self, one: ForecastOutcome) -> tuple[LateCause, str]:
        begin, end = one.told_at, one.started_at or one.told_at
        if one.workload.held or self._is_held(one, begin, end):
            return LateCause.HELD, "Its user held it back."
        if edits := bisect_right(self._edits, end) - bisect_left(self._edits, begin):
            said = f"Quotas were edited {plural(edits, 'time')} in between."
            return LateCause.QUOTA_EDITED, said
        if said := self._down(begin, end):
            return LateCause.NODES_DOWN, said
        longer, more = self._overrun(one, end), self._arrived(one, end)
        if max(longer, more) <= 0:
            return LateCause.UNKNOWN, ""
        if longer >= more:
            return (
                LateCause.RUNS_LONGER,
                f"Work that ran then held {longer:,.0f} GPU-hours past its {self.mark} start.",
            )
        return (
            LateCause.MORE_ARRIVED,
            f"Later arrivals took {more:,.0f} GPU-hours before it started.",
        )

    @property
    def _begin(self) -> datetime:
        return min(one.told_at for one in self.late)

    @property
    def _end(self) -> datetime:
        return max(one.started_at or one.told_at for one in self.late)

    @cached_property
    def _holds(self) -> dict[int, list[datetime]]:
        works = [one.workload_id for one in self.late]
        steps = Transition.objects.filter(workload__in=works, reason="held")
        found: dict[int, list[datetime]] = defaultdict(list)
        for work, at in steps.values_list("workload", "at"):
            found[work].append(at)
        return found

    def _is_held(self, one: ForecastOutcome, begin: datetime, end: datetime) -> bool:
        return any(begin <= at <= end for at in self._holds.get(one.workload_id, ()))

    @cached_property
    def _edits(self) -> list[datetime]:
        edits = QuotaChange.objects.filter(
            cluster=self.late[0].workload.cluster_id, at__gte=self._begin, at__lte=self._end
        )
        return sorted(edits.values_list("at", flat=True))

    @cached_property
    def _ready(self) -> tuple[list[datetime], list[float]]:
        """When the class had how many GPUs that were ready, the last before the first forecast included."""
        samples = UsageSample.objects.filter(
            queue__cluster=self.late[0].workload.cluster_id,
            queue__parent=None,
            gpu_class=self.late[0].gpu_class_id,
            resolution__in=(Resolution.MINUTE, Resolution.HOUR),
            ready_gpus__gt=0,
        ).order_by("start")
        columns = samples.values_list("start", "ready_gpus")
        before = columns.filter(start__lte=self._begin).last()
        since = columns.filter(start__gt=self._begin, start__lte=self._end)
        rows = [*([before] if before else []), *since]
        return [at for at, _ in rows], [ready for _, ready in rows]

    def _down(self, begin: datetime, end: datetime) -> str:
        """Whether fewer GPUs were ready in between than when it was told."""
        starts, ready = self._ready
        before = bisect_right(starts, begin) - 1
        between = ready[bisect_left(starts, begin) : bisect_right(starts, end)]
        if before < 0 or not between:
            return ""
        lost = ready[before] - min(between)
        return (
            f"{lost / 1000:,.0f} GPUs fewer were ready."
            if lost > DOWN_SHARE * ready[before]
            else ""
        )

    @cached_property
    def _beside(self) -> tuple[NDArray[np.int64], Floats]:
        """Key, and (submission, start, end, thousandths of a GPU) of each that ran meanwhile."""
        rows = Workload.objects.filter(
            Q(finished_at=None) | Q(finished_at__gt=self._begin),
            cluster=self.late[0].workload.cluster_id,
            gpu_class=self.late[0].gpu_class_id,
            first_started_at__lte=self._end,
        ).annotate(counted=Coalesce(NullIf("members", 0), F("max_members")))
        columns = rows.order_by().values_list(
            "pk", "submitted_at", "first_started_at", "finished_at", "gpus", "counted"
        )
        table = [
            (pk, submitted.timestamp(), started.timestamp(), _s(finished), gpus * pods)
            for pk, submitted, started, finished, gpus, pods in columns
            if started is not None
        ]
        found = np.array(table, np.float64).reshape(-1, 5)
        return found[:, 0].astype(np.int64), found[:, 1:]

    def _overrun(self, one: ForecastOutcome, end: datetime) -> float:
        """GPU-hours that who ran when it was told held between the told P90 and its start."""
        told_s = one.told_at.timestamp()
        return self._hours(one, self._started <= told_s, told_s + one.p90_s, end)

    def _arrived(self, one: ForecastOutcome, end: datetime) -> float:
        """GPU-hours held before its start by whoever was submitted after it was told."""
        told_s = one.told_at.timestamp()
        return self._hours(one, self._beside[1][:, 0] > told_s, told_s, end)

    @property
    def _started(self) -> Floats:
        return self._beside[1][:, 1]

    def _hours(
        self, one: ForecastOutcome, which: NDArray[np.bool_], begin_s: float, end: datetime
    ) -> float:
        """GPU-hours that those of ``which``, without itself, held within the span."""
        keys, (_, start_s, stop_s, gpus) = self._beside[0], self._beside[1].T
        which = which & (keys != one.workload_id) & (stop_s > one.told_at.timestamp())
        span_s = np.minimum(end.timestamp(), stop_s) - np.maximum(begin_s, start_s)
        return float((np.maximum(0.0, span_s) * gpus)[which].sum()) / 3600 / 1000


def _s(at: datetime | None) -> float:
    return at.timestamp() if at else np.inf
