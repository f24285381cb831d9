"""What the version in shadow would have decided, from cycles that were kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.models import Cycle, CycleRecord, LearnedDifference, LearnedState
from scheduling.services.cycle.record.records import packed
from scheduling.services.learned import shadow
from tests.factories import NOW, make_cluster
from tests.learned import an_order
from tests.scheduling.engine.test_learned import two

pytestmark = pytest.mark.django_db
LONGEST_FIRST = {"expected_rest": 1.0}


@pytest.fixture
def cluster():
    return make_cluster()


def kept(cluster, number):
    """A cycle that acted: of two who wait for all GPUs, the shorter was started."""
    at = NOW + timedelta(seconds=number)
    cycle = Cycle.objects.create(cluster=cluster, number=number, at=at)
    return CycleRecord.objects.create(cycle=cycle, snapshot=packed(two({})))


def counted(order):
    order.refresh_from_db()
    return order.looked_at, order.differed


def test_start_that_would_differ_stands_beside_the_one_that_was_decided(cluster):
    order = an_order(cluster, LearnedState.SHADOW, weights=LONGEST_FIRST)
    kept(cluster, 7)
    shadow.watch(cluster)
    one = LearnedDifference.objects.get(order=order)
    assert (one.number, one.decided["name"], one.would["name"]) == (7, "second", "first")
    assert (one.would["expected_s"], one.would["waited_s"], one.would["gpus"]) == (7200, 18000, 8.0)
    assert counted(order) == (1, 1)


def test_same_decision_is_counted_and_not_kept(cluster):
    order = an_order(cluster, LearnedState.SHADOW, weights={"expected_rest": -1.0})
    kept(cluster, 7)
    shadow.watch(cluster)
    assert counted(order) == (1, 0)
    assert not LearnedDifference.objects.exists()


def test_no_cycle_is_planned_twice(cluster):
    order = an_order(cluster, LearnedState.SHADOW, weights=LONGEST_FIRST)
    kept(cluster, 7)
    assert [shadow.watch(cluster), shadow.watch(cluster)] == [1, 0]
    kept(cluster, 8)
    assert shadow.watch(cluster) == 1
    assert counted(order) == (2, 2)


def test_pass_that_was_overtaken_counts_nothing(cluster):
    order = an_order(cluster, LearnedState.SHADOW, weights=LONGEST_FIRST)
    record = kept(cluster, 7)
    shadow._look(order, record)
    shadow._look(order, record)
    assert counted(order) == (1, 1)
    assert LearnedDifference.objects.count() == 1


@pytest.mark.parametrize(
    "state", [LearnedState.TRAINING, LearnedState.DECIDING, LearnedState.REJECTED]
)
def test_only_who_is_in_shadow_is_watched(cluster, state):
    an_order(cluster, state, weights=LONGEST_FIRST)
    kept(cluster, 7)
    assert shadow.watch(cluster) == 0


def test_oldest_differences_are_dropped(cluster, monkeypatch):
    monkeypatch.setattr(shadow, "MOST_KEPT", 2)
    an_order(cluster, LearnedState.SHADOW, weights=LONGEST_FIRST)
    for number in (7, 8, 9):
        kept(cluster, number)
    shadow.watch(cluster)
    assert sorted(LearnedDifference.objects.values_list("number", flat=True)) == [8, 9]
