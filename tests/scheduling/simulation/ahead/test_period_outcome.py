"""How forecasts of a replay are judged: nothing is known too early, and days make the interval."""

from datetime import UTC, datetime

import numpy as np
import pytest

from scheduling.simulation.ahead.bands import Band
from scheduling.simulation.traces import Trace
from workshop.compare.judgement import DAY_S, HOURS, SUBMITS, ToldForecast, _moments, judge

WAIT_S = 7200


def trace(jobs):
    return Trace(
        name="made",
        origin=datetime(2026, 11, 2, tzinfo=UTC),
        submit_s=np.arange(jobs) * 900,
        duration_s=np.full(jobs, 600),
        gpus=np.ones(jobs, np.int64),
        queue=np.zeros(jobs, np.int64),
        user=np.zeros(jobs, np.int64),
        index=np.arange(jobs),
        queues=("a",),
        users=("",),
        queue_nodes={"a": 1},
    )


def told_of(one, came_s):
    """Each job when it comes: in an hour, at most in two."""
    return [
        ToldForecast(int(at), job, True, Band(3600, 7200), int(came))
        for job, (at, came) in enumerate(zip(one.submit_s, came_s, strict=True))
    ]


def test_twice_as_late_as_told_is_found_out_and_held():
    dice = np.random.default_rng(2)
    one = trace(900)
    came_s = (WAIT_S * np.exp(dice.normal(0, 0.4, 900))).astype(np.int64)
    found = judge(told_of(one, came_s), one.submit_s + came_s, one)
    assert found["uncorrected_band_p50_p90_pct"] > found["band_p50_p90_pct"]
    assert found["before_p50_pct"] == pytest.approx(50, abs=6)
    assert found["band_p50_p90_pct"] == pytest.approx(40, abs=6)


def test_what_comes_later_changes_no_band_told_before():
    one, half = trace(400), 200 * 900
    came_s = np.full(400, WAIT_S)
    later_s = np.where(one.submit_s + came_s > half, came_s + 50_000, came_s)
    spans = [
        judge(told_of(one, c), one.submit_s + c, one, since_s=150 * 900, until_s=half - WAIT_S)
        for c in (came_s, later_s)
    ]
    assert spans[0] == spans[1]


def test_interval_counts_days_and_holds_the_share():
    dice = np.random.default_rng(2)
    one = trace(1000)
    came_s = (WAIT_S * np.exp(dice.normal(0, 0.4, 1000))).astype(np.int64)
    found = judge(told_of(one, came_s), one.submit_s + came_s, one)
    assert found["days"] == 1 + (1000 * 900) // DAY_S
    assert found["band_low_pct"] < found["band_p50_p90_pct"] < found["band_high_pct"]
    assert found["band_high_pct"] - found["band_low_pct"] < 15


def test_moments_are_of_those_who_wait():
    one = trace(400)
    start = one.submit_s.copy()
    start[100:200] += WAIT_S
    submits, hours = _moments(one, start)
    assert len(submits) == SUBMITS
    assert 0 < len(hours) <= HOURS
    waits = range(100 * 900, 200 * 900 + WAIT_S)
    assert submits | hours <= set(waits)
