"""Forecasts over a whole replay at sampled moments, and how they held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from scheduling.engine.compile.structs import Floats, Ints
from scheduling.simulation.ahead.bands import Band, bands
from scheduling.simulation.ahead.correction import (
    LARGE_GPUS,
    Correction,
    ForecastKind,
    JudgedForecast,
    correction_from,
)
from scheduling.simulation.traces import Trace
from workshop.simulator.replay import DEFAULT_POLICY, SHIPPED

from .eta import Forecaster, Walk

SEED = 20171001
SUBMITS, HOURS = 60, 50
"""Sampled moments of each month: submissions of jobs that then wait, and whole hours at which some wait."""
MOST_OF_AN_HOUR = 20
"""Of what waits at an hour so many are judged: a backlog of thousands is one event, not thousands."""
FIRST_OF_NOVEMBER_S = 31 * 86400
LEAST_WAIT_S = 600
DAY_S = 86400
RESAMPLED = 2000


@dataclass(frozen=True, slots=True)
class ToldForecast:
    """One forecast as the futures had it. ``start_s`` is the truth, seconds after ``at_s``."""

    at_s: int
    job: int
    at_submit: bool
    raw: Band
    start_s: int
    gpus: int = 1

    @property
    def kind(self) -> ForecastKind:
        return ForecastKind.of(self.gpus, first=self.at_submit)


def told_over(
    trace: Trace, nodes: int, progress: Callable[[str], None], *, futures: int = 12
) -> tuple[list[ToldForecast], Ints]:
    """The forecasts, in order, and the first start of every job."""
    truth = SHIPPED.live(trace, nodes).jobs.first
    submits, hours = _moments(trace, truth)
    walk = Walk(trace, nodes, DEFAULT_POLICY)
    forecaster = Forecaster(trace, walk, SEED, futures)
    forecasts: list[ToldForecast] = []
    before = 0
    for number, now_s in enumerate(sorted({*submits, *hours})):
        walk.go_to(now_s)
        forecaster.learn(now_s, before)
        before = now_s
        chosen = _chosen(walk, trace, now_s, now_s in submits, now_s in hours)
        if chosen.size:
            forecasts += _forecasts(forecaster, chosen, trace, truth, now_s)
        if number % 20 == 0:
            progress(f"day {now_s // 86400}: {len(forecasts)} forecasts")
    return forecasts, truth


def _moments(trace: Trace, truth: Ints) -> tuple[set[int], set[int]]:
    dice = np.random.default_rng(SEED)
    waits = np.flatnonzero(truth > trace.submit_s)
    came, hours = trace.submit_s[waits], _hours(trace.submit_s[waits], truth[waits])
    bounds = (0, FIRST_OF_NOVEMBER_S, 1 << 40)
    chosen: tuple[set[int], set[int]] = set(), set()
    for since_s, until_s in pairwise(bounds):
        for found, of, most in zip(chosen, (came, hours), (SUBMITS, HOURS), strict=True):
            month = of[(of >= since_s) & (of < until_s)]
            found |= set(dice.choice(month, min(most, month.size), replace=False).tolist())
    return chosen


def _hours(submit_s: Ints, start_s: Ints) -> Ints:
    """Whole hours at which one of them has come and not started."""
    hours = np.arange(0, int(start_s.max(initial=0)) + 3600, 3600)
    come, gone = (np.searchsorted(np.sort(at), hours, side="right") for at in (submit_s, start_s))
    found: Ints = hours[come > gone]
    return found


def _chosen(walk: Walk, trace: Trace, now_s: int, is_submit: bool, is_hour: bool) -> Ints:
    """Jobs that wait now for the first time: who has just come, or some of all."""
    jobs = walk.jobs
    waits = np.flatnonzero((jobs.slot >= 0) & (jobs.first < 0))
    come = waits[trace.submit_s[waits] == now_s] if is_submit else waits[:0]
    if not is_hour or not waits.size:
        return come
    dice = np.random.default_rng([SEED, now_s])
    some = dice.choice(waits, min(MOST_OF_AN_HOUR, waits.size), replace=False)
    return np.union1d(come, some)


def _forecasts(
    forecaster: Forecaster, chosen: Ints, trace: Trace, truth: Ints, now_s: int
) -> list[ToldForecast]:
    which, starts = forecaster.tell(now_s, chosen)
    columns = {job: i for i, job in enumerate(which.tolist())}
    jobs = [job for job in chosen.tolist() if job in columns]
    found = bands(starts[:, [columns[job] for job in jobs]]) if jobs else []
    return [
        ToldForecast(
            now_s,
            job,
            int(trace.submit_s[job]) == now_s,
            band,
            int(truth[job]) - now_s,
            int(trace.gpus[job]),
        )
        for job, band in zip(jobs, found, strict=True)
    ]


def judge(
    forecasts: Sequence[ToldForecast],
    truth: Ints,
    trace: Trace,
    *,
    since_s: int = 0,
    until_s: int = 1 << 40,
    corrected: bool = True,
) -> dict[str, float]:
    """Figures of the forecasts made in the span; the correction learns from all that had come by then."""
    rows = [row for row in _corrected(forecasts, corrected) if since_s <= row[0].at_s < until_s]
    at_submit = [row for row in rows if row[0].at_submit]
    figures = _figures(rows, trace, truth) | _interval(rows)
    figures |= {f"submit_{k}": v for k, v in _figures(at_submit, trace, truth).items()}
    for kind in (ForecastKind.SMALL, ForecastKind.LARGE):
        sized = [row for row in rows if (row[0].gpus >= LARGE_GPUS) == (kind is ForecastKind.LARGE)]
        found = _figures(sized, trace, truth)
        figures |= {f"{kind.name.lower()}_{k}": v for k, v in found.items()}
    figures["uncorrected_band_p50_p90_pct"] = _figures(
        [(one, one.raw) for one, _ in rows], trace, truth
    )["band_p50_p90_pct"]
    return figures


def _corrected(
    forecasts: Sequence[ToldForecast], corrected: bool
) -> list[tuple[ToldForecast, Band]]:
    """Each with its band; at each moment the correction knows what had started by then, and what waited."""
    rows: list[tuple[ToldForecast, Band]] = []
    for at_s, group in groupby(forecasts, key=lambda one: one.at_s):
        now = list(group)
        known = Correction()
        if corrected:
            known = correction_from((_known(*row, at_s) for row in rows), at_s)
        rows += [(one, known.correct(one.raw, one.kind)) for one in now]
    return rows


def _known(one: ToldForecast, said: Band, now_s: int) -> JudgedForecast:
    """What is known of it at ``now_s``."""
    started = one.at_s + one.start_s <= now_s
    after_s = min(one.start_s, now_s - one.at_s)
    return JudgedForecast(one.raw, one.at_s, after_s, started, said, one.kind)


def _interval(rows: Sequence[tuple[ToldForecast, Band]]) -> dict[str, float]:
    """95 % of the band's share, from whole days drawn anew: forecasts of one day stand or fall together."""
    days, of = np.unique([one.at_s // DAY_S for one, _ in rows], return_inverse=True)
    if not days.size:
        return {"band_low_pct": 0.0, "band_high_pct": 100.0, "days": 0.0}
    hits = np.array([band.p50_s <= one.start_s <= band.p90_s for one, band in rows])
    drawn = np.random.default_rng(SEED).integers(0, days.size, (RESAMPLED, days.size))
    inside, counts = (np.bincount(of, weights=w, minlength=days.size) for w in (hits, None))
    shares = 100 * inside[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return {
        "band_low_pct": round(low, 2),
        "band_high_pct": round(high, 2),
        "days": float(days.size),
    }


def _figures(
    rows: Sequence[tuple[ToldForecast, Band]], trace: Trace, truth: Ints
) -> dict[str, float]:
    start = np.array([one.start_s for one, _ in rows], np.float64)
    p50 = np.array([band.p50_s for _, band in rows])
    p90 = np.array([band.p90_s for _, band in rows])
    wait = np.array([truth[one.job] - trace.submit_s[one.job] for one, _ in rows], np.float64)
    long = wait > LEAST_WAIT_S
    return {
        "band_p50_p90_pct": _pct((start >= p50) & (start <= p90)),
        "before_p50_pct": _pct(start <= p50),
        "before_p90_pct": _pct(start <= p90),
        "median_relative_error_pct": _median_pct(np.abs(start - p50)[long] / wait[long]),
        "forecasts": float(len(rows)),
        "long_waits": float(long.sum()),
    }


def _pct(flags: Floats | Ints | np.ndarray) -> float:
    return round(100 * float(np.mean(flags)), 2) if flags.size else 0.0


def _median_pct(errors: Floats) -> float:
    finite = np.where(np.isfinite(errors), errors, 1e9)
    return round(100 * float(np.median(finite)), 2) if finite.size else 0.0
