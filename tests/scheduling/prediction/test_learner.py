"""Predictions see what was over before, and nothing else; what is cut short counts as longer."""

from __future__ import annotations

import heapq
import json
import random
import zlib
from dataclasses import replace

import numpy as np
import pytest

from scheduling.prediction import gradient_boosting, learner, storage
from scheduling.prediction.calibration import Calibrator
from scheduling.prediction.features import NAMES
from scheduling.prediction.history import History
from scheduling.prediction.learner import Learner
from scheduling.prediction.paces import Paces
from scheduling.prediction.quantiles import Quantiles, rest_s
from scheduling.prediction.runs import Run, Work, image_of, stem_of


def stream(count: int = 900, seed: int = 1) -> list[Run]:
    """Three users whose runs last about 100, 1,000 and 10,000 s, one submission a minute."""
    dice, runs = random.Random(seed), []
    for number in range(count):
        user = number % 3
        ran_s = 10.0 ** (user + 2) * dice.lognormvariate(0, 0.5)
        work = Work(user=f"u{user}", queue="q", stem="train", submitted=60.0 * number)
        runs.append(Run(work, ran_s, work.submitted + ran_s, censored=dice.random() < 0.1))
    return runs


def live(runs: list[Run], into: Learner) -> list[Quantiles]:
    ends: list[tuple[float, int]] = []
    told = []
    for number, run in enumerate(runs):
        while ends and ends[0][0] <= run.work.submitted:
            into.end(ends[0][1], runs[heapq.heappop(ends)[1]])
        told.append(into.submit(number, run.work).quantiles)
        heapq.heappush(ends, (run.ended, number))
    return told


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quicken(monkeypatch)


def quicken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(learner, "YOUNG", 150)
    patch.setattr(learner, "JUDGED", 20)
    patch.setattr(gradient_boosting, "TREES", 8)


@pytest.fixture(scope="module")
def taught() -> Learner:
    """It has seen the whole stream; tests read it."""
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        into = Learner(again=1.5)
        live(stream(), into)
    return into


@pytest.mark.usefixtures("quick")
def test_run_that_had_not_ended_changes_no_earlier_prediction() -> None:
    runs = stream(480)
    half = runs[len(runs) // 2].work.submitted
    other = [
        r if r.ended <= half else replace(r, ran_s=r.ran_s * 50, ended=half + r.ran_s * 50 + 1)
        for r in runs
    ]
    before = [number for number, run in enumerate(runs) if run.work.submitted <= half]

    one, two = live(runs, Learner(again=1.5)), live(other, Learner(again=1.5))

    assert [one[n] for n in before] == [two[n] for n in before]
    assert one != two


def test_learned_run_times_beat_one_median_for_all(taught: Learner) -> None:
    assert taught.fits > 0
    assert taught.scores["told"].figures()["median_abs_log2_error"] < 1.0  # one median is off by 3


def test_stored_models_say_what_they_said_before(taught: Learner) -> None:
    text = storage.dump(taught.models)
    again = storage.load(text)
    work, unknown = Work(user="u1", queue="q", stem="train", submitted=1e6), (0.0,) * 6

    assert storage.dump(again) == text
    assert learner.say(again, work, 1e6, unknown).corrected == (
        learner.say(taught.models, work, 1e6, unknown).corrected
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x80\x04.",
        zlib.compress(b"{}"),
        zlib.compress(b"[]"),
        zlib.compress(b'{"format": 9}'),
    ],
)
def test_nonsense_for_a_stored_model_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"no stored model|Expecting"):
        storage.load(text)


def test_stored_trees_that_point_outside_are_refused(taught: Learner) -> None:
    document = json.loads(zlib.decompress(storage.dump(taught.models)))
    document["forest"]["feature"][0][0] = len(NAMES)

    with pytest.raises(ValueError, match="contradict"):
        storage.load(zlib.compress(json.dumps(document).encode()))


def test_walked_trees_say_what_scikit_learn_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn import ensemble

    made = []

    class Noted(ensemble.HistGradientBoostingRegressor):
        def fit(self, *args: object) -> Noted:
            made.append(self)
            return super().fit(*args)

    monkeypatch.setattr(ensemble, "HistGradientBoostingRegressor", Noted)
    dice = np.random.default_rng(3)
    rows = dice.normal(size=(400, 4))
    rows[dice.random(rows.shape) < 0.2] = np.nan
    forest = gradient_boosting.fit(rows, np.nansum(rows, axis=1))

    ours = np.array([forest.predict(row) for row in rows])
    assert np.allclose(ours, np.column_stack([model.predict(rows) for model in made]))


def test_run_cut_short_counts_as_longer() -> None:
    cut, whole = History(), History()
    for number in range(12):
        run = Run(Work(user="u"), 100.0 * (number + 1), float(number), censored=number < 6)
        cut.learn(run)
        whole.learn(replace(run, censored=False))

    said = cut.estimate(Work(user="u")).quantiles.p50
    assert said > whole.estimate(Work(user="u")).quantiles.p50


def test_pace_is_unknown_until_work_was_seen_on_both_classes() -> None:
    paces = Paces()
    paces.learn(Run(Work(stem="a", gpu_class="slow"), 400.0, 0.0))
    paces.learn(Run(Work(stem="b", gpu_class="fast"), 100.0, 0.0))
    assert paces.between(Work(stem="a"), "slow", "fast") is None

    paces.learn(Run(Work(stem="a", gpu_class="fast"), 100.0, 1.0))
    found = paces.between(Work(stem="b"), "slow", "fast")
    assert found is not None
    assert found.ratio == pytest.approx(4.0)
    assert (found.runs, found.groups, found.own) == (2, 1, 0)


def test_own_pace_is_drawn_towards_the_common_one() -> None:
    paces = Paces()
    for _ in range(10):
        paces.learn(Run(Work(stem="a", gpu_class="slow"), 400.0, 0.0))
        paces.learn(Run(Work(stem="a", gpu_class="fast"), 100.0, 0.0))
    paces.learn(Run(Work(stem="b", gpu_class="slow"), 100.0, 0.0))
    paces.learn(Run(Work(stem="b", gpu_class="fast"), 100.0, 0.0))

    own = paces.between(Work(stem="b"), "slow", "fast")
    assert own is not None
    assert 1.0 < own.ratio < 4.0


def test_rest_of_a_long_run_is_of_those_that_last_so_long() -> None:
    said = Quantiles(9.0, 10.0, 12.0)

    assert rest_s(said)[1] == pytest.approx(1024)
    assert rest_s(said, 2000.0)[1] > 0
    assert rest_s(said, 2000.0, limit_s=2100.0)[2] <= 100.0


def test_quantile_that_is_passed_too_often_is_moved_up() -> None:
    calibrator, said = Calibrator(), Quantiles(8.0, 9.0, 10.0)
    for _ in range(200):
        calibrator.learn(calibrator.correct(said), 11.0)

    assert calibrator.correct(said).p90 == pytest.approx(11.0)


@pytest.mark.parametrize(
    ("name", "stem"),
    [("train-bert-7", "train-bert"), ("eval-2-0013", "eval"), ("pt-13b-ctx32k", "pt-13b-ctx32k")],
)
def test_stem_leaves_counters_out(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_image_is_the_same_whatever_its_registry_and_tag() -> None:
    assert image_of("a.example.org:5000/team/train:1.2") == image_of(
        "b.example.org/team/train@sha256:00"
    )


def test_counters_of_simulated_work_are_told_from_its_name() -> None:
    assert stem_of("ablate-lr-799a10b") == "ablate-lr"
    assert stem_of("sweep-aug-799a10b-12") == "sweep-aug"
