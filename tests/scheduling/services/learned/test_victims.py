"""Weights of who may leave: searched beside the order, taken only where they are better than noise."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.engine.features import VICTIM_NAMES
from scheduling.models import LearnedLife, LearnedOrder, LearnedState
from scheduling.services.learned import searching, victims, working
from scheduling.services.learned.figures import BOUNDS, WAIT
from scheduling.services.learned.windows import TRAINING
from scheduling.services.policy.rows import PolicyRows, load
from tests.factories import NOW, example_cluster
from tests.lab import with_work
from tests.learned import WEIGHTS, an_order, begun, made_up, worked

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    made = example_cluster()
    with_work(made)
    return made


def lives(*waits_s, unfair_pct=0.0):
    kept = dict.fromkeys(BOUNDS, 0.0) | {"unfair_pct": unfair_pct}
    return [{WAIT: wait_s, **kept} for wait_s in waits_s]


WITHOUT = lives(600, 620, 640, 660, 680)
LESS, ALIKE = (300, 325, 335, 365, 375), (300, 925, 335, 965, 875)


@pytest.mark.parametrize(
    ("mine", "is_taken", "told"),
    [
        (lives(*LESS), True, "Weights choose victims: the wait differs by −5.0 ± "),
        (lives(*ALIKE), False, "which is no better than noise."),
        (lives(*LESS, unfair_pct=5.0), False, "but fairness is not kept."),
        (WITHOUT, False, "which is no better than noise."),
    ],
)
def test_weights_are_taken_where(mine, is_taken, told):
    found, why = victims.said(mine, WITHOUT)
    assert found is is_taken
    assert told in why
    assert why.startswith("Weights choose") is is_taken


def test_where_nobody_leaves_the_shipped_rule_stays(cluster, monkeypatch):
    made_up(monkeypatch, lambda world: 1800.0)
    order = worked(begun(cluster, monkeypatch))
    assert (order.victim_weights, order.victim_tried) == ({}, [])
    assert order.victims_said == victims.NOBODY_LEAVES


def test_weights_that_wait_less_are_taken(cluster, monkeypatch):
    """Made up: the heavier work at risk weighs, the less is waited."""
    made_up(
        monkeypatch,
        lambda world: 3600 - min(600, 600 * abs(world.policy.victim_weights.get("at_risk", 0))),
        evictions=1,
    )
    order = worked(begun(cluster, monkeypatch))
    assert set(order.victim_weights) == set(VICTIM_NAMES)
    assert order.victims_said.startswith("Weights choose victims")
    assert len(order.victim_tried) == victims.most_tries(order) == 3
    assert set(order.victim_spread) == set(VICTIM_NAMES)


def test_weights_that_change_nothing_are_not_taken(cluster, monkeypatch):
    made_up(monkeypatch, lambda world: 3600.0, evictions=1)
    order = worked(begun(cluster, monkeypatch))
    assert (order.victim_weights, order.victims_said) == ({}, victims.NOTHING_BETTER)
    assert TRAINING not in order.work


def test_killed_between_two_lives_of_the_comparison_none_is_lived_twice(cluster, monkeypatch):
    made_up(
        monkeypatch,
        lambda world: 3600 - min(600, 600 * abs(world.policy.victim_weights.get("at_risk", 0))),
        evictions=1,
    )
    order, asked = begun(cluster, monkeypatch), []
    stage = searching.stage_of(order.pk)
    whole = stage.life_of

    def life_of(weights, victim_weights, seed):
        asked.append((bool(victim_weights), seed))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return whole(weights, victim_weights, seed)

    monkeypatch.setattr(stage, "life_of", life_of)
    with pytest.raises(KeyboardInterrupt):
        working.work(order.pk)
    LearnedOrder.objects.update(held_until=None)
    worked(order)
    assert len(asked) == 1 + 2 * len(victims.SEEDS)
    rows = LearnedLife.objects.filter(order=order, window=victims.WINDOW)
    assert rows.count() == 2 * len(victims.SEEDS)


def test_version_that_decides_decides_of_victims_too(cluster):
    an_order(cluster, LearnedState.DECIDING, victim_weights={"at_risk": -0.5})
    rows: PolicyRows = load(cluster, at=NOW + timedelta(hours=1))
    assert (rows.order_weights, rows.victim_weights) == (WEIGHTS, {"at_risk": -0.5})
