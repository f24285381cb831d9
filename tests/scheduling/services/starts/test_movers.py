"""Whose end a start hangs on, read off the futures that were lived."""

import numpy as np

from scheduling.services.starts.futures import Ahead
from scheduling.services.starts.movers import LEAST_FUTURES, movers

FUTURES = 40


def ahead(starts: np.ndarray, ends: np.ndarray) -> Ahead:
    """``starts`` of w0, w1, ... and ``ends`` of r0, r1, ..., by future."""
    return Ahead(
        futures=len(starts),
        waiting=tuple(f"w{i}" for i in range(starts.shape[1])),
        starts=starts.astype(np.int64),
        running=tuple(f"r{i}" for i in range(ends.shape[1])),
        ends=ends.astype(np.float64),
        runs=np.ones(starts.shape[1]),
        after={},
    )


def hanging(futures: int = FUTURES) -> Ahead:
    """w0 starts with the end of r1, w1 whenever."""
    dice = np.random.default_rng(3)
    ends = dice.uniform(3600, 40_000, (futures, 5))
    starts = np.stack([ends[:, 1] + 30, dice.uniform(3600, 40_000, futures)], axis=1)
    return ahead(starts, ends)


def test_start_that_follows_an_end_hangs_on_it() -> None:
    [found] = movers(hanging(), {})
    assert (found.workload, found.run) == ("w0", "r1")
    assert found.late_start_s - found.start_s >= 600
    assert found.late_end_s > found.end_s


def test_nothing_is_said_of_chance() -> None:
    dice = np.random.default_rng(11)
    for _ in range(20):
        by_chance = ahead(
            dice.uniform(600, 9000, (FUTURES, 10)), dice.uniform(600, 9000, (FUTURES, 60))
        )
        assert movers(by_chance, {}) == []


def test_too_few_futures_say_nothing() -> None:
    assert movers(hanging(LEAST_FUTURES - 1), {}) == []


def test_start_that_some_future_does_not_see_is_left_out() -> None:
    one = hanging()
    one.starts[0, 0] = -1
    assert movers(one, {}) == []


def test_start_that_moves_by_less_than_is_told_is_left_out() -> None:
    dice = np.random.default_rng(3)
    ends = dice.uniform(3600, 3700, (FUTURES, 1))
    assert movers(ahead(ends + 5, ends), {}) == []


def test_runs_that_hold_most_are_looked_at_first() -> None:
    dice = np.random.default_rng(5)
    ends = dice.uniform(3600, 40_000, (FUTURES, 100))
    one = ahead(ends[:, 90:91] + 10, ends)
    assert movers(one, {}) == []
    assert movers(one, {"r90": 8000})[0].run == "r90"
