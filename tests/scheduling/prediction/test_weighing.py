"""What matters to the boosted model."""

from copy import deepcopy

import numpy as np
import pytest

from scheduling.prediction.features import NAMES
from scheduling.prediction.learner import YOUNG, Learner
from scheduling.prediction.runs import Run, Work
from scheduling.prediction.weighing import KNOWN, LEAST_RUNS, Weight, weights


def lived(runs: int) -> Learner:
    """Runs whose length is what their author asks for and nothing else."""
    dice, learner = np.random.default_rng(5), Learner(again=3.0)
    for number in range(runs):
        limit = float(dice.choice([600, 3600, 20_000, 80_000]))
        work = Work(user=f"u{dice.integers(40)}", queue="q", limit_s=limit, submitted=number * 60.0)
        learner.submit(number, work)
        learner.end(number, Run(work, limit * float(dice.uniform(0.8, 1.0)), number * 60.0 + 30))
    return learner


@pytest.fixture(scope="module")
def learner() -> Learner:
    return lived(YOUNG + LEAST_RUNS + 50)


@pytest.fixture(scope="module")
def weighed(learner: Learner) -> tuple[int, list[Weight]]:
    return weights(learner)


def test_every_feature_belongs_to_one_thing() -> None:
    assert sorted(name for part in KNOWN.values() for name in part) == sorted(NAMES)


def test_what_decides_run_times_weighs_most(weighed: tuple[int, list[Weight]]) -> None:
    runs, found = weighed
    assert runs == LEAST_RUNS + 50
    assert found[0].loss_pct > 10
    assert {one.name for one in found if one.loss_pct < 1} >= {"time", "type"}


def test_weights_are_the_same_each_time(
    learner: Learner, weighed: tuple[int, list[Weight]]
) -> None:
    assert weights(learner) == weighed


def test_nothing_weighs_before_there_are_trees() -> None:
    assert weights(lived(60)) == (0, [])


def test_right_after_a_fit_the_trees_before_it_are_judged(
    learner: Learner, weighed: tuple[int, list[Weight]]
) -> None:
    again = deepcopy(learner)
    again.fit()
    assert again.unseen == 0
    assert weights(again) == weighed


def test_table_of_rows_is_told_what_each_row_is_told(learner: Learner) -> None:
    forest = learner.models.forest
    assert forest is not None
    rows = [row for row, _ in list(learner.rows)[-20:]]
    one_by_one = np.array([forest.predict(row) for row in rows])
    assert forest.predict_all(np.array(rows)) == pytest.approx(one_by_one)
