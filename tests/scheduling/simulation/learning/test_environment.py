"""The Gymnasium environment: by its own checker, deterministic by seed, and its return is all waiting."""

from __future__ import annotations

import warnings
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from scheduling.engine.features import NAMES
from scheduling.simulation.learning.environment import FIRST, SEEN, OrderEnv
from scheduling.simulation.learning.windows import Window, cut
from scheduling.simulation.traces import Trace
from tests.scheduling.simulation.learning.test_learning import ORIGIN

SHORTEST, LONGEST = -1.0, 1.0


def window(hours: int = 12) -> Window:
    """On one node of 8: work of one GPU and half an hour in queue a, of eight and four hours in queue b."""
    count = 24
    kinds = np.arange(count) % 2
    trace = Trace(
        name="t", origin=ORIGIN, submit_s=600 * np.arange(count), duration_s=1800 * (1 + 7 * kinds),
        gpus=1 + 7 * kinds, queue=kinds, user=0 * kinds, index=np.arange(count), queues=("a", "b"),
        users=("",), files=(Path("t.csv"),),
    )  # fmt: skip
    return cut("w", trace, 1, ORIGIN, ORIGIN + timedelta(hours=hours))


def lived(env: OrderEnv, seed: int, weight: float) -> tuple[float, list[np.ndarray]]:
    """Return of an episode under one weight of the expected run time, and what was observed."""
    seen, _ = env.reset(seed=seed)
    action = np.zeros(len(NAMES), np.float32)
    action[NAMES.index("expected_rest")] = weight
    total, each = 0.0, [seen]
    while True:
        seen, reward, is_over, is_cut, _ = env.step(action)
        total += reward
        each.append(seen)
        if is_over or is_cut:
            return total, each


def test_it_passes_the_checker_of_gymnasium() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(OrderEnv(window(6)), skip_render_check=True)


def test_one_seed_gives_one_episode_and_another_another() -> None:
    env = OrderEnv(window())
    (first, seen), (again, same), (other, _) = (lived(env, seed, SHORTEST) for seed in (1, 1, 2))

    assert first == again
    assert all((a == b).all() for a, b in zip(seen, same, strict=True))
    assert first != other


def test_weights_decide_how_long_work_waits() -> None:
    env = OrderEnv(window())

    assert lived(env, 1, SHORTEST)[0] != lived(env, 1, LONGEST)[0]


def test_observed_are_the_first_that_wait_and_what_is_free() -> None:
    _, seen = lived(OrderEnv(window()), 1, SHORTEST)
    rows = seen[3][:-2].reshape(FIRST, 1 + len(SEEN))

    assert rows[0][0] == 1.0
    assert rows[:, 0].sum() == pytest.approx(2 ** seen[3][-2] - 1)
    assert 0 <= seen[3][-1] <= 1
