"""What is said at a bounded rate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.cluster.connection import rate
from scheduling.cluster.connection.rate import Allowance
from scheduling.cluster.enforcement import events
from scheduling.cluster.enforcement.events import Event, Voice


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still: its only item is the time."""
    now = [100.0]
    monkeypatch.setattr(rate.time, "monotonic", lambda: now[0])
    return now


def event(number: int) -> Event:
    target: Any = None
    return Event(target, "batch/v1", "Admitted", str(number), datetime.now(UTC), str(number))


def test_allowance_is_full_at_first_and_fills_with_time(clock: list[float]) -> None:
    allowance = Allowance(per_s=2, at_once=5)
    assert allowance.left() == 5

    allowance.spend(5)
    assert allowance.left() == 0
    clock[0] += 1.5
    assert allowance.left() == 3
    clock[0] += 60
    assert allowance.left() == 5


def test_events_past_the_rate_wait_and_of_too_many_the_oldest_are_dropped(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(events, "EVENTS_PER_S", 1)
    monkeypatch.setattr(events, "UNSAID", 4)
    voice = Voice()
    voice.add(event(i) for i in range(6))

    assert [e.message for e in voice.take(2)] == ["2", "3"]
    assert [e.message for e in voice.take(2)] == ["4"]
    assert voice.take(2) == []
    clock[0] += 1
    assert [e.message for e in voice.take(2)] == ["5"]


def test_hurried_a_few_events_are_posted_and_of_many_so_many_at_a_lower_rate(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "EVENTS_AT_ONCE", 4)
    monkeypatch.setattr(events, "EVENTS_PER_S", 1e9)
    monkeypatch.setattr(events, "HURRIED_PER_S", 1)
    voice = Voice()
    voice.add(event(i) for i in range(7))

    assert len(voice.take(3, hurried=True)) == 3
    clock[0] += 1
    assert voice.take(3, hurried=True) == []
    clock[0] += 1
    assert len(voice.take(3, hurried=True)) == 3
    assert len(voice.take(3, hurried=True)) == 1


def test_hurried_line_that_is_looked_at_often_keeps_to_the_lower_rate(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(events, "EVENTS_PER_S", 4)
    monkeypatch.setattr(events, "HURRIED_PER_S", 1)
    voice = Voice()
    voice.add(event(i) for i in range(100))

    said = 0
    for _ in range(40):  # ten seconds
        said += len(voice.take(3, hurried=True))
        clock[0] += 0.25
    assert said <= 3 + 10
