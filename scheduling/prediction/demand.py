"""Demand for GPUs ahead, by the hour, with bands that come from how wrong such forecasts were before.

A line through the weekly means (Theil 1950, Sen 1968: the median of all slopes), taken as none unless its
90 % interval says that there is one; the days around it by exponential smoothing with weekdays (Winters,
Management Science 6, 1960; fitted by statsmodels); the hours of a day by their usual part of it, for each
hour of the week.

A band at a distance is the spread of the errors that the same method made at that distance when it was asked
at earlier days of the same series (evaluation on a rolling origin: Hyndman and Athanasopoulos, Forecasting:
Principles and Practice, section 5.10). What is told of its quality never uses errors of later days.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY, WEEK = 24, 168
"""Hours."""
LEAST_DAYS = 14
"""Fewer tell no week from another."""
SEASONAL_DAYS = 21
"""From here on weekdays are told apart."""
TREND_WEEKS = 8
"""A line through fewer is noise, and is wrong by more the further it is drawn."""
SHAPE_DAYS = 56
"""Over so many last days an hour's part of its day is the mean."""
FIRST_ORIGIN_DAYS = 28
MOST_ORIGINS = 26
LEAST_ORIGINS = 5
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
BUCKETS = (1, 2, 4, 7, 14, 28, 56, 84, 182)
"""Days ahead up to which errors are taken together."""
SCORED_DAYS = (1, 7, 28, 84)


class TooLittleError(ValueError):
    """The series is too short, or too little of it is known."""


@dataclass(frozen=True)
class DemandBands:
    """GPUs ahead: rows are QUANTILES, in order at every column."""

    hours: Floats
    weeks: Floats
    """Means of whole weeks; they spread less than hours, so their bands are their own."""
    slope_per_week: float
    """GPUs that the mean of a week grows by; 0 where no trend can be told."""
    origins: int
    """Earlier forecasts that the bands rest on."""


@dataclass(frozen=True, slots=True)
class DemandScore:
    """How forecasts so many days ahead did on what came.

    GPUs off on average, beside the same hour of the last known week, and the part of hours within P10 to P90
    (None where no band had errors to rest on).
    """

    days_ahead: int
    error: float
    last_week_error: float
    coverage: float | None
    forecasts: int


@dataclass(frozen=True)
class EarlierForecast:
    """One earlier forecast beside what came: weekly means, rows of ``forecast`` are P10, P50, P90."""

    days_ago: int
    forecast: Floats
    came: Floats


@dataclass(frozen=True)
class Forecast:
    outlook: DemandBands
    scores: tuple[DemandScore, ...]
    earlier: EarlierForecast | None


def forecast(hours: Sequence[float] | Floats, slots: Sequence[int] | Ints, ahead: int) -> Forecast:
    """What is asked for in the ``ahead`` hours that follow.

    ``hours``: mean GPUs of each past hour, NaN where unknown; the last one ends now. ``slots``: the hour of
    the week (0 to 167) of each of them and of those ahead.

    Raises:
        TooLittleError: less than two weeks are known.
    """
    series = _whole_days(np.asarray(hours, dtype=np.float64))
    slots = np.asarray(slots, dtype=np.int64)[len(hours) - len(series) :]
    trials = _trials(series, slots, ahead)
    point, slope = _point(series, slots, ahead)
    outlook = DemandBands(
        hours=_banded(point, trials, DAY),
        weeks=_banded(_weekly(point), trials, WEEK),
        slope_per_week=slope,
        origins=len(trials),
    )
    return Forecast(outlook, _scores(series, trials), _earlier(trials))


def _whole_days(hours: Floats) -> Floats:
    """From the first known day on, in whole days that end now; gaps filled from the week before. Raises."""
    hours = hours[len(hours) % DAY :]
    known = np.flatnonzero(~np.isnan(hours))
    if not len(known):
        raise TooLittleError("nothing is known")
    hours = hours[known[0] // DAY * DAY :].copy()
    if len(hours) < LEAST_DAYS * DAY or np.isnan(hours).mean() > 0.5:
        raise TooLittleError(f"less than {LEAST_DAYS} days are known")
    mean = float(np.nanmean(hours))
    for i in np.flatnonzero(np.isnan(hours)):
        hours[i] = hours[i - WEEK] if i >= WEEK else mean
    return hours


def _point(series: Floats, slots: Ints, ahead: int) -> tuple[Floats, float]:
    """(GPUs in each hour ahead, growth a week)."""
    days = series.reshape(-1, DAY).mean(axis=1)
    slope = _slope(days)
    line = slope / 7 * np.arange(len(days))
    rest = _smoothed(days - line, -(-ahead // DAY))
    level = rest + slope / 7 * np.arange(len(days), len(days) + len(rest))
    parts = _parts(series, slots[: len(series)])
    point = np.repeat(level, DAY)[:ahead] * parts[slots[len(series) : len(series) + ahead]]
    return np.maximum(0.0, point), slope


def _slope(days: Floats) -> float:
    """GPUs a week."""
    weeks = days[len(days) % 7 :].reshape(-1, 7).mean(axis=1)
    if len(weeks) < TREND_WEEKS:
        return 0.0
    from scipy.stats import theilslopes  # a second to load, for whoever forecasts

    slope, _, low, high = theilslopes(weeks, np.arange(len(weeks)), 0.9)
    return float(slope) if low > 0 or high < 0 else 0.0


def _smoothed(days: Floats, count: int) -> Floats:
    """The days ahead without a trend."""
    # It takes seconds to load: only who forecasts pays.
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    if np.ptp(days) == 0:
        return np.full(count, days[-1])
    seasonal = "add" if len(days) >= SEASONAL_DAYS else None
    with warnings.catch_warnings():
        # A series without noise has no optimum to converge to: its start values are the answer then.
        warnings.simplefilter("ignore")
        model = ExponentialSmoothing(
            days, seasonal=seasonal, seasonal_periods=7 if seasonal else None,
            initialization_method="estimated" if seasonal else "heuristic",
        ).fit()  # fmt: skip
    ahead = np.asarray(model.forecast(count), dtype=np.float64)
    return np.where(np.isfinite(ahead), ahead, float(days[-7:].mean()))


def _parts(series: Floats, slots: Ints) -> Floats:
    """What an hour of the week is of the mean of its day; 1 where that hour was never seen."""
    recent = series[-SHAPE_DAYS * DAY :]
    means = np.repeat(recent.reshape(-1, DAY).mean(axis=1), DAY)
    ratio = np.divide(recent, means, out=np.ones_like(recent), where=means > 0)
    sums = np.bincount(slots[-len(recent) :], ratio, WEEK)
    counts = np.bincount(slots[-len(recent) :], minlength=WEEK)
    return np.divide(sums, counts, out=np.ones(WEEK), where=counts > 0)


def _weekly(hours: Floats) -> Floats:
    whole = len(hours) // WEEK * WEEK
    return hours[:whole].reshape(-1, WEEK).mean(axis=1)


@dataclass(frozen=True)
class _Trial:
    """A forecast made ``hours_ago``, and what came up to now."""

    hours_ago: int
    point: Floats
    came: Floats

    def errors(self, step: int, low: int, high: int) -> Floats:
        """Of the hours, or weekly means, from ``low`` to ``high`` hours ahead, as parts of what was told."""
        forecast, came = self.point, self.came
        if step == WEEK:
            forecast, came, low, high = (
                _weekly(forecast),
                _weekly(came),
                low // WEEK,
                -(-high // WEEK),
            )
        forecast, came = forecast[low:high], came[low:high]
        return (came - forecast) / np.maximum(forecast, 1.0)


def _trials(series: Floats, slots: Ints, ahead: int) -> list[_Trial]:
    """Forecasts of one day a week, the oldest first."""
    found = []
    for weeks in range(MOST_ORIGINS, 0, -1):
        end = len(series) - weeks * WEEK
        if end >= FIRST_ORIGIN_DAYS * DAY:
            point, _ = _point(series[:end], slots, min(ahead, len(series) - end))
            found.append(_Trial(weeks * WEEK, point, series[end : end + len(point)]))
    return found


def _banded(point: Floats, trials: Sequence[_Trial], step: int) -> Floats:
    """``point`` with what lies around it; ``step`` is DAY for hours, WEEK for means of weeks."""
    bands = _bands(trials, step)
    hours_each = 1 if step == DAY else WEEK
    index = np.searchsorted(np.array(BUCKETS) * DAY, (np.arange(len(point)) + 1) * hours_each)
    spread = bands[np.minimum(index, len(BUCKETS) - 1)].T
    levels = np.maximum(0.0, point * (1 + spread))
    levels[QUANTILES.index(0.5)] = point
    return np.sort(levels, axis=0)


def _bands(trials: Sequence[_Trial], step: int) -> Floats:
    """(buckets, quantiles) of relative errors.

    No band is narrower than one of a shorter distance; beyond what has come yet it grows with the root of the
    distance.
    """
    bands = np.zeros((len(BUCKETS), len(QUANTILES)))
    low, known = 0, 0
    for i, days in enumerate(BUCKETS):
        errors = [trial.errors(step, low * DAY, days * DAY) for trial in trials]
        if sum(len(e) > 0 for e in errors) >= LEAST_ORIGINS:
            bands[i], known = np.quantile(np.concatenate(errors), QUANTILES), days
        elif known:
            bands[i] = bands[i - 1] * np.sqrt(days / max(known, low))
        else:
            bands[i] = np.array([-0.3, -0.15, 0.0, 0.15, 0.3]) * np.sqrt(days)
        if i:
            half = QUANTILES.index(0.5)
            bands[i, :half] = np.minimum(bands[i, :half], bands[i - 1, :half])
            bands[i, half + 1 :] = np.maximum(bands[i, half + 1 :], bands[i - 1, half + 1 :])
        low = days
    return bands


def _scores(series: Floats, trials: Sequence[_Trial]) -> tuple[DemandScore, ...]:
    return tuple(
        score for days in SCORED_DAYS if (score := _score(series, trials, days)) is not None
    )


def _score(series: Floats, trials: Sequence[_Trial], days: int) -> DemandScore | None:
    """Of the day that ends ``days`` ahead."""
    errors, naive, inside = [], [], []
    span = slice((days - 1) * DAY, days * DAY)
    for i, trial in enumerate(trials):
        came = trial.came[span]
        if len(came) < DAY:
            continue
        errors.append(np.abs(trial.point[span] - came))
        naive.append(np.abs(_last_week(series, trial, span) - came))
        # Of earlier trials only what had come when this one was made.
        before = [_until(one, trial.hours_ago) for one in trials[:i]]
        if sum(len(one.came) >= span.stop for one in before) >= LEAST_ORIGINS:
            low, *_, high = _banded(trial.point, before, DAY)
            inside.append((low[span] <= came) & (came <= high[span]))
    if not errors:
        return None
    return DemandScore(
        days, float(np.mean(errors)), float(np.mean(naive)),
        float(np.mean(inside)) if inside else None, len(errors),
    )  # fmt: skip


def _until(trial: _Trial, hours_ago: int) -> _Trial:
    """``trial`` as it was known then."""
    count = trial.hours_ago - hours_ago
    return _Trial(trial.hours_ago, trial.point[:count], trial.came[:count])


def _last_week(series: Floats, trial: _Trial, span: slice) -> Floats:
    """The same hours of the last week that was known then."""
    end = len(series) - trial.hours_ago
    ahead = np.arange(span.start, span.stop) % WEEK
    return series[end - WEEK + ahead]


def _earlier(trials: Sequence[_Trial]) -> EarlierForecast | None:
    """The oldest of the last twelve weeks that had others before it."""
    for i, trial in enumerate(trials):
        before = [_until(one, trial.hours_ago) for one in trials[:i]]
        if trial.hours_ago <= 12 * WEEK and len(before) >= LEAST_ORIGINS:
            low, _, middle, _, high = _banded(_weekly(trial.point), before, WEEK)
            return EarlierForecast(
                trial.hours_ago // DAY, np.array([low, middle, high]), _weekly(trial.came)
            )
    return None
