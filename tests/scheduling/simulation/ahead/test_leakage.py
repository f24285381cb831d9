"""A forecast knows only what had ended before it."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from scheduling.simulation.traces import Trace
from workshop.compare.eta import Forecaster, Walk
from workshop.simulator.replay import DEFAULT_POLICY

HALF_S = 40_000


def trace(seed=3, jobs=160):
    dice = np.random.default_rng(seed)
    submit = np.sort(dice.integers(0, 80_000, jobs))
    return Trace(
        name="made",
        origin=datetime(2026, 11, 2, tzinfo=UTC),
        submit_s=submit,
        duration_s=dice.integers(600, 9000, jobs),
        gpus=dice.choice([1, 2, 4, 8], jobs),
        queue=dice.integers(0, 2, jobs),
        user=np.zeros(jobs, np.int64),
        index=np.arange(jobs),
        queues=("a", "b"),
        users=("",),
        queue_nodes={"a": 1, "b": 1},
    )


def told_at_half(one):
    walk = Walk(one, 2, DEFAULT_POLICY)
    walk.go_to(HALF_S)
    forecaster = Forecaster(one, walk, seed=9, futures=4)
    forecaster.learn(HALF_S, 0)
    which, starts = forecaster.tell(HALF_S)
    return walk, which.tolist(), starts.tolist()


def test_what_had_not_ended_at_half_time_changes_no_forecast_made_then():
    first = trace()
    walk, which, starts = told_at_half(first)
    assert which, "somebody has to wait then"
    unknown = (walk.jobs.end < 0) | (walk.jobs.end > HALF_S)
    longer = np.where(unknown, first.duration_s + 50_000, first.duration_s)
    _, others, other_starts = told_at_half(replace(first, duration_s=longer))
    assert (others, other_starts) == (which, starts)
