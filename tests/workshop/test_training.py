"""The training environment: by Gymnasium's checker, one episode a seed; a judge that refuses seen work."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from scheduling.engine.model import Policy, Sharing
from scheduling.simulation.traces import Trace
from workshop.training.environment import KNOBS, PolicyEnv, policy_of
from workshop.training.judge import by_hand, is_better, judge
from workshop.training.train import SHIPPED, Training, constant, train, waited_h
from workshop.training.windows import SharedWindowError, Window, cut

ORIGIN = datetime(2026, 1, 5, tzinfo=UTC)


def window(hours: int = 6, begin_h: int = 0) -> Window:
    """On one node of 8: work of one GPU and half an hour in queue a, of eight and four hours in queue b."""
    count = 24
    kinds = np.arange(count) % 2
    trace = Trace(
        name="t", origin=ORIGIN, submit_s=600 * np.arange(count), duration_s=1800 * (1 + 7 * kinds),
        gpus=1 + 7 * kinds, queue=kinds, user=0 * kinds, index=np.arange(count), queues=("a", "b"),
        users=("",), files=(Path("t.csv"),),
    )  # fmt: skip
    begin = ORIGIN + timedelta(hours=begin_h)
    return cut(f"from {begin_h}", trace, 1, begin, begin + timedelta(hours=hours))


def test_first_value_of_every_knob_is_the_shipped_one() -> None:
    assert policy_of([0] * len(KNOBS)) == Policy()
    assert policy_of([2, 0, 0, 0]).sharing is Sharing.THROUGHPUT


def test_environment_passes_the_checker_of_gymnasium() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(PolicyEnv(window(3)), skip_render_check=True)


def test_one_seed_gives_one_episode_and_another_another() -> None:
    env = PolicyEnv(window())
    first, again, other = (waited_h(SHIPPED, env, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_action_decides_how_long_work_waits() -> None:
    env = PolicyEnv(window())
    assert waited_h(constant([2, 0, 0, 0]), env, 1) < waited_h(SHIPPED, env, 1)


def test_training_is_the_same_by_seed_and_never_worse_than_what_is_shipped() -> None:
    effort = Training(seed=3, generations=1, population=4, best=1)
    one, same = train(effort, [window()]), train(effort, [window()])
    assert (one.rule.choices == same.rule.choices).all()
    assert one.cost == same.cost <= 1.0


def test_judge_refuses_work_that_was_trained_on() -> None:
    with pytest.raises(SharedWindowError, match="from 1 has work of from 0"):
        judge(SHIPPED, [window(3)], window(3, begin_h=1))


def test_shipped_policy_is_not_better_than_itself_by_hand() -> None:
    _, found = judge(SHIPPED, [], window(2), seeds=range(1, 6))
    assert len(found) == len(list(by_hand())) == 6
    assert found["fair share, arrival"][1].mean == 0.0
    assert not is_better(found)
