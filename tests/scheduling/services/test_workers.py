"""One cycle at a time, and what comes during it waits for its end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from scheduling.services.worker.turns import Debounce, Turn
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
    monkeypatch.setattr(trigger._call, "clear", lambda: reached.set() or over.wait(60))
    trigger()
    assert reached.wait(60)
    assert turn.take()
    over.set()


def test_later_calls_share_the_one_that_waits(trigger: Debounce, calls: Calls) -> None:
    for _ in range(3):
        trigger.later(0.05)
    assert not calls.number
    eventually(lambda: calls.number)
    time.sleep(0.1)

    assert calls.number == 1


def test_kernels_do_without_linear_algebra_and_others_still_find_it() -> None:
    program = """
import sys
import scheduling.engine.compile.kernel
import numba
assert numba.njit(lambda: sum(range(3)))() == 3
assert "scipy.linalg" not in sys.modules
import scipy.linalg
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
