"""Forecasts over a whole replay at sampled moments, and how they held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from scheduling.engine.compile.structs import Floats, Ints
from scheduling.simulation.replay.weir import DEFAULT_POLICY, SHIPPED

from ..traces import Trace
from .bands import Band, Came, Correction, bands
from .eta import Forecaster, Walk

SEED = 20171001
SUBMITS, HOURS = 110, 40
"""Sampled moments of the two months: submissions of jobs that then wait, and whole hours."""
MOST_OF_AN_HOUR = 40
"""Of what waits at an hour so many are judged: a backlog of thousands is one event, not thousands."""
FIRST_OF_NOVEMBER_S = 31 * 86400
LEAST_WAIT_S = 600


@dataclass(frozen=True, slots=True)
class Told:
    """One forecast as the futures had it. ``start_s`` is the truth, seconds after ``at_s``."""

    at_s: int
    job: int
    at_submit: bool
    raw: Band
    start_s: int


def told_over(
    trace: Trace, nodes: int, progress: Callable[[str], None], *, futures: int = 12
) -> tuple[list[Told], Ints]:
    """The forecasts, in order, and the first start of every job."""
    truth = SHIPPED.live(trace, nodes).jobs.first
    submits, hours = _moments(trace, truth)
    walk = Walk(trace, nodes, DEFAULT_POLICY)
    forecaster = Forecaster(trace, walk, SEED, futures)
    told: list[Told] = []
    before = 0
    for number, now_s in enumerate(sorted({*submits, *hours})):
        walk.go_to(now_s)
        forecaster.learn(now_s, before)
        before = now_s
        chosen = _chosen(walk, trace, now_s, now_s in submits, now_s in hours)
        if chosen.size:
            told += _told(forecaster, chosen, trace, truth, now_s)
        if number % 20 == 0:
            progress(f"day {now_s // 86400}: {len(told)} forecasts")
    return told, truth


def _moments(trace: Trace, truth: Ints) -> tuple[set[int], set[int]]:
    dice = np.random.default_rng(SEED)
    waits = np.flatnonzero(truth > trace.submit_s)
    submits = trace.submit_s[dice.choice(waits, min(SUBMITS, waits.size), replace=False)]
    last_hour = int(trace.submit_s[-1]) // 3600
    hours = 3600 * dice.choice(last_hour, min(HOURS, last_hour), replace=False)
    return set(submits.tolist()), set(hours.tolist())


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


def _told(
    forecaster: Forecaster, chosen: Ints, trace: Trace, truth: Ints, now_s: int
) -> list[Told]:
    which, starts = forecaster.tell(now_s)
    columns = {job: i for i, job in enumerate(which.tolist())}
    jobs = [job for job in chosen.tolist() if job in columns]
    found = bands(starts[:, [columns[job] for job in jobs]]) if jobs else []
    return [
        Told(now_s, job, int(trace.submit_s[job]) == now_s, band, int(truth[job]) - now_s)
        for job, band in zip(jobs, found, strict=True)
    ]


def judge(
    told: Sequence[Told],
    truth: Ints,
    trace: Trace,
    *,
    since_s: int = 0,
    until_s: int = 1 << 40,
    corrected: bool = True,
) -> dict[str, float]:
    """Figures of the forecasts made in the span; the correction learns from all that had come by then."""
    rows = [row for row in _corrected(told, corrected) if since_s <= row[0].at_s < until_s]
    at_submit = [row for row in rows if row[0].at_submit]
    figures = _figures(rows, trace, truth)
    figures |= {f"submit_{k}": v for k, v in _figures(at_submit, trace, truth).items()}
    figures["uncorrected_band_p50_p90_pct"] = _figures(
        [(one, one.raw) for one, _ in rows], trace, truth
    )["band_p50_p90_pct"]
    return figures


def _corrected(told: Sequence[Told], corrected: bool) -> list[tuple[Told, Band]]:
    """Each with its band; at each moment the correction knows what had started by then, and what waited."""
    correction, rows = Correction(), []
    by_start = sorted(told, key=lambda one: one.at_s + one.start_s)
    came = 0
    for at_s, now in groupby(told, key=lambda one: one.at_s):
        while came < len(by_start) and by_start[came].at_s + by_start[came].start_s <= at_s:
            correction.learn(Came(by_start[came].raw, by_start[came].start_s))
            came += 1
        waiting = [one for one in by_start[came:] if one.at_s < at_s]
        known = correction.with_waiting(Came(one.raw, at_s - one.at_s) for one in waiting)
        rows += [(one, known.correct(one.raw) if corrected else one.raw) for one in now]
    return rows


def _figures(rows: Sequence[tuple[Told, Band]], trace: Trace, truth: Ints) -> dict[str, float]:
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
