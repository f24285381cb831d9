"""Versions of the run-time model on one axis of time: which served when, and how each held. Pure geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.display.line_labels import Label
from portal.web.ahead import Ahead
from scheduling.models import Predictor, PredictorKind
from scheduling.services.starts.held import Share

LEAST = timedelta(hours=1)
HELD_LOW, HELD_HIGH = 60.0, 100.0
"""Percent at the ends of the panel of what P10 to P90 held; what lies outside is drawn at the edge."""
HELD_TOLD = 80.0
LABEL_PX = 34
PANEL_PX = 560


@dataclass(frozen=True, slots=True)
class Bar:
    """While ``version`` served; ``label`` where it has room."""

    version: Predictor
    x: float
    width: float
    label: str

    @property
    def is_boosted(self) -> bool:
        return self.version.kind == PredictorKind.BOOSTED


@dataclass(frozen=True, slots=True)
class Dot:
    """How one version held when it was learned: percent of the panel from its top, with whiskers."""

    version: Predictor
    x: float
    held_y: float
    low_y: float
    high_y: float
    hollow: bool
    error_y: float


@dataclass(frozen=True, slots=True)
class ErrorFigure:
    """``line`` joins the errors; ``most_error`` is the top of their panel, in powers of two."""

    bars: Sequence[Bar]
    dots: Sequence[Dot]
    told_y: float
    line: str
    most_error: float
    ticks: Sequence[Label]


def figure(versions: Sequence[Predictor], now: datetime, zone_name: str) -> ErrorFigure | None:
    """``versions`` in any order; None where fewer than two were judged."""
    judged = sorted((v for v in versions if v.calibration.get("runs")), key=lambda v: v.version)
    if len(judged) < 2:
        return None
    axis = Ahead(min(judged[0].window_to, now - LEAST), now)
    most = 1.1 * max(v.calibration["median_abs_log2_error"] for v in judged) or 1.0
    dots = [_dot(one, axis, most) for one in judged]
    served = sorted((v for v in versions if v.served_from), key=lambda v: v.version)
    return ErrorFigure(
        bars=[_bar(one, axis, now) for one in served],
        dots=dots,
        told_y=_held_y(HELD_TOLD),
        line=" ".join(f"{dot.x:.2f},{dot.error_y:.2f}" for dot in dots),
        most_error=most,
        ticks=axis.ticks(zone_name, wide_px=PANEL_PX, narrow_px=300),
    )


def _bar(one: Predictor, axis: Ahead, now: datetime) -> Bar:
    left, right = axis.x(one.served_from or now), axis.x(one.served_until or now)
    width = round(right - left, 3)
    label = f"v{one.version}" if width / 100 * PANEL_PX >= LABEL_PX else ""
    return Bar(one, left, width, label)


def _dot(one: Predictor, axis: Ahead, most: float) -> Dot:
    held = one.calibration
    runs = int(held["runs"])
    low, high = Share(round(held["p10_p90_pct"] / 100 * runs), runs).bounds
    return Dot(
        version=one,
        x=axis.x(one.window_to),
        held_y=_held_y(held["p10_p90_pct"]),
        low_y=_held_y(low),
        high_y=_held_y(high),
        hollow=not low <= HELD_TOLD <= high,
        error_y=round(100 - 100 * held["median_abs_log2_error"] / most, 2),
    )


def _held_y(pct: float) -> float:
    part = (min(HELD_HIGH, max(HELD_LOW, pct)) - HELD_LOW) / (HELD_HIGH - HELD_LOW)
    return round(100 - 100 * part, 2)
