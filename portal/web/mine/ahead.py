"""One axis of time for what waits and what runs: hatch waited, solid ran, pale will run. Pure geometry.

Places are percent of the width. Nothing is drawn ahead of now but what somebody predicts or a limit ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.display.format import zone
from portal.display.line_labels import LineLabel, roomy
from portal.display.timeline import TICK_STEPS_S

WIDE_PX, NARROW_PX = 300, 320
MOST_TICKS = 5
LEAST, MOST = timedelta(hours=2), timedelta(hours=24)
"""How far the axis reaches to either side of now."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is known of one workload's time."""

    since: datetime
    is_running: bool
    p50: datetime | None = None
    """Its start as predicted while it waits, its end while it runs."""
    p90: datetime | None = None
    latest: datetime | None = None
    """When its run-time limit ends it."""
    why_not: str = ""
    """Why no start is told, while it waits."""

    @property
    def ends(self) -> list[datetime]:
        return [at for at in (self.p50, self.p90, self.latest) if at is not None]


@dataclass(frozen=True, slots=True)
class BarParts:
    """(x, width) of each part; None where there is none."""

    waited: tuple[float, float] | None
    ran: tuple[float, float] | None
    ahead: tuple[float, float] | None
    band: tuple[float, float] | None
    latest: float | None


@dataclass(frozen=True, slots=True)
class TimeAxis:
    begin: datetime
    now: datetime
    end: datetime

    @classmethod
    def over(cls, spans: Iterable[Span], now: datetime) -> TimeAxis:
        """Wide enough for all of ``spans``, a day to either side at most."""
        known = list(spans)
        past = max((now - one.since for one in known), default=timedelta(0))
        ahead = max((at - now for one in known for at in one.ends), default=timedelta(0))
        return cls(now - _within(past), now, now + _within(ahead))

    def x(self, at: datetime) -> float:
        part = (at - self.begin) / (self.end - self.begin)
        return round(100 * min(1.0, max(0.0, part)), 3)

    def between(self, start: datetime, end: datetime) -> tuple[float, float] | None:
        left, right = self.x(start), self.x(end)
        return (left, round(right - left, 3)) if end > start else None

    @property
    def now_x(self) -> float:
        return self.x(self.now)

    def draw(self, one: Span) -> BarParts:
        past = self.between(one.since, self.now)
        until = one.p50 or one.latest
        return BarParts(
            waited=None if one.is_running else past,
            ran=past if one.is_running else None,
            ahead=self.between(self.now, until) if one.is_running and until else None,
            band=self.between(one.p50 or self.now, one.p90) if one.p90 else None,
            latest=self.x(one.latest) if one.latest and self.now < one.latest <= self.end else None,
        )

    def ticks(self, zone_name: str) -> list[LineLabel]:
        """Round local times that stand clear of each other."""
        return roomy(self._ticks(zone_name), wide_px=WIDE_PX, narrow_px=NARROW_PX)

    def _ticks(self, zone_name: str) -> Iterator[LineLabel]:
        local, seconds = zone(zone_name), (self.end - self.begin).total_seconds()
        step = next((s for s in TICK_STEPS_S if seconds / s <= MOST_TICKS), TICK_STEPS_S[-1])
        at = self.begin.astimezone(local).replace(hour=0, minute=0, second=0, microsecond=0)
        while at < self.end:
            if at > self.begin:
                yield LineLabel(self.x(at), _tick(at), "middle")
            at += timedelta(seconds=step)


def _tick(at: datetime) -> str:
    return f"{at:%a}" if at.hour == at.minute == 0 else f"{at:%H:%M}"


def _within(length: timedelta) -> timedelta:
    return min(MOST, max(LEAST, length * 1.05))
