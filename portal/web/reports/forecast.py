"""What the page of the forecast shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from portal.display.format import class_number
from portal.reports.figures import forecast as figures
from portal.reports.forecast import HOUR, WEEK, ForecastReport
from scheduling.models import DemandForecast

TOO_SURE = 0.75
"""Of hours within P10 to P90; fewer, and its bands are too narrow."""
LEAST = 5
"""Forecasts that a verdict rests on."""


def forecast_page(report: ForecastReport, **_: object) -> dict[str, Any]:
    context: dict[str, Any] = {
        "class_rows": [(row, class_number(row.gpu_class.position)) for row in report.rows]
    }
    chosen, past = report.chosen, report.past
    if chosen is None or past is None or chosen.row is None:
        return context
    row = chosen.row
    return context | {
        "chosen": chosen,
        "forecast": row,
        "next_week": figures.next_week(report, chosen, past, row),
        "trend": figures.trend(report, chosen, past, row),
        "earlier": figures.earlier(report, chosen, row),
        "earlier_at": row.made_at - timedelta(days=row.earlier.get("days_ago", 0)),
        "hour_rows": _rows(row, row.hours, HOUR),
        "week_rows": _rows(row, row.weeks, WEEK),
        "earlier_rows": _earlier_rows(row),
        "score_rows": [(score, _change(score), _verdict(score)) for score in row.scores],
    }


def _rows(row: DemandForecast, forecast: Mapping[str, list[float]], step: timedelta) -> list[Any]:
    bands = zip(forecast["p10"], forecast["p50"], forecast["p90"], strict=True)
    return [(row.made_at + i * step, *gpus) for i, gpus in enumerate(bands)]


def _earlier_rows(row: DemandForecast) -> list[Any]:
    past = row.earlier
    if not past:
        return []
    made = row.made_at - timedelta(days=past["days_ago"])
    columns = zip(past["p10"], past["p50"], past["p90"], past["came"], strict=True)
    return [(made + i * WEEK, *gpus) for i, gpus in enumerate(columns)]


def _change(score: Mapping[str, float]) -> float | None:
    """The error against that of the same hour last week: -0.57 is 57 % less."""
    naive = score["last_week_error"]
    return score["error"] / naive - 1 if naive else None


def _verdict(score: Mapping[str, Any]) -> str:
    """Nothing holds that is further off than the same hour of last week, however wide its bands."""
    hit_rate = score["held"]
    if hit_rate is None or score["forecasts"] < LEAST:
        return "too few to say"
    if hit_rate < TOO_SURE:
        return "too sure"
    change = _change(score)
    return "last week is nearer" if change is not None and change > 0 else "holds"
