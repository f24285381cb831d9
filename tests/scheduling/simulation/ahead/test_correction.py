"""What past errors do to bands: they come to hold what they say, follow drift, and never turn to nonsense."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.simulation.ahead.bands import Band
from scheduling.simulation.ahead.correction import (
    LEAST,
    LEVELS,
    Correction,
    ForecastKind,
    JudgedForecast,
    correction_from,
    levels_of,
)

HOUR_S, DAY_S = 3600.0, 86400.0
seconds = st.floats(0, 1e7)


def outcomes(dice, count, *, every_s=600.0, since_s=0.0, bias=0.0, noise=0.7):
    """Forecasts one after another; what came is off by a log-normal factor times the band's own width."""
    told = []
    for number in range(count):
        p50_s = float(np.exp(dice.uniform(np.log(HOUR_S), np.log(DAY_S))))
        width = float(dice.uniform(0.1, 0.8))
        off = bias + noise * width * float(dice.normal())
        band = Band(p50_s, p50_s * float(np.exp(width)))
        told.append(JudgedForecast(band, since_s + every_s * number, p50_s * float(np.exp(off))))
    return told


def shares(correction, later):
    """Of those that came: before P50, before P90."""
    found = [(correction.correct(one.band), one.after_s) for one in later]
    return np.mean([(s <= band.p50_s, s <= band.p90_s) for band, s in found], axis=0)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), bias=st.floats(-1.5, 1.5), noise=st.sampled_from([0.2, 1.0, 4.0])
)
def test_bands_hold_what_they_say_where_errors_are_exchangeable(seed, bias, noise):
    dice = np.random.default_rng(seed)
    known = outcomes(dice, 600, bias=bias, noise=noise)
    correction = correction_from(known, 600 * 600.0)
    p50, p90 = shares(correction, outcomes(dice, 600, bias=bias, noise=noise))
    assert p50 == pytest.approx(0.5, abs=0.17)
    assert p90 == pytest.approx(0.9, abs=0.1)


@pytest.mark.parametrize(("before", "after"), [(0.0, 1.4), (1.4, 0.0)])
def test_drift_is_followed_within_four_days(before, after):
    dice = np.random.default_rng(4)
    known = outcomes(dice, 1000, bias=before)
    since_s = 1000 * 600.0
    stale = correction_from(known, since_s)
    known = told_on(known, outcomes(dice, 576, since_s=since_s, bias=after))
    later = outcomes(dice, 1000, bias=after)
    now_s = since_s + 576 * 600.0
    fresh = shares(correction_from([as_of(one, now_s) for one in known], now_s), later)
    assert abs(fresh[0] - 0.5) < abs(shares(stale, later)[0] - 0.5) / 2


def told_on(known, later, every=24):
    """``later`` after ``known``, each told by what was known when it was, ``every`` so many learned anew."""
    known, learned = list(known), Correction()
    for number, one in enumerate(later):
        if number % every == 0:
            learned = correction_from([as_of(o, one.at_s) for o in known], one.at_s)
        known.append(replace(one, said=learned.correct(one.band, one.kind)))
    return known


def as_of(one, now_s):
    """What is known of it then."""
    waited_s = now_s - one.at_s
    return one if one.after_s <= waited_s else replace(one, after_s=waited_s, started=False)


def test_bands_hold_in_the_long_run_whatever_load_does():
    dice = np.random.default_rng(7)
    later = [
        one
        for day in range(30)
        for one in outcomes(
            dice, 48, every_s=1800.0, since_s=day * DAY_S, bias=[-1, 2, 0][day // 3 % 3]
        )
    ]
    told = [one for one in told_on([], later) if one.at_s > 6 * DAY_S]
    p50, p90 = np.mean(
        [(o.after_s <= o.said.p50_s, o.after_s <= o.said.p90_s) for o in told], axis=0
    )
    assert p50 == pytest.approx(0.5, abs=0.05)
    assert p90 == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("kind", list(ForecastKind))
def test_misses_of_one_kind_move_its_own_levels_alone(kind):
    dice = np.random.default_rng(4)
    known = [replace(o, said=Band(1.0, 2.0), kind=kind) for o in outcomes(dice, 100)]
    levels = {each: levels_of(known, each) for each in ForecastKind}
    assert levels.pop(kind) > LEVELS
    assert set(levels.values()) == {LEVELS}


def test_hits_lower_levels_and_what_may_still_come_moves_none():
    dice = np.random.default_rng(4)
    hits = [replace(o, said=Band(1e9, 1e9)) for o in outcomes(dice, 100)]
    assert levels_of(hits, ForecastKind.SMALL) < LEVELS
    assert levels_of([replace(o, started=False) for o in hits], ForecastKind.SMALL) == LEVELS


def test_busy_day_moves_levels_no_further_than_a_day_of_few():
    dice = np.random.default_rng(4)
    few, many = (
        [replace(o, said=Band(1.0, 1e9)) for o in outcomes(dice, count, every_s=DAY_S / count)]
        for count in (ForecastKind.SMALL.daily, 40 * ForecastKind.SMALL.daily)
    )
    assert levels_of(many, ForecastKind.SMALL) == pytest.approx(levels_of(few, ForecastKind.SMALL))


def test_quiet_cluster_remembers_for_longer():
    dice = np.random.default_rng(4)
    known = outcomes(dice, 60, every_s=2 * HOUR_S, bias=1.0)
    assert correction_from(known, 30 * DAY_S).reach[ForecastKind.SMALL] == pytest.approx(
        correction_from(known, 5 * DAY_S).reach[ForecastKind.SMALL]
    )


def test_too_few_outcomes_correct_nothing():
    known = outcomes(np.random.default_rng(4), LEAST - 1, bias=1.0)
    assert correction_from(known, DAY_S) == Correction()
    assert Correction().correct(Band(60, 120)) == Band(60, 120)


def test_what_waits_still_is_no_outcome():
    waiting = [JudgedForecast(Band(60, 120), 0.0, 7200.0, started=False)] * (2 * LEAST)
    assert correction_from(waiting, 7200.0) == Correction()


def test_who_starts_soon_and_is_heard_of_first_shortens_no_band():
    dice = np.random.default_rng(4)
    all_told = outcomes(dice, 600, every_s=60.0, bias=1.0)
    now_s = 600 * 60.0
    known = [
        JudgedForecast(o.band, o.at_s, min(o.after_s, now_s - o.at_s), o.at_s + o.after_s <= now_s)
        for o in all_told
    ]
    later = outcomes(dice, 1000, bias=1.0)
    with_waiting = shares(correction_from(known, now_s), later)
    heard_of_only = shares(correction_from([o for o in known if o.started], now_s), later)
    assert heard_of_only[0] < 0.4
    assert abs(with_waiting[0] - 0.5) < abs(heard_of_only[0] - 0.5) / 2


def test_who_is_unsure_is_corrected_by_more():
    correction = correction_from(outcomes(np.random.default_rng(4), 300, bias=1.0), 300 * 600.0)
    sure = correction.correct(Band(HOUR_S, 1.1 * HOUR_S))
    unsure = correction.correct(Band(HOUR_S, 2 * HOUR_S))
    assert HOUR_S < sure.p50_s < unsure.p50_s
    assert sure.p90_s - sure.p50_s < unsure.p90_s - unsure.p50_s


@settings(max_examples=50, deadline=None)
@given(
    known=st.lists(
        st.tuples(seconds, seconds, seconds, st.booleans()), min_size=LEAST, max_size=120
    ),
    p50_s=seconds,
    wider_s=seconds,
)
def test_told_band_is_in_order_and_ahead_whatever_came(known, p50_s, wider_s):
    came = [
        JudgedForecast(Band(p50, p50 + wider), 0.0, after, started)
        for p50, wider, after, started in known
    ]
    band = correction_from(came, DAY_S).correct(Band(max(1.0, p50_s), max(1.0, p50_s) + wider_s))
    assert 1 <= band.p50_s <= band.p90_s < np.inf


def test_band_without_an_end_stays_without():
    correction = correction_from(outcomes(np.random.default_rng(4), 300, bias=1.0), 300 * 600.0)
    assert correction.correct(Band(HOUR_S, np.inf)) == Band(HOUR_S, np.inf)
