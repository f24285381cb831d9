"""How well forecasts of starts have held: shares that came before what was told, and errors.

Intervals are Wilson's for shares, 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import (
    Case,
    Count,
    ExpressionWrapper,
    F,
    FloatField,
    IntegerField,
    Q,
    QuerySet,
    Value,
    When,
)

from scheduling.models import Cluster, ForecastOutcome
from scheduling.services.tables.instants import Epoch
from scheduling.simulation.ahead.bands import HORIZONS_S, horizon

AHEAD_S = 7 * 86400
"""No start is told beyond."""
WIDE = 12.0
"""A P90 so many times as far as the P50 tells nobody when to look."""
NEAR_S = 3600.0
WAS_TOLD = (
    Q(p50_s__lte=AHEAD_S)
    & (Q(p90_s__lte=WIDE * NEAR_S) | Q(p90_s__lte=WIDE * F("p50_s")))
    & (Q(p50_s__lte=NEAR_S) | Q(p90_s__gt=F("p50_s")) | Q(raw_p90_s__lte=F("raw_p50_s")))
)
"""Of forecasts that are kept, those that people were told."""
SCORED = timedelta(days=30)
FEW = 20
"""Fewer starts say nothing."""
LEAST_WAIT_S = 600.0
"""Errors are shares of the wait, of waits that long."""
Z95 = 1.96
HORIZONS = ("under 10 min", "10 min to 1 h", "1 to 6 h", "6 to 24 h", "over 24 h")
SIZES = ((1, "1 GPU or slice"), (4, "2–4"), (8, "5–8"), (32, "9–32"), (10**9, "33 and more"))


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` of ``of``, with the bounds of its interval; percent."""

    count: int
    of: int

    @property
    def pct(self) -> float:
        return 100 * self.count / self.of if self.of else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        if not self.of:
            return 0.0, 100.0
        p, n = self.count / self.of, self.of
        mid = p + Z95**2 / (2 * n)
        half = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n))
        low, high = (mid - half) / (1 + Z95**2 / n), (mid + half) / (1 + Z95**2 / n)
        return 100 * max(0.0, low), 100 * min(1.0, high)

    @property
    def half(self) -> float:
        low, high = self.bounds
        return (high - low) / 2


@dataclass(frozen=True, slots=True)
class Score:
    """Of one group of forecasts that have come due."""

    label: str
    starts: int
    before_p50: Share
    before_p90: Share
    in_band: Share
    width_s: float
    error_pct: float | None
    naive_pct: float | None

    @property
    def is_few(self) -> bool:
        return self.starts < FEW

    @property
    def verdict(self) -> str:
        """ "too sure" or "too careful" where P90 was missed by more than its interval."""
        low, high = self.before_p90.bounds
        if self.is_few:
            return "too few to say"
        if high < 90:
            return "too sure"
        return "too careful" if low > 90 else ""


def scored(
    cluster: Cluster,
    since: datetime,
    until: datetime,
    *,
    at_submission: bool = True,
    gpu_class: str = "",
    queue_path: str = "",
) -> list[ForecastOutcome]:
    """Forecasts whose start came in the span."""
    rows = _of_span(cluster, since, until, at_submission=at_submission)
    if gpu_class:
        rows = rows.filter(gpu_class__name=gpu_class)
    if queue_path:
        rows = rows.filter(workload__queue__path__startswith=queue_path)
    return list(rows.select_related("workload__queue", "gpu_class").order_by("started_at", "id"))


def _of_span(
    cluster: Cluster, since: datetime, until: datetime, *, at_submission: bool = True
) -> QuerySet[ForecastOutcome]:
    return ForecastOutcome.objects.filter(
        WAS_TOLD,
        workload__cluster=cluster,
        started_at__gte=since,
        started_at__lte=until,
        at_submission=at_submission,
    )


def score(label: str, rows: Sequence[ForecastOutcome]) -> Score:
    came = [(one, one.came_s or 0.0) for one in rows]
    count = len(came)
    long = [(one, came_s) for one, came_s in came if came_s > LEAST_WAIT_S]
    naive = [abs(s - one.naive_s) / s for one, s in long if one.naive_s is not None]
    return Score(
        label=label,
        starts=count,
        before_p50=Share(sum(s <= one.p50_s for one, s in came), count),
        before_p90=Share(sum(s <= one.p90_s for one, s in came), count),
        in_band=Share(sum(one.p50_s <= s <= one.p90_s for one, s in came), count),
        width_s=median([one.p90_s - one.p50_s for one, _ in came]) or 0.0,
        error_pct=_pct(median([abs(s - one.p50_s) / s for one, s in long])),
        naive_pct=_pct(median(naive)),
    )


def groups(rows: Sequence[ForecastOutcome]) -> list[tuple[str, list[Score]]]:
    """By class, size and horizon; groups without a start are left out."""
    return [
        ("GPU class", _by(rows, lambda one: one.gpu_class.name if one.gpu_class else "none")),
        ("Size of the gang, GPUs", _by(rows, _size, [label for _, label in SIZES])),
        (
            "How far ahead: time from submission to the P50 that was told",
            _by(rows, lambda one: HORIZONS[horizon(one.p50_s)], HORIZONS),
        ),
    ]


def held_of(cluster: Cluster, now: datetime) -> dict[tuple[str, int], Share]:
    """(class, horizon) -> how many started before their P90, of the last 30 days; class "" is all, horizon -1
    any. The database counts: a row is a class at a horizon."""
    waited_s = ExpressionWrapper(Epoch("started_at") - Epoch("told_at"), FloatField())
    rows = (
        _of_span(cluster, now - SCORED, now)
        .order_by()
        .annotate(waited_s=waited_s, far=_HORIZON)
        .values_list("gpu_class__name", "far")
        .annotate(count=Count("pk"), held=Count("pk", filter=Q(waited_s__lte=F("p90_s"))))
    )
    found: dict[tuple[str, int], list[int]] = {}
    for name, far, count, hits in rows:
        for key in {(name or "", far), ("", far), (name or "", -1), ("", -1)}:
            known = found.setdefault(key, [0, 0])
            known[0] += hits
            known[1] += count
    return {key: Share(hits, count) for key, (hits, count) in found.items()}


_HORIZON = Case(
    *(When(p50_s__lt=end_s, then=Value(at)) for at, end_s in enumerate(HORIZONS_S)),
    default=Value(len(HORIZONS_S)),
    output_field=IntegerField(),
)
"""``horizon`` in SQL."""


def _by(
    rows: Sequence[ForecastOutcome],
    key: Callable[[ForecastOutcome], str],
    order: Iterable[str] = (),
) -> list[Score]:
    parts: dict[str, list[ForecastOutcome]] = {label: [] for label in order}
    for one in rows:
        parts.setdefault(key(one), []).append(one)
    return [score(label, part) for label, part in parts.items() if part]


def _size(one: ForecastOutcome) -> str:
    gpus = -(-one.gpus // 1000)
    return next(label for most, label in SIZES if gpus <= most)


def median(values: Sequence[float]) -> float | None:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


def _pct(share: float | None) -> float | None:
    return None if share is None else 100 * share
