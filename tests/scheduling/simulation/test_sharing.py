"""Sharing by merit over a life: laws, bounds, and that nothing is known before it is over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduling.engine.model import Policy, Sharing
from scheduling.simulation.loop.lives import Life
from scheduling.simulation.traces import Trace
from workshop.compare.sharing_lives import SharingLife, fairness_figures, jittered
from workshop.simulator.replay import EngineRun, lived_replay

from .conftest import make_trace

HALF_S = 40_000


def busy_trace(seed: int = 1, count: int = 600) -> Trace:
    """Three queues that ask for more than four nodes have, most of it short, some of it long and wide."""
    dice = np.random.default_rng(seed)
    submit = np.sort(dice.integers(0, 2 * HALF_S, count))
    run = np.exp(dice.normal(6.5, 1.8, count)).astype(int) + 1
    gpus = dice.choice([1, 1, 1, 2, 4, 8, 16], count)
    queue = dice.choice(["a", "b", "c"], count, p=[0.6, 0.3, 0.1])
    rows = zip(submit.tolist(), run.tolist(), gpus.tolist(), queue.tolist(), strict=True)
    return replace(make_trace(*rows), queue_nodes={"a": 2, "b": 1, "c": 1})


def live(trace: Trace, sharing: Sharing) -> Life:
    return EngineRun(policy=Policy(sharing=sharing)).live(trace, 4)


@pytest.mark.parametrize("sharing", [Sharing.PROMISE, Sharing.THROUGHPUT])
def test_nothing_is_known_of_a_run_before_it_is_over(sharing: Sharing) -> None:
    trace = busy_trace()
    lived = live(trace, sharing).jobs
    open_at_half = lived.end > HALF_S
    changed = trace.duration_s.copy()
    changed[open_at_half] = changed[open_at_half] * 3 + HALF_S

    other = live(replace(trace, duration_s=changed), sharing).jobs

    before = (lived.first >= 0) & (lived.first <= HALF_S)
    assert before.sum() > 100
    assert open_at_half.sum() > 100
    assert lived.first[before].tolist() == other.first[before].tolist()


@pytest.mark.parametrize("sharing", [Sharing.PROMISE, Sharing.THROUGHPUT])
def test_nobody_is_evicted_more_often_than_the_policy_allows(sharing: Sharing) -> None:
    lived = live(busy_trace(2), sharing)

    assert lived.jobs.end.min() >= 0
    assert lived.jobs.evictions.max() <= Policy().max_evictions


@pytest.mark.parametrize("sharing", [Sharing.PROMISE, Sharing.THROUGHPUT])
def test_evictions_stay_below_one_for_twenty_arrivals(sharing: Sharing) -> None:
    lived = live(busy_trace(3), sharing)

    assert 0 < lived.jobs.evictions.sum() <= 0.05 * lived.jobs.submit.size + 1


def test_same_life_twice_is_the_same() -> None:
    trace = busy_trace(4)

    once, twice = (live(trace, Sharing.PROMISE).jobs for _ in range(2))

    assert once.end.tolist() == twice.end.tolist()


def test_jitter_makes_few_runs_a_little_longer() -> None:
    trace = busy_trace(5)

    more_s = jittered(trace, 1).duration_s - trace.duration_s

    assert set(more_s.tolist()) <= set(range(6))
    assert 0 < (more_s > 0).sum() < 0.05 * len(trace)


def test_figures_are_means_but_of_evictions_the_most() -> None:
    trace = busy_trace(6)
    replays = [
        lived_replay(trace, live(trace, s), 32) for s in (Sharing.PROMISE, Sharing.FAIR_SHARE)
    ]
    found = [SharingLife(result, replays[0]).figures() for result in replays]

    told = fairness_figures(found)

    assert told["avg_wait_s"] == pytest.approx(np.mean([m.avg_wait_s for m in found]), abs=0.01)
    assert told["max_evictions_of_a_job"] == max(m.max_evictions_of_a_job for m in found)
