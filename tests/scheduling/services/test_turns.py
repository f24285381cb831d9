"""One cycle at a time, what comes during it waits for its end, and arrivals wait for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from scheduling.services.turns import ARRIVAL_S, Debounce, Turn
from tests.scheduling.kube import eventually


class Calls:
    """Counts how often it was called."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> None:
        self.number += 1


@pytest.fixture
def turn() -> Turn:
    return Turn()


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def trigger(turn: Turn, calls: Calls) -> Iterator[Debounce]:
    trigger = Debounce(calls, turn, delay_s=0.001)
    yield trigger
    turn.give_back()
    trigger.close()


def test_turn_that_is_taken_is_refused_until_it_is_given_back(turn: Turn) -> None:
    assert turn.take()
    assert not turn.take()
    turn.give_back()
    assert turn.take()


def test_changes_of_one_moment_share_a_call(trigger: Debounce, calls: Calls) -> None:
    for _ in range(20):
        trigger()
    eventually(lambda: calls.number and not trigger.is_due())
    assert calls.number < 20


def test_change_during_a_cycle_waits_for_its_end(
    turn: Turn, trigger: Debounce, calls: Calls
) -> None:
    turn.take()
    trigger()
    time.sleep(0.05)
    assert not threading.Event().wait(0.05)
    assert (calls.number, trigger.is_due()) == (0, True)
    turn.give_back()
    eventually(lambda: calls.number == 1)


def test_change_that_is_about_to_call_keeps_no_cycle_from_its_turn(
    turn: Turn, trigger: Debounce, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, over = threading.Event(), threading.Event()
    monkeypatch.setattr(trigger, "_begin_anew", lambda: reached.set() or over.wait(5))
    trigger()
    assert reached.wait(5)
    assert turn.take()
    over.set()


@pytest.mark.parametrize(("cycle_s", "waits_s"), [(0.0, 0.02), (0.05, 0.05), (60.0, ARRIVAL_S)])
def test_arrival_waits_as_long_as_the_last_cycle_took_within_bounds(
    turn: Turn, calls: Calls, monkeypatch: pytest.MonkeyPatch, cycle_s: float, waits_s: float
) -> None:
    trigger, asked = Debounce(calls, turn, delay_s=0.02), []
    monkeypatch.setattr(trigger, "_call_in", asked.append)
    turn.took_s = cycle_s
    trigger.arrived()
    monkeypatch.undo()
    trigger.close()

    assert asked == [waits_s]


def test_change_does_not_wait_for_an_arrival_that_is_due_later(turn: Turn, calls: Calls) -> None:
    trigger = Debounce(calls, turn, delay_s=0.0)
    turn.took_s = 60.0
    trigger.arrived()
    assert (calls.number, trigger.is_due()) == (0, True)
    trigger()
    eventually(lambda: calls.number == 1 and not trigger.is_due())
    trigger.close()


def test_turn_knows_how_long_it_was_taken(turn: Turn) -> None:
    turn.take()
    time.sleep(0.01)
    turn.give_back()

    assert turn.took_s >= 0.01
