"""Run times, arrivals and bands: what they are drawn from."""

import numpy as np
import pytest

from scheduling.simulation.ahead.bands import Band, bands
from scheduling.simulation.ahead.rhythm import DAY_S, WEEK_S, Rhythm
from scheduling.simulation.ahead.runs import Question, RunTimes

KINDS = (("u", "a"), ())


@pytest.fixture
def dice():
    return np.random.default_rng(5)


def test_rest_is_drawn_among_runs_that_lasted_longer(dice):
    times = RunTimes()
    for run_s in (10, 20, 1000, 1100, 1200):
        times.note(KINDS, run_s)
    rests = times.rests([Question(KINDS, age_s=500)], 200, dice)
    assert set(np.unique(rests)) == {500.0, 600.0, 700.0}


def test_own_prediction_goes_before_history(dice):
    times = RunTimes()
    times.note(KINDS, 5)
    rests = times.rests([Question(KINDS, p50_s=1000, p90_s=4000)], 2000, dice)
    assert np.median(rests) == pytest.approx(1000, rel=0.05)
    assert np.quantile(rests, 0.9) == pytest.approx(4000, rel=0.08)


def test_prediction_that_was_outlived_still_lies_ahead(dice):
    rests = RunTimes().rests([Question((), age_s=50_000, p50_s=1000, p90_s=4000)], 100, dice)
    assert (rests >= 1).all()


def test_narrow_kind_outweighs_the_wide_one_as_it_grows(dice):
    times = RunTimes()
    for _ in range(40):
        times.note(((),), 10_000)
        times.note((("u", "a"),), 10)
    assert np.median(times.rests([Question(KINDS)], 500, dice)) == 10


def test_arrivals_come_at_their_hour_of_the_week(dice):
    at_noon = np.array([week * WEEK_S + 3 * DAY_S + 12 * 3600 for week in range(6)])
    now_s = 6 * WEEK_S
    _, when = Rhythm(at_noon, now_s).draw(WEEK_S, dice)
    assert when.tolist() == [3 * DAY_S + 12 * 3600]


@pytest.mark.parametrize("known_h", [2, 7, 23])
def test_hours_come_again_until_a_day_is_known(dice, known_h):
    """One an hour."""
    past = np.arange(known_h, dtype=np.int64) * 3600
    _, when = Rhythm(past, known_h * 3600).draw(DAY_S, dice)
    assert abs(when.size - 24) <= 3
    assert when.max() > DAY_S - 3 * 3600


def test_nobody_comes_again_of_less_than_an_hour(dice):
    _, when = Rhythm(np.array([0]), 1800).draw(DAY_S, dice)
    assert when.size == 0


def test_no_arrival_is_drawn_without_a_past(dice):
    _, when = Rhythm(np.zeros(0, np.int64), 100).draw(WEEK_S, dice)
    assert when.size == 0


def test_start_that_half_of_the_futures_miss_has_no_p50():
    starts = np.array([[10, -1], [20, -1], [30, 40]])
    first, second = bands(starts)
    assert first == Band(20, 30)
    assert second.p50_s == np.inf
