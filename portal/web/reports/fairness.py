"""What the page of fairness shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from portal.display.format import duration
from portal.display.periods import Periods
from portal.reports import words
from portal.reports.entitlements import Entitlement, LeafBalance
from portal.reports.fairness import FairnessReport
from portal.reports.figures import fairness as figures
from portal.web.reports.pages import SHADES, Meter, down_rows, part_of

MIDDLE, HALF = 12, 11
"""Pixels of the strip: its baseline, and the largest difference up or down."""
FIRST = 10
"""Rows of a list before all of it is asked for."""
DATES = 4
"""Above the strips, at most one more."""
LEAST = 0.03
"""Of the largest difference; less is none."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One period, percent of the width and pixels; ``kind`` is above or below."""

    x: float
    width: float
    y: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Strip:
    row: LeafBalance
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class HourCell:
    hours: float
    shade: int


def fairness_page(report: FairnessReport, *, show_all: bool, **_: object) -> dict[str, Any]:
    most = max((abs(row.lead_s) for row in report.queues), default=0.0)
    found = report.entitlement
    return {
        "lead": words.lead_of(report.lead_s),
        "late_share": report.late_all / report.ended if report.ended else 0.0,
        "queue_rows": [
            (row, _lead_meter(row.lead_s, most), duration(abs(row.lead_s))) for row in report.queues
        ],
        "late_rows": report.late if show_all else report.late[:FIRST],
        **(_entitled(found, report) if found else {}),
    }


def _entitled(found: Entitlement, report: FairnessReport) -> dict[str, Any]:
    zone = report.filters.tz
    scale = max((float(np.abs(r.difference).max(initial=0)) for r in found.queues), default=0.0)
    highest = float(found.lending.of.max(initial=0.0))
    return {
        "entitled": found,
        "strips": [Strip(row, _bars(row, scale)) for row in found.queues],
        "dates": _dates(found.periods, zone),
        "scale": scale,
        "lent_share": found.lending.total / found.received if found.received else None,
        "chosen": found.chosen,
        "received_figure": (
            figures.received(found.chosen, report.down, zone) if found.chosen else None
        ),
        "down_rows": down_rows(report.down, report.filters),
        "inequality_figure": figures.inequality(found, zone),
        "inequality_rows": list(zip(found.periods.starts, found.inequality.tolist(), strict=True)),
        "lent_rows": [
            (
                lender,
                [HourCell(hours, _shade(hours, highest)) for hours in found.lending.of[i].tolist()],
                float(found.lending.of[i].sum()),
            )
            for i, lender in enumerate(found.lending.lenders)
        ],
        "lent_sums": found.lending.of.sum(axis=0).tolist(),
    }


def _dates(periods: Periods, zone: ZoneInfo) -> list[tuple[float, str]]:
    """(percent of the strip, text) above some of its periods, where they begin."""
    count = len(periods.starts)
    every = max(1, -(-count // DATES))
    if periods.unit == "day" and every > 3:
        every = -(-every // 7) * 7
    # The first period may be cut short: its own begin is no midnight.
    first = 0 if count <= every else 1
    return [
        (round(100 * i / count, 2), _date(periods.starts[i].astimezone(zone), periods.unit))
        for i in range(first, count, every)
    ]


def _date(at: datetime, unit: str) -> str:
    return f"{at:%H}:00" if unit == "hour" else f"{at.day} {at:%b}"


def _shade(hours: float, highest: float) -> int:
    return -int(-hours * SHADES // highest) if hours > 0 else 0


def _bars(row: LeafBalance, scale: float) -> tuple[Bar, ...]:
    """Up and filled above its share, down and framed below."""
    step = 100 / len(row.difference)
    found = []
    for i, value in enumerate(row.difference.tolist()):
        if abs(value) <= scale * LEAST:
            continue
        height = round(max(1.5, HALF * abs(value) / scale), 1)
        y = MIDDLE - height if value > 0 else MIDDLE
        kind = "above" if value > 0 else "below"
        found.append(Bar(round((i + 0.12) * step, 2), round(0.76 * step, 2), y, height, kind))
    return tuple(found)


def _lead_meter(lead_s: float, most: float) -> Meter:
    """Full is ahead, pale behind."""
    part = part_of(abs(lead_s), most)
    return Meter(part, part) if lead_s >= 0 else Meter(0.0, part)
