"""One axis of time from now on: bands of starts and ends, in percent of its width. Pure geometry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.display.format import zone
from portal.display.line_labels import LineLabel, roomy
from portal.display.timeline import TICK_STEPS_S

LEAST, MOST = timedelta(hours=2), timedelta(days=7)
MOST_TICKS = 8


@dataclass(frozen=True, slots=True)
class Box:
    """(x, width) of P50 to P90 and of the predicted run after it; ``passes`` the end of the axis."""

    x: float
    width: float
    run: tuple[float, float] | None = None
    passes: bool = False


@dataclass(frozen=True, slots=True)
class Ahead:
    now: datetime
    end: datetime

    @classmethod
    def over(cls, moments: Iterable[datetime | None], now: datetime) -> Ahead:
        """Wide enough for all of them, a week at most."""
        known = [at - now for at in moments if at is not None and at > now]
        length = max(known, default=LEAST) * 1.08
        return cls(now, now + min(MOST, max(LEAST, length)))

    def x(self, at: datetime) -> float:
        part = (at - self.now) / (self.end - self.now)
        return round(100 * min(1.0, max(0.0, part)), 3)

    def box(self, p50: datetime, p90: datetime, run_s: float | None = None) -> Box:
        left, right = self.x(p50), self.x(p90)
        run = None
        if run_s:
            stop = self.x(p50 + timedelta(seconds=run_s))
            run = (left, round(max(0.0, stop - left), 3))
        return Box(left, round(right - left, 3), run, p90 > self.end)

    def ticks(
        self, zone_name: str, *, origin: str = "", wide_px: float = 560, narrow_px: float = 300
    ) -> list[LineLabel]:
        """Round local times that stand clear of each other, and of ``origin`` where that names the begin."""
        return roomy(self._ticks(zone_name, origin), wide_px=wide_px, narrow_px=narrow_px)

    def _ticks(self, zone_name: str, origin: str) -> Iterator[LineLabel]:
        if origin:
            yield LineLabel(0, origin)
        local, seconds = zone(zone_name), (self.end - self.now).total_seconds()
        step = next((s for s in TICK_STEPS_S if seconds / s <= MOST_TICKS), TICK_STEPS_S[-1])
        at = self.now.astimezone(local).replace(hour=0, minute=0, second=0, microsecond=0)
        while at < self.end:
            if at > self.now:
                text = f"{at:%a} {at.day}" if at.hour == at.minute == 0 else f"{at:%H:%M}"
                yield LineLabel(self.x(at), text, "middle")
            at += timedelta(seconds=step)
