"""Time cut into pieces: even steps for series, local days for counts, hours of the week for habits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOUR_S = 3600
DAY_S = 86400
DAY_HOURS = 24
POINTS = 200
"""Most points of a series; the eye sees no more in a chart of this width."""
STEPS_S = (60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 7 * 86400, 28 * 86400)


def step_s(span: timedelta, finest_s: int) -> int:
    """The shortest round step, at least ``finest_s``, that cuts ``span`` into at most POINTS pieces."""
    wanted = max(finest_s, span.total_seconds() / POINTS)
    return next((step for step in STEPS_S if step >= wanted), STEPS_S[-1])


@dataclass(frozen=True)
class Periods:
    """Consecutive pieces of [start, end): local hours, days or weeks. ``edges`` holds one more."""

    unit: str
    edges: tuple[datetime, ...]

    @classmethod
    def of(cls, start: datetime, end: datetime, zone: ZoneInfo) -> Periods:
        """Hours up to two days, days up to 62, weeks beyond; the first and last may be cut short."""
        span = end - start
        if span <= timedelta(days=2):
            return cls("hour", _edges(start, end, zone, timedelta(hours=1)))
        if span <= timedelta(days=62):
            return cls("day", _edges(start, end, zone, timedelta(days=1)))
        return cls("week", _edges(start, end, zone, timedelta(days=7)))

    @property
    def starts(self) -> tuple[datetime, ...]:
        return self.edges[:-1]

    def index(self, epochs: Floats) -> Ints:
        """Which piece each instant (seconds since 1970) falls into, from 0."""
        inner = np.array([edge.timestamp() for edge in self.edges[1:-1]])
        return np.searchsorted(inner, epochs, side="right").astype(np.int64)


def _edges(start: datetime, end: datetime, zone: ZoneInfo, step: timedelta) -> tuple[datetime, ...]:
    local = start.astimezone(zone)
    if step < timedelta(days=1):
        cut = start.replace(minute=0, second=0, microsecond=0)
        inner = [cut + step * i for i in range(1, int((end - cut) / step) + 1)]
    else:
        # Wall-clock steps, so that a day has 23 or 25 hours when the clock changes.
        cut = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        cut -= timedelta(days=cut.weekday() if step.days == 7 else 0)
        count = int((end - start) / step) + 2
        inner = [(cut + step * i).replace(tzinfo=zone) for i in range(1, count + 1)]
    inside = [edge.astimezone(UTC) for edge in inner if start < edge < end]
    return (start, *inside, end)


def epochs(instants: Sequence[datetime]) -> Floats:
    """Seconds since 1970 of aware datetimes."""
    return np.array([at.timestamp() for at in instants], dtype=np.float64)


QUARTER_S = 900


def hour_of_week(instants: Floats, zone: ZoneInfo) -> Ints:
    """0-167 from Monday 00:00 local, for each instant (seconds since 1970).

    Offsets are looked up once a UTC quarter of an hour, of which zones are whole numbers off, so a million
    instants cost a few thousand look-ups.
    """
    quarters, inverse = np.unique(instants // QUARTER_S, return_inverse=True)
    local = [datetime.fromtimestamp(each * QUARTER_S, zone) for each in quarters.tolist()]
    hours = np.array([at.weekday() * 24 + at.hour for at in local], dtype=np.int64)
    return hours[inverse] if len(hours) else np.empty(0, dtype=np.int64)


def hour_of_day(instants: Floats, zone: ZoneInfo) -> Ints:
    """0-23 local, likewise."""
    return hour_of_week(instants, zone) % DAY_HOURS
