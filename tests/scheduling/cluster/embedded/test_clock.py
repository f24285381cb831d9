"""Time: fast, by hand, and in order."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from workshop.testbed.server import Clock, ManualClock

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


class Alarms:
    """Notes when it was rung, at moments given."""

    def __init__(self, clock: ManualClock, *offsets: float) -> None:
        self._clock = clock
        self._moments = sorted(clock.seconds() + offset for offset in offsets)
        self.heard: list[float] = []

    def next_due(self) -> float | None:
        return self._moments[0] if self._moments else None

    def run_due(self) -> None:
        while self._moments and self._moments[0] <= self._clock.seconds():
            self.heard.append(self._clock.seconds() - START.timestamp())
            self._moments.pop(0)


def test_clock_runs_at_its_speed() -> None:
    clock = Clock(speed=10_000, start=START)
    before = clock.now()
    clock.sleep_until(before + timedelta(seconds=100))
    assert timedelta(seconds=100) <= clock.now() - before < timedelta(hours=3)


def test_clock_refuses_to_stand_still() -> None:
    with pytest.raises(ValueError, match="speed"):
        Clock(speed=0)


def test_clock_moves_forward_only() -> None:
    clock = Clock(start=START)
    clock.not_before(START.timestamp() + 3600)
    clock.not_before(START.timestamp())
    assert clock.now() >= START + timedelta(hours=1)


def test_step_halts_at_every_alarm() -> None:
    clock = ManualClock(START)
    alarms = Alarms(clock, 5, 1, 30)
    clock.attach(alarms)
    clock.step(10)
    assert alarms.heard == [1, 5]
    assert clock.now() == START + timedelta(seconds=10)


def test_sleeper_wakes_when_somebody_steps() -> None:
    clock = ManualClock(START)
    sleeper = threading.Thread(target=clock.sleep_until, args=(START + timedelta(seconds=5),))
    sleeper.start()
    clock.step(4)
    assert sleeper.is_alive()
    clock.step(1)
    sleeper.join(60)
    assert not sleeper.is_alive()


def test_stamps_have_whole_seconds() -> None:
    assert ManualClock(START + timedelta(milliseconds=900)).stamp() == "2026-01-05T08:00:00Z"
