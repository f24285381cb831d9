"""Demand ahead: what is regular is continued, what is not widens the bands, no later day is known early."""

from __future__ import annotations

import numpy as np
import pytest

from scheduling.prediction.demand import DAY, QUANTILES, WEEK, Floats, TooLittleError, forecast

MIDDLE = QUANTILES.index(0.5)


def weeks_of(count: int, *, noise: float = 0.0, growth: float = 0.0, seed: int = 1) -> Floats:
    """Office hours and weekends around 100 GPUs, which grow by ``growth`` of them a week."""
    hours = np.arange(count * WEEK)
    day, week = hours % DAY, hours % WEEK
    shape = 1 + 0.3 * np.sin(2 * np.pi * (day - 8) / DAY) - 0.4 * (week >= 5 * DAY)
    level = 100 * (1 + growth * hours / WEEK)
    dice = np.random.default_rng(seed)
    return level * shape * (1 + noise * dice.standard_normal(len(hours)))


def slots(past: int, ahead: int) -> list[int]:
    return [i % WEEK for i in range(past + ahead)]


def ahead_of(series: Floats, hours: int = 4 * WEEK):
    return forecast(series, slots(len(series), hours), hours)


def test_week_that_repeats_is_continued() -> None:
    series = weeks_of(12)
    found = ahead_of(series, WEEK)
    assert found.outlook.hours[MIDDLE] == pytest.approx(series[-WEEK:], rel=0.03)
    assert found.outlook.slope_per_week == pytest.approx(0, abs=0.05)


def test_growth_that_is_more_than_chance_is_continued() -> None:
    found = ahead_of(weeks_of(16, growth=0.03, noise=0.05), 8 * WEEK)
    assert found.outlook.slope_per_week == pytest.approx(3 * 0.885, rel=0.25)
    assert found.outlook.weeks[MIDDLE, -1] > found.outlook.weeks[MIDDLE, 0] + 10


def test_chance_is_no_trend() -> None:
    found = ahead_of(weeks_of(12, noise=0.4, seed=3), WEEK)
    assert found.outlook.slope_per_week == 0


def test_quantiles_are_in_order_and_widen_with_the_distance() -> None:
    outlook = ahead_of(weeks_of(20, noise=0.2), 8 * WEEK).outlook
    for told in (outlook.hours, outlook.weeks):
        assert (np.diff(told, axis=0) >= 0).all()
        assert (told >= 0).all()
    width = (outlook.weeks[-1] - outlook.weeks[0]) / outlook.weeks[MIDDLE]
    assert width[-1] >= width[0]


def test_noisier_past_has_wider_bands() -> None:
    def width(noise: float) -> float:
        hours = ahead_of(weeks_of(16, noise=noise), WEEK).outlook.hours
        return float((hours[-1] - hours[0]).mean())

    assert width(0.3) > 2 * width(0.05)


def test_band_holds_about_as_often_as_it_says() -> None:
    held = []
    for seed in range(6):
        series = weeks_of(24, noise=0.15, seed=seed)
        told = ahead_of(series[:-WEEK], WEEK).outlook.hours
        came = series[-WEEK:]
        held.append(float(((told[0] <= came) & (came <= told[-1])).mean()))
    assert 0.7 <= np.mean(held) <= 0.92


def test_scores_stand_beside_the_same_hour_of_last_week() -> None:
    scores = {score.days_ahead: score for score in ahead_of(weeks_of(24, noise=0.2)).scores}
    assert set(scores) == {1, 7, 28}
    assert scores[7].error < scores[7].last_week_error
    assert 0.6 <= (scores[7].coverage or 0) <= 1


def test_score_of_earlier_forecasts_knows_no_later_day() -> None:
    series = weeks_of(24, noise=0.1)
    other = series.copy()
    other[-WEEK:] *= 3
    one, two = ahead_of(series, 13 * WEEK), ahead_of(other, 13 * WEEK)
    assert one.earlier is not None
    assert two.earlier is not None
    assert one.earlier.forecast[1] == pytest.approx(two.earlier.forecast[1])
    assert one.earlier.came[-1] != pytest.approx(two.earlier.came[-1])


def test_gaps_are_filled_from_the_week_before() -> None:
    series = weeks_of(12)
    holes = series.copy()
    holes[-40:-10] = np.nan
    assert ahead_of(holes, WEEK).outlook.hours[MIDDLE] == pytest.approx(
        ahead_of(series, WEEK).outlook.hours[MIDDLE], rel=0.02
    )


@pytest.mark.parametrize(
    "series",
    [np.full(30 * DAY, np.nan), weeks_of(1), np.append(np.full(40 * DAY, np.nan), weeks_of(1))],
)
def test_too_little_is_told_as_such(series: Floats) -> None:
    with pytest.raises(TooLittleError):
        ahead_of(series, WEEK)


def test_two_weeks_are_enough_without_a_claim_about_earlier_ones() -> None:
    found = ahead_of(weeks_of(2), WEEK)
    assert found.scores == ()
    assert found.earlier is None
    assert found.outlook.hours.shape == (5, WEEK)


def test_nothing_asked_stays_nothing() -> None:
    assert ahead_of(np.zeros(6 * WEEK), WEEK).outlook.hours[MIDDLE] == pytest.approx(0)
