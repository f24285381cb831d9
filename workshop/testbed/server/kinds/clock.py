"""The one source of time in the embedded cluster.

Every timestamp of an object and every timer of a controller reads the clock it was given, so
a demo can run hundreds of times faster than the wall and a test can step by hand.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Alarm(Protocol):
    """Something that has work to do at certain moments of a clock."""

    def next_due(self) -> float | None:
        """Return the epoch second of the earliest moment, or None."""

    def run_due(self) -> None:
        """Do everything that is due now, and everything that follows from it at once."""


class Clock:
    """Time that runs `speed` times as fast as the wall from `start` on (default: now)."""

    def __init__(self, speed: float = 1.0, start: datetime | None = None) -> None:
        if speed <= 0:
            raise ValueError(f"speed: {speed} is not above zero; use ManualClock to hold time")
        self.speed = speed
        self._origin = (start or datetime.now(UTC)).timestamp()
        self._started = time.monotonic()

    def seconds(self) -> float:
        """Return now as seconds since the epoch."""
        return self._origin + (time.monotonic() - self._started) * self.speed

    def now(self) -> datetime:
        """Return now, aware, in UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def stamp(self) -> str:
        """Return now as Kubernetes writes it: RFC 3339, whole seconds, UTC."""
        return stamp(self.seconds())

    def real_delay(self, when: float) -> float | None:
        """Return wall seconds until epoch second `when`; None if waiting would not help."""
        return max(0.0, (when - self.seconds()) / self.speed)

    def sleep_until(self, when: datetime) -> None:
        """Block the calling thread until the clock shows `when`."""
        while (delay := self.real_delay(when.timestamp())) is not None and delay > 0:
            time.sleep(min(delay, 0.2))

    def not_before(self, when: float) -> None:
        """Move forward to epoch second `when` if the clock is behind it; never back."""
        self._origin += max(0.0, when - self.seconds())

    def attach(self, alarm: Alarm) -> None:
        """Tell the clock about `alarm`; a running clock needs no help to reach its moments."""

    def detach(self, alarm: Alarm) -> None:
        """Forget `alarm`."""


class ManualClock(Clock):
    """Time that stands still until `step` is called; fires alarms in order on the way."""

    def __init__(self, start: datetime | None = None) -> None:
        super().__init__(1.0, start or datetime(2026, 1, 5, 8, 0, tzinfo=UTC))
        self._now = self._origin
        self._moved = threading.Condition()
        self._alarms: list[Alarm] = []

    def seconds(self) -> float:
        """Return now as seconds since the epoch."""
        return self._now

    def real_delay(self, when: float) -> float | None:
        """Return 0 for a moment that has come, None for one that only `step` can bring."""
        return 0.0 if when <= self._now else None

    def sleep_until(self, when: datetime) -> None:
        """Block the calling thread until somebody has stepped to `when`."""
        with self._moved:
            self._moved.wait_for(lambda: self._now >= when.timestamp())

    def not_before(self, when: float) -> None:
        """Move forward to epoch second `when` if the clock is behind it; never back."""
        self._move(max(self._now, when))

    def attach(self, alarm: Alarm) -> None:
        """Fire `alarm` whenever a step reaches its moments."""
        self._alarms.append(alarm)

    def detach(self, alarm: Alarm) -> None:
        """Forget `alarm`."""
        self._alarms.remove(alarm)

    def step(self, seconds: float) -> None:
        """Advance by `seconds`, halting at every alarm on the way so that each sees its moment."""
        target = self._now + seconds
        self._fire()
        while (at := self._earliest()) is not None and at <= target:
            self._move(max(self._now, at))
            self._fire()
        self._move(target)
        self._fire()

    def _earliest(self) -> float | None:
        return min((d for a in self._alarms if (d := a.next_due()) is not None), default=None)

    def _fire(self) -> None:
        for alarm in list(self._alarms):
            alarm.run_due()

    def _move(self, when: float) -> None:
        with self._moved:
            self._now = when
            self._moved.notify_all()


def stamp(seconds: float) -> str:
    """Return epoch `seconds` as RFC 3339 with whole seconds, cut off like a real server does."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def micro_stamp(seconds: float) -> str:
    """Return epoch `seconds` as RFC 3339 with microseconds (Leases and new Events)."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_stamp(text: str) -> float:
    """Return the epoch seconds of an RFC 3339 `text`.

    Raises ValueError if it is none.
    """
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
