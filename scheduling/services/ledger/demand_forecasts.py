"""Forecasts of demand, made once a day and kept: for the cluster, its departments and all inner queues."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from scheduling.models import MILLI, Cluster, DemandForecast, GpuClass, Queue, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.prediction.demand import QUANTILES, Forecast, TooLittleError, forecast
from scheduling.services.ledger.rollup import floor

Floats = NDArray[np.float64]
PAST, AHEAD = timedelta(weeks=52), timedelta(weeks=26)
HOURS_AHEAD = 168
"""Told by the hour; further ahead by the week."""
FRESH = timedelta(hours=20)
MOST_QUEUES = 60
MOST_AT_ONCE = 8
"""In one task: some seconds, in which the worker does nothing else."""
HOUR = timedelta(hours=1)
NAMES = tuple(f"p{round(100 * q)}" for q in QUANTILES)


def look_ahead(
    cluster: Cluster, queues: Iterable[Queue] | None = None, *, most: int | None = None
) -> int:
    """Forecast what ``queues`` (default: ``forecast_queues``) will ask for; how many were made.

    At most ``most`` of them; those made less than ``FRESH`` ago stand. It takes CPU seconds, so not in a
    request; two workers at once write the same.
    """
    now = floor(cluster.now(), Resolution.HOUR)
    classes, fresh = list(cluster.gpu_classes.all()), _fresh(cluster)
    pairs = [
        (queue, gpu_class)
        for queue in (forecast_queues(cluster) if queues is None else queues)
        for gpu_class in classes
        if (queue.pk, gpu_class.pk) not in fresh
    ]
    for queue, gpu_class in pairs[:most]:
        _keep(queue, gpu_class, now, ZoneInfo(cluster.display_time_zone))
    return len(pairs[:most])


def _fresh(cluster: Cluster) -> set[tuple[int, int]]:
    rows = DemandForecast.objects.filter(queue__cluster=cluster, made_at__gt=cluster.now() - FRESH)
    return set(rows.values_list("queue_id", "gpu_class_id"))


def forecast_queues(cluster: Cluster) -> list[Queue]:
    """The root, its departments, and every queue with others below it."""
    rows = Queue.objects.filter(cluster=cluster)
    inner = rows.filter(parent__isnull=False).values("parent")
    chosen = Q(parent=None) | Q(parent__parent=None) | Q(pk__in=inner)
    return list(rows.filter(chosen).order_by("path", "pk")[:MOST_QUEUES])


def _keep(queue: Queue, gpu_class: GpuClass, now: datetime, zone: ZoneInfo) -> None:
    began = time.process_time()
    hours = known_hours(queue, gpu_class, now - PAST, now)
    fields: dict[str, Any] = {"made_at": now, "known_days": int((~np.isnan(hours)).sum()) // 24}
    try:
        ahead = round(AHEAD / HOUR)
        found = forecast(hours, _slots(now, len(hours), ahead, zone), ahead)
    except TooLittleError as little:
        fields |= _nothing(str(little))
    else:
        fields |= _columns(found)
    fields["took_s"] = time.process_time() - began
    DemandForecast.objects.update_or_create(queue=queue, gpu_class=gpu_class, defaults=fields)


def known_hours(queue: Queue, gpu_class: GpuClass, start: datetime, end: datetime) -> Floats:
    """Mean GPUs asked for in each hour of [start, end); NaN where it is not known."""
    count = round((end - start) / HOUR)
    hours = np.full(count, np.nan)
    rows = UsageSample.objects.filter(
        queue=queue, gpu_class=gpu_class, resolution=Resolution.HOUR,
        start__gte=start, start__lt=end, demand_gpus__isnull=False,
    )  # fmt: skip
    for at, gpus in rows.order_by().values_list("start", "demand_gpus"):
        hours[round((at - start) / HOUR)] = (gpus or 0.0) / MILLI
    return hours


def _slots(now: datetime, past: int, ahead: int, zone: ZoneInfo) -> list[int]:
    """The local hour of the week of each hour."""
    first = now - past * HOUR
    local = [(first + i * HOUR).astimezone(zone) for i in range(past + ahead)]
    return [at.weekday() * 24 + at.hour for at in local]


def _columns(found: Forecast) -> dict[str, Any]:
    outlook, earlier = found.outlook, found.earlier
    return {
        "why_not": "",
        "hours": _quantiles(outlook.hours[:, :HOURS_AHEAD], NAMES),
        "weeks": _quantiles(outlook.weeks, NAMES),
        "slope_per_week": outlook.slope_per_week,
        "origins": outlook.origins,
        "scores": [
            {
                "days_ahead": score.days_ahead,
                "error": round(score.error, 2),
                "last_week_error": round(score.last_week_error, 2),
                "held": None if score.coverage is None else round(score.coverage, 4),
                "forecasts": score.forecasts,
            }
            for score in found.scores
        ],
        "earlier": {
            "days_ago": earlier.days_ago,
            **_quantiles(earlier.forecast, ("p10", "p50", "p90")),
            "came": _rounded(earlier.came),
        }
        if earlier
        else {},
    }


def _nothing(why: str) -> dict[str, Any]:
    return {
        "why_not": why, "hours": {}, "weeks": {}, "slope_per_week": 0.0, "origins": 0, "scores": [],
        "earlier": {},
    }  # fmt: skip


def _quantiles(rows: Floats, names: Sequence[str]) -> dict[str, list[float]]:
    return {name: _rounded(row) for name, row in zip(names, rows, strict=True)}


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 2) for value in values]
